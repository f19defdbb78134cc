"""The definition of a tool: name and texts, arguments and results with their JSON Schemas, stages and handler."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, TypeAdapter, model_validator

from memories.evidence import Conversation, HeldWrites, Hold
from memories.json_output import ConstantDict
from memories.limits import KEYWORD_LENGTH, KEYWORDS_GIVEN, QUERY_LENGTH, QUOTE_LENGTH
from memories.models import Book
from memories.recall.book_views import BookState
from memories.services import BookWriter


def _max_length(limit: int, refusal: str) -> AfterValidator:
    def check(text: str) -> str:
        if len(text) > limit:
            raise ValueError(refusal)
        return text

    return AfterValidator(check)


def _check_keywords(keywords: list[str]) -> list[str]:
    if len(keywords) > KEYWORDS_GIVEN or any(len(keyword) > KEYWORD_LENGTH for keyword in keywords):
        raise ValueError(f"give at most {KEYWORDS_GIVEN} keywords of at most {KEYWORD_LENGTH} characters")
    return keywords


def _split_keywords(given: Any) -> Any:
    """Split keywords that a model wrote as one string, comma-separated or as JSON."""
    if not isinstance(given, str):
        return given
    words = (word.strip(" \"'") for word in given.strip("[] ").split(","))
    return [word for word in words if word]


# Validated, but not in the schema for models: some servers turn `maxLength` into a grammar that they then refuse.
BoundedQuery = Annotated[str, _max_length(QUERY_LENGTH, f"a query has at most {QUERY_LENGTH} characters")]
BoundedQuote = Annotated[
    str, _max_length(QUOTE_LENGTH, f"a quote has at most {QUOTE_LENGTH} characters: the few words that say it")
]
BoundedKeywords = Annotated[list[str], BeforeValidator(_split_keywords), AfterValidator(_check_keywords)]


_OK = {"type": "boolean", "description": "Whether the call did what it was asked to."}
_REFUSAL = {
    "error": {"type": "string", "description": "With ok: false. What is wrong, for programs."},
    "message": {"type": "string", "description": "With ok: false. What is wrong and what to do about it."},
}


class Arguments(BaseModel):
    """The base class of tool arguments. Unknown and missing ones are refused. `null` counts as not given, since some
    models always write all arguments, and 42.0 as 42, as in JSON Schema."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _as_meant(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in given.items()
            if value is not None
        }


class Stage(StrEnum):
    """Where a tool is offered."""

    MEMORY = "memory"  # in the conversation, if the agent has `tools: [{type: memory}]`
    DOCUMENTS = "documents"  # in the conversation, if it has that or if past sessions are consolidated
    REVIEW = "review"  # for tools that write only: a review reads nothing more
    MCP = "mcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call by a model; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolScope:
    """The book and context of tool calls. Session and run are None for a client of /mcp, which is the actor.

    `conversation` is the evidence for writes, None if it is not known; `hold` decides which writes wait for a person;
    `vectors` are the query vectors of searches, by text; `held` is the number of writes held earlier in the turn."""

    book: BookState
    search: str
    session_id: UUID | None
    run_id: UUID | None
    actor: str = "model"
    agent: str = ""
    conversation: Conversation | None = None
    hold: Hold = Hold.UNTRUSTED
    vectors: Mapping[str, Sequence[float]] = field(default_factory=dict)
    held: int = 0


@dataclass(slots=True)
class ToolResults:
    """The results of a step's calls as JSON text by call id, their changes, and the number of held writes."""

    results: dict[str, str] = field(default_factory=dict)
    changes: list[dict[str, Any]] = field(default_factory=list)
    held: int = 0


@dataclass(frozen=True, slots=True)
class ToolRun:
    """The context of a handler: the scope, the book, the writer of the step's change set (None if the step only reads
    and takes no lock), the step's results so far, and its held writes."""

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
    """The status texts of the chat page, while a tool runs and afterwards."""

    doing: str
    done: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """An entry of the table of tools. `handler` returns the result for the model, with `ok`.

    `detail` names an argument to show to people: it replaces `{}` in `detailed`, which the page uses instead of `words`
    if the model gave that argument."""

    name: str
    title: str  # for people, in clients of /mcp
    description: str  # for models
    arguments: type[Arguments]
    handler: Callable[[ToolRun, Any], dict[str, Any]]
    result: type  # the TypedDict of what the handler returns with `ok: true`
    stages: frozenset[Stage]
    writes: bool = False
    destructive: bool = False  # changes or removes what was stored before
    words: Words
    detail: str = ""
    detailed: Words | None = None

    def definition(self) -> dict[str, Any]:
        """Return the tool as an OpenAI function definition, which is shared and must not be modified."""
        return _definition(self)


@cache
def _definition(tool: Tool) -> ConstantDict:
    function = {"name": tool.name, "description": tool.description, "parameters": schema(tool.arguments)}
    return ConstantDict({"type": "function", "function": function})


def schema(arguments: type[Arguments]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments, without the titles that pydantic derives from names."""
    found: dict[str, Any] = _plain(arguments.model_json_schema(), {})
    found.pop("description", None)
    return found


def output_schema(result: type) -> dict[str, Any]:
    """Return the JSON Schema of a tool's results: `result`, a TypedDict, if `ok` is true, else a refusal, which may
    have further fields. The root is an object with properties, as clients of all MCP versions require."""
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
    """Return a schema with references resolved and without the titles that pydantic derives from names."""
    if isinstance(schema, list):
        return [_plain(part, types) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _plain(types[schema["$ref"].rpartition("/")[2]], types)
    plain = {}
    for key, part in schema.items():
        if key == "properties":
            plain[key] = {name: _plain(value, types) for name, value in part.items()}
        elif key != "title":
            plain[key] = _plain(part, types)
    return plain


def failure(code: str, message: str, **details: Any) -> dict[str, Any]:
    """Return an error result that the model can act on."""
    return {"ok": False, "error": code, "message": message, **details}
