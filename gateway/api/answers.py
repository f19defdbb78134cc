"""Types of the answers of the native API, for the OpenAPI document. See memories/api/answers.py."""

from datetime import date
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from memories.api.answers import Change, Id, MemoryId, Moment, Page

_SESSION: dict[str, Any] = {
    "id": "01a20650-d0a0-7484-b03a-04197972ff6f",
    "object": "session",
    "agent": "assistant",
    "title": "What could I cook?",
    "state": "active",
    "temporary": False,
    "pinned": False,
    "archived": False,
    "tags": ["kitchen"],
    "turns": 2,
    "turns_since_memory_review": 2,
    "created_at": "2026-11-22T09:30:00Z",
    "last_active_at": "2026-11-22T09:31:00Z",
}


class Session(TypedDict):
    """A conversation with an agent."""

    __pydantic_config__ = ConfigDict(json_schema_extra={"examples": [_SESSION]})  # type: ignore[misc]

    id: Id
    object: Literal["session"]
    agent: str
    title: str
    state: str
    temporary: bool
    pinned: bool
    archived: bool
    tags: Annotated[list[str], Field(description="In lower case.")]
    turns: int
    turns_since_memory_review: int
    created_at: Moment
    last_active_at: Moment


class SessionMatch(TypedDict):
    """A message that a search found."""

    message_id: str
    turn_id: Id | None
    role: Literal["user", "assistant"]
    snippet: str
    highlights: Annotated[list[tuple[int, int]], Field(description="Where the query's words are in the snippet.")]
    created_at: Moment


class ListedSession(Session):
    """A session in a list, with its matches if `search` was given."""

    matches: NotRequired[Annotated[list[SessionMatch], Field(description="The newest three.")]]
    match_count: NotRequired[int]


class Message(TypedDict):
    """One message of a transcript."""

    id: str
    object: Literal["message"]
    role: Literal["user", "assistant", "tool", "system"]
    content: Annotated[str | list[dict[str, Any]], Field(description="Text, or OpenAI's content parts.")]
    tool_calls: list[dict[str, Any]] | None
    tool_call_id: str | None
    kind: str
    turn_id: Id | None
    superseded: Annotated[bool, Field(description="True for a turn of a branch that is not shown.")]
    follows: Annotated[
        Id | None, Field(description="The previous turn. Turns that follow the same turn are versions of each other.")
    ]
    created_at: Moment


class Recalled(TypedDict):
    """A memory that the model was given."""

    memory_id: MemoryId | None
    turn_id: Id | None
    lane: Literal["frozen", "short_term", "long_term"]
    why: str


class Turn(TypedDict):
    """A message and its answer."""

    id: Id
    object: Literal["turn"]
    session_id: Id
    turn: int
    kind: NotRequired[Annotated[Literal["command"], Field(description="A command, for which no model was called.")]]
    state: str
    content: str
    reasoning: NotRequired[Annotated[str, Field(description="The model's reasoning, up to a limit.")]]
    tool_calls: Annotated[list[dict[str, Any]], Field(description="Calls of your tools that wait for results.")]
    recalled: list[Recalled]
    memory_changes: list[Change]
    usage: dict[str, Any]
    turns_since_memory_review: int
    error: dict[str, Any] | None


class StoppedTurn(TypedDict):
    """A turn that was stopped."""

    id: Id
    object: Literal["turn"]
    session_id: Id
    state: str


class Key(TypedDict):
    """An API key, without its plain text."""

    id: Id
    object: Literal["key"]
    name: str
    prefix: Annotated[str, Field(description="How its plain text begins.", examples=["dbk_4f1a"])]
    read_only: bool
    trusted: bool
    agents: Annotated[list[str], Field(description="Agents it may use; none: all.")]
    books: Annotated[list[str], Field(description="Books it may use; none: those of its agents, or all.")]
    requests_per_minute: Annotated[int, Field(description="0 is no limit, here and below.")]
    tokens_per_day: int
    money_per_day: Annotated[float, Field(description="In the currency of the prices.")]
    streams_at_once: int
    expires_at: Moment | None
    created_at: Moment
    last_used_at: Moment | None
    revoked_at: Moment | None


class NewKey(Key):
    """An API key with its plain text, which is only in this answer."""

    key: str


class Usage(TypedDict):
    """The usage of a day, a key, an agent or a model."""

    id: str
    object: Literal["usage"]
    day: NotRequired[Annotated[date, Field(description="With `by=day`.")]]
    key: NotRequired[Annotated[Id | None, Field(description="With `by=key`; null for usage by a login.")]]
    agent: NotRequired[Annotated[str, Field(description="With `by=agent`; empty for usage without an agent.")]]
    model: NotRequired[Annotated[str, Field(description="With `by=model`.")]]
    name: NotRequired[Annotated[str | None, Field(description="With `by=key`: the key's name.")]]
    turns: int
    requests: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    unpriced_requests: int
    cost: Annotated[float | None, Field(description="In the currency of the prices; null if nothing has a price.")]


# In call syntax, since `from` is a keyword.
_Days = TypedDict("_Days", {"from": date, "to": date})


class UsageList(Page, _Days):
    """Totals of UTC days, grouped."""

    data: list[Usage]
    by: Literal["day", "key", "agent", "model"]


class Webhook(TypedDict):
    """An address to which notifications are sent."""

    id: Id
    object: Literal["webhook"]
    url: str
    kinds: list[str]
    state: Literal["active", "failing", "disabled"]
    note: Annotated[str, Field(description="Why it fails, or was disabled.")]
    failures: int
    last_delivered_at: Moment | None
    last_failed_at: Moment | None
    next_attempt_at: Moment | None
    disabled_at: Moment | None
    created_at: Moment


class NewWebhook(Webhook):
    """A webhook with the secret that signs its notifications, which is only in this answer."""

    secret: Annotated[str, Field(examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])]
