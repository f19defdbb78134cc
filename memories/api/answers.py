"""Response schemas, for the OpenAPI document and for the JSON of rows. A test compares real responses with them."""

from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired
from uuid import UUID

from pydantic import ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core.core_schema import CoreSchema, any_schema, wrap_serializer_function_ser_schema
from typing_extensions import TypedDict

Id = Annotated[str, Field(description="A UUID.")]
MemoryId = Annotated[str, Field(description="The memory's number, as text.", examples=["42"])]
Moment = Annotated[datetime, Field(description="A time in UTC.", examples=["2026-11-22T09:30:00Z"])]
_MEMORY: dict[str, Any] = {
    "id": "42", "object": "memory", "book": "main", "target": "user", "category": "food", "content": "Is vegetarian.",
    "keywords": ["diet", "cooking"], "metadata": {"source": "crm"}, "write_origin": "tool", "pinned": False,
    "evidence": {"kind": "own_words", "quote": "I am vegetarian", "session_id": None, "turn_id": None},
    "blocked": False, "usage_count": 3, "last_used_at": "2026-11-22T09:30:00Z", "expires_at": None, "version": 1,
    "session_id": "01a20650-d0a0-7484-b03a-04197972ff6f", "review_id": None, "created_at": "2026-11-20T18:00:00Z",
    "updated_at": "2026-11-20T18:00:00Z",
}  # fmt: skip


class Evidence(TypedDict):
    """The quote that a memory is based on, and where it was said."""

    kind: Annotated[
        Literal["own_words", "pasted", "tool", "assistant", "recalled", "hand", "none"],
        Field(description="The source of the quote; `hand`: the memory was written by hand; `none`: not known."),
    ]
    quote: str
    session_id: Id | None
    turn_id: Id | None


class Memory(TypedDict):
    """A memory."""

    __pydantic_config__ = ConfigDict(json_schema_extra={"examples": [_MEMORY]})  # type: ignore[misc]

    id: MemoryId
    object: Literal["memory"]
    book: str
    target: Annotated[str, Field(description="Whom it is about: `user`, or `memory` for the agent's own notes.")]
    category: str
    content: str
    keywords: list[str]
    metadata: Annotated[dict[str, str], Field(description="Strings by key, for programs; never sent to a model.")]
    write_origin: Annotated[str, Field(description="The kind of writer that created it.")]
    evidence: Evidence
    pinned: bool
    blocked: Annotated[bool, Field(description="Blocked by the scan: it is stored, but never injected.")]
    usage_count: int
    last_used_at: Moment | None
    expires_at: Moment | None
    version: Annotated[int, Field(description="Increases with each change; also the ETag.")]
    session_id: Id | None
    review_id: Id | None
    created_at: Moment
    updated_at: Moment


class FoundMemory(Memory):
    """A search result."""

    score: float
    why: Annotated[Any, Field(description="The words or keywords that matched, for people.")]


class Page(TypedDict):
    """The envelope of a list; `after` takes `last_id` for the next page."""

    object: Literal["list"]
    has_more: bool
    first_id: str | None
    last_id: str | None


class _Documented:
    """Marks the type of an answer for the OpenAPI document only. Validating every answer would slow down requests; a
    test compares answers with their types instead."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        return any_schema(
            metadata={"pydantic_js_annotation_functions": [lambda _, json_schema_of: json_schema_of(schema)]},
            serialization=wrap_serializer_function_ser_schema(lambda value, _: value, schema=schema),
        )


def documented(shape: Any) -> Any:
    """Return the `response` of an operation that answers with this type."""
    return Annotated[shape, _Documented()]


def list_of(entry: Any, description: str, *, name: str = "") -> Any:
    """Return the `response` of an operation that answers with a list of entries. Its schema is named `name`, or after
    its entries with the suffix `List`."""

    class Shape(Page):
        data: list[entry]

    Shape.__name__ = Shape.__qualname__ = name or f"{entry.__name__}List"
    Shape.__doc__ = description
    return documented(Shape)


def as_shape(shape: type, row: Any, **values: Any) -> dict[str, Any]:
    """Return the fields of a schema, from `values` or else from the row's attributes. UUIDs become strings."""
    fields = {name: values[name] if name in values else getattr(row, name) for name in shape.__annotations__}
    return {name: str(value) if isinstance(value, UUID) else value for name, value in fields.items()}


class Revision(TypedDict):
    """A revision of a memory."""

    id: Id
    object: Literal["revision"]
    action: str
    before: Annotated[dict[str, Any] | None, Field(description="The fields before; null for a new memory.")]
    after: dict[str, Any]
    evidence: Evidence
    actor: str
    write_origin: str
    change_set: Id
    review_id: Id | None
    session_id: Id | None
    created_at: Moment


