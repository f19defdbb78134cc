"""Prompt files: the texts that are sent to models are in *.md files. Files in an administrator's folder take precedence
over those beside this module; unusable files are reported and replaced by the packaged text."""

import hashlib
import json
import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
# The shipped texts, as a fallback for files that were edited in place; written by `python -m prompts.files`.
PACKAGED = FOLDER / "packaged.json"
MAX_BYTES = 200_000
_VARIABLE = re.compile(r"\{\{([a-z_]+)\}\}")
_LIKE_VARIABLE = re.compile(r"\{\{\s*([\w-]+)\s*\}\}")

logger = logging.getLogger("daybook.prompts")


@dataclass(frozen=True, slots=True)
class Variables:
    """The `{{variables}}` that a prompt file must contain, and those that it may contain."""

    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFile:
    """A prompt in use; the hash allows a reply to be traced to its prompt."""

    name: str
    text: str
    sha256: str


class PromptError(Exception):
    """A prompt file cannot be used, or the values for its variables do not match."""


def _variables(required: str = "", optional: str = "") -> Variables:
    return Variables(frozenset(required.split()), frozenset(optional.split()))


PROMPTS = {
    "compaction": _variables("conversation earlier", "words"),
    "earlier_block": _variables("summary"),
    "keyword_generation": _variables("notes"),
    "keywords": _variables(),
    "memory_block": _variables("memories"),
    "review": _variables("existing", "max_writes room"),
    "review_in_json": _variables("tools"),
    "review_my_memory": _variables("memories", "book tools_book"),
    "thread_block": _variables("snippets"),
    "memories/consolidation": _variables("raw_memories rollout_summaries", "artifact_usage current_memory_md"),
    "memories/read_path": _variables("memory_summary", "read_tool"),
    "memories/stage_one_input": _variables("response_items_json thread_id"),
    "memories/stage_one_system": _variables(),
}
_custom_folder: Path | None = None


def use_folder(folder: Path | None) -> None:
    """Prefer prompt files in this folder, which need not exist. Called once, when Django starts."""
    global _custom_folder
    _custom_folder = folder
    prompt_file.cache_clear()


@cache
def prompt_file(name: str) -> PromptFile:
    """Return the prompt `name`, a path in the folder without .md. Raises KeyError for a name that is not in PROMPTS.

    An unusable file is logged once per process, and the next source is used."""
    for path in _sources(name):
        try:
            return _read(name, path)
        except PromptError as error:
            logger.error("%s Another text is used meanwhile.", error)
    return _prompt(name, packaged_texts()[name])


def prompt_problems() -> list[str]:
    """Return a sentence for each prompt file that cannot be used or is not the file of a prompt."""
    problems = []
    for name in PROMPTS:
        for path in _sources(name):
            try:
                _read(name, path)
            except PromptError as error:
                problems.append(str(error))
    if folder := _custom_folder:
        unknown = (
            path for path in folder.rglob("*.md") if path.relative_to(folder).with_suffix("").as_posix() not in PROMPTS
        )
        problems += [f"{path} is not read: there is no prompt of that name." for path in sorted(unknown)]
    return problems


@cache
def packaged_texts() -> dict[str, str]:
    """Return the shipped texts by name."""
    texts: dict[str, str] = json.loads(PACKAGED.read_text(encoding="utf-8"))
    return texts


def fill(file: PromptFile, **values: str) -> str:
    """Replace the `{{variables}}` of a prompt in one pass, so that variables in values are not replaced.

    Raises PromptError unless there are values for exactly the variables in PROMPTS, including those that the file does
    not use."""
    variables = PROMPTS[file.name]
    if variables.required | variables.optional != values.keys():
        wanted = sorted(variables.required | variables.optional)
        raise PromptError(f"prompt {file.name}: expects {wanted}, got {sorted(values)}")
    return _VARIABLE.sub(lambda match: values[match[1]], file.text)


def _sources(name: str) -> Iterator[Path]:
    """Yield the possible files of a prompt in order of precedence. An administrator's folder need not have all."""
    if _custom_folder and os.path.lexists(path := _custom_folder / f"{name}.md"):
        yield path
    yield FOLDER / f"{name}.md"


def _read(name: str, path: Path) -> PromptFile:
    """Read a prompt file. Raises PromptError with a sentence that names the file."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise PromptError(f"{path} has more than {MAX_BYTES:,} bytes.")
        text = data.decode("utf-8").strip("\r\n")
    except OSError as error:
        raise PromptError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise PromptError(f"{path} is not UTF-8 text.") from None
    if not text.strip():
        raise PromptError(f"{path} is empty.")
    variables, found = PROMPTS[name], set(_VARIABLE.findall(text))
    if missing := sorted(variables.required - found):
        raise PromptError(f"{path} lacks {_listed(missing)}.")
    if unknown := sorted(set(_LIKE_VARIABLE.findall(text)) - variables.required - variables.optional):
        raise PromptError(f"{path} holds {_listed(unknown)}, which this prompt does not have.")
    return _prompt(name, text)


def _prompt(name: str, text: str) -> PromptFile:
    return PromptFile(name=name, text=text, sha256=hashlib.sha256(text.encode()).hexdigest())


def _listed(names: list[str]) -> str:
    return ", ".join(f"{{{{{name}}}}}" for name in names)


def texts_now() -> dict[str, str]:
    """Return the texts of the prompt files beside this module, by name."""
    return {name: (FOLDER / f"{name}.md").read_text(encoding="utf-8").strip("\n") for name in sorted(PROMPTS)}


if __name__ == "__main__":
    PACKAGED.write_text(json.dumps(texts_now(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
