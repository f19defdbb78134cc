"""The memory tools of a conversation: their schemas, and their handlers, which call memories.services.
A step's writes are one change set, applied in order; a refusal is a result the model can act on, never an exception."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from django.db import transaction
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from memories import read_tool
from memories.errors import DomainError, OverBudget
from memories.json_input import read_json
from memories.limits import KEYWORD_LENGTH, KEYWORDS_GIVEN, LARGEST_NUMBER, QUERY_LENGTH
from memories.lists import number as parse_number
from memories.models import Book, ChangeSet, Revision, WriteOrigin
from memories.search.keywords import extract_keywords
from memories.selectors import live_memories
from memories.services import BookWriter, MemoryFields, Source, Written, book_limits, book_writing
from memories.snapshot import BookState, snapshots

SEARCH_LIMIT = 10
NEARLY_FULL = 0.9
_KEYWORDS = (
    "6 to 12 words a future message might use when this matters and that are not in the content: synonyms, the topic, "
    "occasions, other languages."
)


def _check_query(query: str) -> str:
    if len(query) > QUERY_LENGTH:
        raise ValueError(f"a query has at most {QUERY_LENGTH} characters")
    return query


def _check_keywords(keywords: list[str]) -> list[str]:
    if len(keywords) > KEYWORDS_GIVEN or any(len(keyword) > KEYWORD_LENGTH for keyword in keywords):
        raise ValueError(f"give at most {KEYWORDS_GIVEN} keywords of at most {KEYWORD_LENGTH} characters")
    return keywords


# Checked, but not part of the schema that models get: some servers turn a `maxLength` into a grammar that they refuse.
BoundedQuery = Annotated[str, AfterValidator(_check_query)]
BoundedKeywords = Annotated[list[str], AfterValidator(_check_keywords)]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    name: ClassVar[str]
    about: ClassVar[str]


class AddMemory(_Arguments):
    name = "add_memory"
    about = "Remember one lasting fact, preference or convention. Not for passing states, tasks in progress or secrets."
    content: str = Field(description="One short statement in the third person, with exact names and figures.")
    target: Literal["user", "memory"] = Field(
        "memory",
        description="user: about the person. memory: about their environment, tools, conventions and procedures.",
    )
    category: str = Field("general", description="One or two words, such as preference, fact, correction, procedure.")
    keywords: BoundedKeywords = Field(default_factory=list, description=_KEYWORDS)


class UpdateMemory(_Arguments):
    name = "update_memory"
    about = "Correct or complete a memory; prefer this to adding one that says nearly the same or the contrary."
    id: int | str = Field(description="The id of the memory.")
    content: str = Field(description="The whole new statement.")
    category: str | None = Field(None, description="Only if it changes.")
    keywords: BoundedKeywords | None = Field(None, description=_KEYWORDS)


class DeleteMemory(_Arguments):
    name = "delete_memory"
    about = "Forget a memory that is wrong, outdated, or that the person asked to forget."
    id: int | str = Field(description="The id of the memory.")


class SearchMemories(_Arguments):
    name = "search_memories"
    about = "Search what is remembered, best first."
    query: BoundedQuery = Field(description="What to look for.")
    category: str | None = Field(None, description="Only memories of this category.")


class GetMemories(_Arguments):
    name = "get_memories"
    about = "List everything that is remembered, with ids and the room that is left."


WRITING: tuple[type[_Arguments], ...] = (AddMemory, UpdateMemory, DeleteMemory)
ALL: tuple[type[_Arguments], ...] = (*WRITING, SearchMemories, GetMemories)
_BY_NAME = {tool.name: tool for tool in ALL}
NAMES = frozenset(_BY_NAME)


@cache
def definitions(tools: tuple[type[_Arguments], ...] = ALL) -> tuple[dict[str, Any], ...]:
    """The tools as OpenAI function definitions."""
    return tuple(
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.about, "parameters": _schema(tool)},
        }
        for tool in tools
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call as the model made it; `arguments` is its JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolScope:
    """Whose book the tools of a run work on; without session and run, of a client of /mcp, which is the actor."""

    book: BookState
    search: str
    session_id: UUID | None
    run_id: UUID | None
    actor: str = "model"


@dataclass(slots=True)
class StepResult:
    """What the calls of one model step came to: a result text for each call id, and the changes that were made."""

    results: dict[str, str] = field(default_factory=dict)
    changes: list[dict[str, Any]] = field(default_factory=list)


def run_calls(calls: Sequence[ToolCall], scope: ToolScope) -> StepResult:
    """Run a step's calls in order, its writes as one change set. Synchronous; uses the database."""
    step = StepResult()
    source = Source(
        actor=scope.actor,
        origin=WriteOrigin.TOOL,
        kind=ChangeSet.Kind.TOOL,
        session_id=scope.session_id,
        run_id=scope.run_id,
    )
    with book_writing(Book(pk=scope.book.book_id), source) as writer:
        for call in calls:
            step.results[call.id] = json.dumps(_run_one(call, scope, writer, step), ensure_ascii=False)
    for change in step.changes:
        change["change_set"] = str(writer.change_set.pk) if writer.change_set else None
    return step


def parse_arguments(call: ToolCall) -> _Arguments | dict[str, Any]:
    """The checked arguments of a call, or the error result that tells the model what to mend."""
    tool = _BY_NAME.get(call.name)
    if tool is None:
        return _no_such_tool(call)
    try:
        return tool.model_validate_json(_storable_json(call.arguments or "{}"))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "arguments"
        return failure(
            "invalid_arguments",
            f"{where}: {first['msg']}. Call {call.name} again with the arguments of its schema.",
        )


