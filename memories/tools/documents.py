"""The `read` tool, which returns the documents of the run's book at `memory://root…` in pages and counts their usage.
A wrong address is a result that the model can act on, never an exception. No file system is involved."""

from collections.abc import Collection
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from memories.artifacts.paths import ROOT, resolve_uri
from memories.artifacts.store import artifact_get, artifact_read, blocking_rule
from memories.database.access import write_later
from memories.errors import DomainError
from memories.tools.tool import Arguments, Stage, Tool, ToolRun, Words, failure

PAGE_CHARACTERS = 12_000
_OTHER_NAME = "read_memory"


class Read(Arguments):
    path: str = Field(description=f"{ROOT}, {ROOT}/MEMORY.md or {ROOT}/skills/<name>/SKILL.md.")
    offset: int = Field(0, ge=0, description="Where to go on: next_offset of the page before.")


class ReadPage(TypedDict):
    ok: Literal[True]
    path: str
    text: str
    next_offset: Annotated[int | None, Field(description="Where the next page begins; null at the end.")]


def _read(run: ToolRun, arguments: Read) -> dict[str, Any]:
    book = run.scope.book
    try:
        artifact = artifact_get(book.owner_id, book.book_id, resolve_uri(arguments.path))
    except DomainError as error:
        return failure(error.code, str(error))
    offset = arguments.offset
    if rule := blocking_rule(artifact):
        return failure("blocked_by_scan", f"This document is blocked by rule {rule} until a person edits it.")
    if offset and offset >= len(artifact.content):
        return failure("invalid_arguments", f"offset: the document has {len(artifact.content)} characters.")
    write_later(partial(artifact_read, artifact))  # a step that only reads must not wait for writers
    end = _page_end(artifact.content, offset)
    return {
        "ok": True,
        "path": artifact.path,
        "text": artifact.content[offset:end],
        "next_offset": end if end < len(artifact.content) else None,
    }


def _page_end(content: str, offset: int) -> int:
    """Return the end of the page that starts at `offset`, at a line end if there is one in its second half."""
    end = offset + PAGE_CHARACTERS
    if end >= len(content):
        return len(content)
    line_end = content.rfind("\n", offset + PAGE_CHARACTERS // 2, end)
    return line_end + 1 if line_end > 0 else end


READ = Tool(
    name="read",
    title="Read documents",
    description=(
        f"Read what is known from past sessions: {ROOT} is the summary, {ROOT}/MEMORY.md the handbook, "
        f"{ROOT}/skills/<name>/SKILL.md a procedure. Long documents come in pages."
    ),
    arguments=Read,
    handler=_read,
    result=ReadPage,
    stages=frozenset({Stage.DOCUMENTS, Stage.MCP}),
    words=Words("Reading a document…", "Read a document."),
    detail="path",
    detailed=Words("Reading {}…", "Read {}."),
)


def free_read_name(taken: Collection[str]) -> str:
    """Return a name for the `read` tool that is not among these names: its own, or a similar one."""
    names = (READ.name, _OTHER_NAME, *(f"{_OTHER_NAME}_{number}" for number in range(2, len(taken) + 2)))
    return next(name for name in names if name not in taken)
