"""The type of a tool: its name and texts, its arguments and results with their JSON Schemas, where it is offered, and
its handler."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, TypeAdapter, model_validator

from memories.evidence import Conversation, HeldWrites, Hold
from memories.json_output import Fixed
from memories.limits import KEYWORD_LENGTH, KEYWORDS_GIVEN, QUERY_LENGTH, QUOTE_LENGTH
from memories.models import Book
from memories.recall.book_views import BookState
from memories.services import BookWriter


def _at_most(most: int, refusal: str) -> AfterValidator:
    def check(text: str) -> str:
        if len(text) > most:
            raise ValueError(refusal)
        return text

    return AfterValidator(check)


def _check_keywords(keywords: list[str]) -> list[str]:
    if len(keywords) > KEYWORDS_GIVEN or any(len(keyword) > KEYWORD_LENGTH for keyword in keywords):
        raise ValueError(f"give at most {KEYWORDS_GIVEN} keywords of at most {KEYWORD_LENGTH} characters")
    return keywords


def _separated(given: Any) -> Any:
    """Return keywords that were written as one text, with commas or as JSON, as a list."""
    if not isinstance(given, str):
        return given
    words = (word.strip(" \"'") for word in given.strip("[] ").split(","))
    return [word for word in words if word]


# Checked, but not part of the schema that models get: some servers turn a `maxLength` into a grammar that they refuse.
BoundedQuery = Annotated[str, _at_most(QUERY_LENGTH, f"a query has at most {QUERY_LENGTH} characters")]
BoundedQuote = Annotated[
    str, _at_most(QUOTE_LENGTH, f"a quote has at most {QUOTE_LENGTH} characters: the few words that say it")
]
BoundedKeywords = Annotated[list[str], BeforeValidator(_separated), AfterValidator(_check_keywords)]


_OK = {"type": "boolean", "description": "Whether the call did what it was asked to."}
_REFUSAL = {
    "error": {"type": "string", "description": "With ok: false. What is wrong, for programs."},
    "message": {"type": "string", "description": "With ok: false. What is wrong and what to do about it."},
}


class Arguments(BaseModel):
    """What a call of a tool takes; unknown and missing arguments are refused. `null` is an argument that was not given:
    some models write all that there are."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if value is not None}


class Stage(StrEnum):
    """Where a tool is offered."""

    MEMORY = "memory"  # in the conversation, if the agent has `tools: [{type: memory}]`
    DOCUMENTS = "documents"  # in the conversation, if it has that or if past sessions are consolidated
    REVIEW = "review"
    MCP = "mcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call as the model made it; `arguments` is its JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolScope:
    """Whose book the tools of a run work on; without session and run, of a client of /mcp, which is the actor.

    `conversation` is what a write can rest on, None where nothing is known of it; `hold` is what of the writes waits
    for a person; `vectors` are those of what its calls search for, by text."""

    book: BookState
    search: str
    session_id: UUID | None
    run_id: UUID | None
    actor: str = "model"
    agent: str = ""
    conversation: Conversation | None = None
    hold: Hold = Hold.UNTRUSTED
    vectors: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass(slots=True)
class ToolResults:
    """What the calls of one model step came to: a result text for each call id, and the changes that were made."""

    results: dict[str, str] = field(default_factory=dict)
    changes: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ToolRun:
    """What a handler works with: the scope, the book, the writer of the step's change set (None in a step that only
    reads, which holds no lock), the step's changes so far, and its writes that wait for a person."""

    scope: ToolScope
    book: Book
    writer: BookWriter | None
    step: ToolResults
    held: HeldWrites

    @property
    def writing(self) -> BookWriter:
        """The writer, for tools that write."""
        if self.writer is None:
            raise TypeError("a step that only reads has no writer")
        return self.writer


@dataclass(frozen=True, slots=True)
class Words:
    """What the chat page says while a tool works, and when it is done."""

    doing: str
    done: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One entry of the table of tools. `handler` returns the result that the model is given, with `ok`.

    `scan_ahead` scans what the arguments would store, without the database, before the lock of the book is taken.
    `detail` names an argument that people are shown: it stands for `{}` in `detailed`, which the page uses instead of
    `words` when the model gave that argument."""

    name: str
    title: str  # for people, in clients of /mcp
    description: str  # for models
    arguments: type[Arguments]
    handler: Callable[[ToolRun, Any], dict[str, Any]]
    result: type  # the TypedDict of what the handler returns with `ok: true`
    scan_ahead: Callable[[Any], None] | None = None
    stages: frozenset[Stage]
    writes: bool = False
    destructive: bool = False  # changes or removes what was stored before
    words: Words
    detail: str = ""
    detailed: Words | None = None

    def __post_init__(self) -> None:
        if self.destructive and not self.writes:
            raise ValueError(f"{self.name}: a tool that only reads cannot be destructive")
        if Stage.REVIEW in self.stages and not self.writes:
            raise ValueError(f"{self.name}: reviews are offered tools that write only; they read nothing more")
        if bool(self.detail) != bool(self.detailed) or (self.detail and self.detail not in self.arguments.model_fields):
            raise ValueError(f"{self.name}: the detail {self.detail!r} is an argument, and has words")

    def definition(self) -> dict[str, Any]:
        """Return the tool as an OpenAI function definition. It is shared: not to be changed."""
        return _definition(self)


@cache
def _definition(tool: Tool) -> Fixed:
    function = {"name": tool.name, "description": tool.description, "parameters": schema(tool.arguments)}
    return Fixed({"type": "function", "function": function})


def schema(arguments: type[Arguments]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments, without the titles that pydantic makes of their names."""
    found = arguments.model_json_schema()
    found.pop("title", None)
    found.pop("description", None)
    for value in found.get("properties", {}).values():
        value.pop("title", None)
    return found


def output_schema(result: type) -> dict[str, Any]:
    """Return the schema of a tool's results: `result`, a TypedDict, where `ok` is true, else a refusal, which may carry
    further details. The root is an object with properties, as clients of every version of MCP want it."""
    schema = TypeAdapter(result).json_schema()
    types = schema.pop("$defs", {})
    properties = {name: _plain(value, types) for name, value in schema["properties"].items()}
    return {
        "type": "object",
        "properties": {"ok": _OK, **{k: v for k, v in properties.items() if k != "ok"}, **_REFUSAL},
        "required": ["ok"],
        "anyOf": [
            {"properties": {"ok": {"const": True}}, "required": schema["required"]},
            {"properties": {"ok": {"const": False}}, "required": ["ok", *_REFUSAL]},
        ],
    }


def _plain(schema: Any, types: dict[str, Any]) -> Any:
    """Return a schema without references and without the titles that pydantic makes of names."""
    if isinstance(schema, list):
        return [_plain(part, types) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _plain(types[schema["$ref"].rpartition("/")[2]], types)
    named = {"properties": {name: _plain(part, types) for name, part in schema.get("properties", {}).items()}}
    rest = {key: _plain(part, types) for key, part in schema.items() if key not in {"title", "description"}}
    described = {"description": schema["description"]} if isinstance(schema.get("description"), str) else {}
    return {**described, **rest, **(named if "properties" in schema else {})}


def failure(code: str, message: str, **details: Any) -> dict[str, Any]:
    """Return an error result the model can act on."""
    return {"ok": False, "error": code, "message": message, **details}