def unknown_tool(call: ToolCall) -> str:
    """What a model is told that calls a tool nobody offered."""
    return json.dumps(_no_such_tool(call), ensure_ascii=False)


def _no_such_tool(call: ToolCall) -> dict[str, Any]:
    return failure("unknown_tool", f"There is no tool called {call.name}.")


def _storable_json(text: str) -> str:
    """JSON without escaped NULs; what is no JSON stays as it is, to be refused."""
    if "\\u0000" not in text:
        return text
    try:
        return json.dumps(read_json(text, repair=True))
    except DomainError:
        return text


def memory_number(value: int | str) -> int:
    """The number a model gave as an id; -1, which no memory has, for what is no number."""
    if isinstance(value, str):
        found = parse_number(value.strip().lstrip("#"))
        return -1 if found is None else found
    return value if 0 <= value <= LARGEST_NUMBER else -1


def success(written: Written, writer: BookWriter) -> dict[str, Any]:
    """The result of an accepted write, with a warning where the book is nearly full."""
    result: dict[str, Any] = {"ok": True, "id": written.memory.number}
    if not written.changed:
        result["note"] = "Already known; nothing was stored twice."
    target = written.memory.target
    limit = {str(key): value for key, value in book_limits(writer.book.name).items()}[str(target)]
    if limit and (used := writer.used(target)) >= NEARLY_FULL * limit:
        result["warning"] = f"{target} holds {used} of {limit} characters. Merge or drop entries soon."
    return result


def failure(code: str, message: str, **details: Any) -> dict[str, Any]:
    """An error result the model can act on."""
    return {"ok": False, "error": code, "message": message, **details}


def refusal(error: DomainError, writer: BookWriter) -> dict[str, Any]:
    """A refused write; over budget it carries the present entries, so that the model can merge or drop in this turn."""
    result = failure(error.code, str(error), **error.details)
    if isinstance(error, OverBudget):
        rows = live_memories(writer.book.owner_id, writer.book.pk).filter(target=error.details["target"])
        result["entries"] = [{"id": row.number, "content": row.content} for row in rows]
    return result


def write_fields(arguments: _Arguments) -> MemoryFields:
    """What an add or update sets."""
    if isinstance(arguments, AddMemory):
        return MemoryFields(
            content=arguments.content,
            target=arguments.target,
            category=arguments.category,
            keywords=arguments.keywords,
        )
    if isinstance(arguments, UpdateMemory):
        return MemoryFields(content=arguments.content, category=arguments.category, keywords=arguments.keywords)
    raise TypeError(type(arguments).__name__)


def change_json(revision: Revision) -> dict[str, Any]:
    """A change as turns and reviews show it."""
    before = revision.before or {}
    return {
        "action": revision.action,
        "memory_id": str(revision.memory.number),
        "before": before.get("content"),
        "after": None if revision.after.get("deleted_at") else revision.after.get("content"),
        "target": revision.after.get("target"),
        "category": revision.after.get("category"),
        "change_set": str(revision.change_set_id),
    }


def _run_one(call: ToolCall, scope: ToolScope, writer: BookWriter, step: StepResult) -> dict[str, Any]:
    if call.name == read_tool.NAME:
        return read_tool.read_document(call.arguments, scope.book)
    arguments = parse_arguments(call)
    if isinstance(arguments, dict):
        return arguments
    if isinstance(arguments, SearchMemories):
        return _search(arguments, scope, writer)
    if isinstance(arguments, GetMemories):
        return _list(writer)
    try:
        with transaction.atomic():  # a refused write of a batch leaves the others
            written = _write(arguments, writer)
    except DomainError as error:
        return refusal(error, writer)
    if written.revision is not None:
        step.changes.append(change_json(written.revision))
    return success(written, writer)


def _write(arguments: _Arguments, writer: BookWriter) -> Written:
    if isinstance(arguments, UpdateMemory):
        return writer.update(memory_number(arguments.id), write_fields(arguments))
    if isinstance(arguments, DeleteMemory):
        return writer.delete(memory_number(arguments.id))
    return writer.add(write_fields(arguments))


def _search(arguments: SearchMemories, scope: ToolScope, writer: BookWriter) -> dict[str, Any]:
    book = writer.book
    # What this step wrote so far has no generation yet: such a search reads its own view of the rows.
    state = BookState(
        book_id=book.pk, owner_id=book.owner_id, name=book.name, generation=book.generation, epoch=book.epoch
    )
    view = snapshots.fresh_view(state) if writer.change_set else snapshots.view(state)
    hits = view.index.search(
        arguments.query,
        limit=SEARCH_LIMIT,
        keywords=extract_keywords(arguments.query),
        strategy=scope.search,
        category=arguments.category,
    )
    found = (view.by_number[hit.number] for hit in hits)
    return {
        "ok": True,
        "memories": [{"id": e.number, "category": e.category, "content": e.content} for e in found],
    }


def _list(writer: BookWriter) -> dict[str, Any]:
    limits = book_limits(writer.book.name)
    rows = live_memories(writer.book.owner_id, writer.book.pk)
    return {
        "ok": True,
        "memories": [
            {"id": r.number, "target": r.target, "category": r.category, "content": r.content}
            for r in rows
            if not r.blocked
        ],
        "budget": {str(target): {"used": writer.used(target), "limit": limit} for target, limit in limits.items()},
    }


def _schema(tool: type[_Arguments]) -> dict[str, Any]:
    schema = tool.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    for value in schema.get("properties", {}).values():
        value.pop("title", None)
    return schema
