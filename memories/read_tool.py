"""The `read` tool: the documents of the run's book at `memory://root…`, in pages. Every reading counts as usage.
A wrong address is a result the model can act on, never an exception, and never touches a file system."""

from collections.abc import Collection
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memories.artifact_paths import ROOT, resolve_uri
from memories.artifacts import artifact_get, artifact_read, renewed_rule
from memories.errors import DomainError
from memories.models import Artifact
from memories.snapshot import BookState

NAME = "read"
_OTHER_NAME = "read_memory"
PAGE_CHARACTERS = 12_000
_ABOUT = (
    f"Read what is known from past sessions: {ROOT} is the summary, {ROOT}/MEMORY.md the handbook, "
    f"{ROOT}/skills/<name>/SKILL.md a procedure. Long documents come in pages."
)


class Read(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    path: str = Field(description=f"{ROOT}, {ROOT}/MEMORY.md or {ROOT}/skills/<name>/SKILL.md.")
    offset: int = Field(0, ge=0, description="Where to go on: next_offset of the page before.")


def free_name(taken: Collection[str]) -> str:
    """The name that the tool is offered by, beside tools of these names: ours, or else one like it."""
    names = (NAME, _OTHER_NAME, *(f"{_OTHER_NAME}_{number}" for number in range(2, len(taken) + 2)))
    return next(name for name in names if name not in taken)


@cache
def definition(name: str = NAME) -> dict[str, Any]:
    """The tool as an OpenAI function definition."""
    schema = Read.model_json_schema()
    schema.pop("title", None)
    for value in schema["properties"].values():
        value.pop("title", None)
    return {"type": "function", "function": {"name": name, "description": _ABOUT, "parameters": schema}}


def read_document(arguments: str, book: BookState) -> dict[str, Any]:
    """The result of one call: `text`, and `next_offset` (null at the end). Uses the database."""
    try:
        wanted = Read.model_validate_json(arguments or "{}")
        artifact = artifact_get(book.owner_id, book.book_id, resolve_uri(wanted.path))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "arguments"
        return _refused(
            "invalid_arguments", f"{where}: {first['msg']}. Call it again with the arguments of its schema."
        )
    except DomainError as error:
        return _refused(error.code, str(error))
    return _page(artifact, wanted.offset)


def _page(artifact: Artifact, offset: int) -> dict[str, Any]:
    if rule := renewed_rule(artifact):
        return _refused("blocked_by_scan", f"This document is blocked by rule {rule} until a person mends it.")
    if offset and offset >= len(artifact.content):
        return _refused("invalid_arguments", f"offset: the document has {len(artifact.content)} characters.")
    artifact_read(artifact)
    end = _page_end(artifact.content, offset)
    return {
        "ok": True,
        "path": artifact.path,
        "text": artifact.content[offset:end],
        "next_offset": end if end < len(artifact.content) else None,
    }


def _page_end(content: str, offset: int) -> int:
    """At most a page further, at a line's end where there is one in its second half."""
    end = offset + PAGE_CHARACTERS
    if end >= len(content):
        return len(content)
    line_end = content.rfind("\n", offset + PAGE_CHARACTERS // 2, end)
    return line_end + 1 if line_end > 0 else end


def _refused(code: str, message: str) -> dict[str, Any]:
    return {"ok": False, "error": code, "message": message}
