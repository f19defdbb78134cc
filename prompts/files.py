"""Prompt files: every word that is sent to a model is in a *.md file beside this module, filled strictly."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent
_VARIABLE = re.compile(r"\{\{([a-z_]+)\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFile:
    """A prompt as it lies in its file; the hash lets any reply be traced to the words that made it."""

    name: str
    text: str
    sha256: str


class PromptError(Exception):
    """A variable the file does not name, or one it names and we lack."""


@cache
def prompt_file(name: str) -> PromptFile:
    """The prompt `name` (a path below prompts/ without .md)."""
    text = (_FOLDER / f"{name}.md").read_text(encoding="utf-8").strip("\n")
    return PromptFile(name=name, text=text, sha256=hashlib.sha256(text.encode()).hexdigest())


def fill(file: PromptFile, **values: str) -> str:
    """The text with its `{{variables}}` replaced, in one pass: a value is never looked through for variables.

    Raises PromptError unless the variables are exactly those of the file."""
    wanted = set(_VARIABLE.findall(file.text))
    if wanted != values.keys():
        raise PromptError(f"prompt {file.name}: wants {sorted(wanted)}, was given {sorted(values)}")
    return _VARIABLE.sub(lambda match: values[match[1]], file.text)