class Change(TypedDict):
    """A change to a memory, as turns and reviews show it."""

    action: str
    memory_id: MemoryId
    before: str | None
    after: str | None
    target: str | None
    category: str | None
    change_set: Id


class Undone(TypedDict):
    """The result of an undo. Memories and documents that were changed since are left alone, and so are memories
    whose earlier text another one has by now."""

    change_set: Annotated[str | None, Field(description="The undo's own change set; undo it to redo the changes.")]
    undone: list[MemoryId]
    left_alone: list[MemoryId]
    documents: list[str]
    documents_left_alone: list[str]
    conversations: Annotated[int, Field(description="Imported conversations that were permanently removed.")]
    proposals: Annotated[int, Field(description="Imported lines waiting for a decision that were withdrawn.")]


class BulkEdited(TypedDict):
    """The result of a bulk edit. Memories that do not exist or need no change are left alone."""

    change_set: Annotated[str | None, Field(description="Undo it to undo the whole edit.")]
    changed: list[MemoryId]
    left_alone: list[MemoryId]


class Notification(TypedDict):
    """An event in the background."""

    id: str
    kind: str
    text: str
    review_id: Id | None
    memory_ids: list[MemoryId]
    created_at: Moment | None


class BookHealth(TypedDict):
    """The health of a book, in figures and as `text`. Which figures are present depends on the enabled features."""

    object: Literal["book_health"]
    book: str
    memories: int
    blocked: int
    last_write_at: Moment | None
    targets: dict[str, dict[str, int]]
    vectors: NotRequired[int]
    text: str


class ImportedConversation(TypedDict):
    """An imported conversation, stored as an ended session."""

    title: str
    messages: int
    created_at: Moment | None


class ImportedConversations(TypedDict):
    """The conversations of an import."""

    new: int
    known: int
    messages: Annotated[int, Field(description="Messages of the new conversations.")]
    titles: Annotated[list[ImportedConversation], Field(description="The first new conversations.")]


class DiffPiece(TypedDict):
    """A stretch of text that is kept, deleted or inserted."""

    kind: Literal["same", "del", "ins"]
    text: str


class Rewording(TypedDict):
    """How a line of an import would change the text of a memory."""

    line: int
    place: str
    pieces: Annotated[
        list[DiffPiece], Field(description="Without `ins` they join to the old text, without `del` to the new one.")
    ]


class Import(TypedDict):
    """The result of an import, or of its preview."""

    object: Literal["import"]
    format: Annotated[str, Field(description="The formats that were read.", examples=["chatgpt"])]
    lines: Annotated[int, Field(description="Memories in the file.")]
    new: int
    known: int
    changed: int
    blocked: int
    refused: int
    held: Annotated[int, Field(description="Entries that wait for a decision.")]
    conversations: ImportedConversations
    written: bool
    change_sets: list[Id]
    added: Annotated[list[dict[str, Any]], Field(description="The first memories that a preview would add.")]
    rewordings: Annotated[list[Rewording], Field(description="The first texts that a preview would change.")]
    waiting: Annotated[list[dict[str, Any]], Field(description="The first entries that wait, with the reasons.")]
    problems: Annotated[list[dict[str, Any]], Field(description="Entries that were left out, with place and reason.")]


class Receipt(TypedDict):
    """A receipt of what was forgotten, in numbers."""

    object: Literal["receipt"]
    erased: dict[str, int]
    books: list[str]
    at: Moment


class Artifact(TypedDict):
    """A document of a book."""

    path: Annotated[str, Field(examples=["MEMORY.md"])]
    content: str
    version: int
    write_origin: str
    kept: Annotated[bool, Field(description="Consolidation no longer names it; it stays because a person edited it.")]
    updated_at: Moment


class AuditEntry(TypedDict):
    """A recorded access to, or change of, an owner's data."""

    id: Id
    object: Literal["audit_entry"]
    at: Moment
    actor: str | None
    actor_id: str | None
    action: str
    kind: str | None
    object_id: str | None
    owner: str | None
    owner_id: str | None
    count: int | None
    note: str | None
    address: str | None
    request_id: str | None


ETAGS = frozenset({"memory_add", "memory_read", "memory_patch", "memory_put_back", "artifact_read", "artifact_write"})
"""Operations whose responses have an ETag."""
IF_MATCH = frozenset({"memory_patch", "memory_delete", "artifact_write"})  # operations that honour If-Match
