"""Prompt files: every word that is sent to a model is in a *.md file. An administrator's own folder comes before the
files beside this module; what cannot be used is named, and the packaged text stands in for it."""

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
# The texts as they were shipped, for files that were edited in place; `python -m prompts.packaged` writes it.
PACKAGED = FOLDER / "packaged.json"
MOST_BYTES = 200_000
_VARIABLE = re.compile(r"\{\{([a-z_]+)\}\}")
_MEANT_AS_ONE = re.compile(r"\{\{\s*([\w-]+)\s*\}\}")

logger = logging.getLogger("daybook.prompts")


@dataclass(frozen=True, slots=True)
class Variables:
    """The `{{variables}}` of a prompt: those that its file must hold, and those that it may leave out."""

    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFile:
    """A prompt as it is used; the hash lets any reply be traced to the words that made it."""

    name: str
    text: str
    sha256: str


class PromptError(Exception):
    """A file that cannot be used as the prompt of its name, or a value that no such prompt has a variable for."""


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
# Names that files in an administrator's folder may still have.
_FORMER = {"keyword_generation": "found_by"}
_own: Path | None = None


def use_folder(folder: Path | None) -> None:
    """Look for prompts in this folder first; called once, when Django starts. It need not exist."""
    global _own
    _own = folder
    prompt_file.cache_clear()


@cache
def prompt_file(name: str) -> PromptFile:
    """Return the prompt `name` (a path below the folder, without .md). Raises KeyError for a name that is not in
    PROMPTS.

    A file that cannot be used is logged, once in a process, and the next one is taken."""
    for path in _sources(name):
        try:
            return _read(name, path)
        except PromptError as error:
            logger.error("%s Another text is used meanwhile.", error)
    return _prompt(name, packaged_texts()[name])


def prompt_problems() -> list[str]:
    """Return one sentence for each prompt file that cannot be used, or that belongs to no prompt."""
    problems = []
    for name in PROMPTS:
        for path in _sources(name):
            try:
                _read(name, path)
            except PromptError as error:
                problems.append(str(error))
    folder = _own
    for path in sorted(folder.rglob("*.md")) if folder and folder.is_dir() else ():
        name = path.relative_to(folder).with_suffix("").as_posix() if folder else ""
        present = {former: name for name, former in _FORMER.items()}.get(name)
        if present and path not in _sources(present):
            problems.append(f"{path} is not read: {present}.md stands beside it.")
        elif not present and name not in PROMPTS:
            problems.append(f"{path} is not read: there is no prompt of that name.")
    return problems


@cache
def packaged_texts() -> dict[str, str]:
    """Return the texts that this version was shipped with, by name."""
    texts: dict[str, str] = json.loads(PACKAGED.read_text(encoding="utf-8"))
    return texts


def fill(file: PromptFile, **values: str) -> str:
    """Return the text with its `{{variables}}` replaced, in one pass: a value is never looked through for variables.

    Values are given for all variables of the prompt, also for those that its file leaves out; else PromptError."""
    variables = PROMPTS[file.name]
    if variables.required | variables.optional != values.keys():
        wanted = sorted(variables.required | variables.optional)
        raise PromptError(f"prompt {file.name}: wants {wanted}, was given {sorted(values)}")
    return _VARIABLE.sub(lambda match: values[match[1]], file.text)


def _sources(name: str) -> Iterator[Path]:
    """Return the files that may hold a prompt, best first. An administrator's folder need not have all of them."""
    names = [own for own in (name, _FORMER.get(name)) if own]
    in_folder = [_own / f"{own}.md" for own in names] if _own else []
    yield from [path for path in in_folder if os.path.lexists(path)][:1]
    yield FOLDER / f"{name}.md"


def _read(name: str, path: Path) -> PromptFile:
    """Raises PromptError, with one sentence that names the file."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise PromptError(f"{path} has more than {MOST_BYTES:,} bytes.")
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
    if unknown := sorted(set(_MEANT_AS_ONE.findall(text)) - variables.required - variables.optional):
        raise PromptError(f"{path} holds {_listed(unknown)}, which this prompt does not have.")
    return _prompt(name, text)


def _prompt(name: str, text: str) -> PromptFile:
    return PromptFile(name=name, text=text, sha256=hashlib.sha256(text.encode()).hexdigest())


def _listed(names: list[str]) -> str:
    return ", ".join(f"{{{{{name}}}}}" for name in names)
