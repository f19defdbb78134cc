"""The response schemas of this app's operations: see memories/api/answers.py."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from memories.api.answers import Evidence, Id, MemoryId, Moment
from reviews.consolidation.standing import Standing


class Write(TypedDict):
    """A write of a review, in the order of the model's calls."""

    index: int
    action: str
    memory_id: MemoryId | None
    target: str
    category: str | None
    keywords: list[str] | None
    before: str | None
    after: str | None
    state: str
    reason: Annotated[str, Field(description="Why it was not saved, or why it waits.")]
    evidence: Evidence
    rule: NotRequired[Annotated[str, Field(description="The rule because of which it waits for a decision.")]]
    edited: NotRequired[bool]
    times: NotRequired[Annotated[int, Field(description="How often it was proposed again while it waited.")]]


class Review(TypedDict):
    """A background review and its writes."""

    id: Id
    object: Literal["review"]
    session_id: Id | None
    state: str
    trigger: str
    attempts: int
    model: str
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None
    usage: dict[str, Any]
    error: dict[str, Any] | None
    dropped_calls: Annotated[dict[str, int], Field(description="The number of dropped calls, by name of the tool.")]
    change_set: Id | None
    writes: list[Write]


class Proposal(TypedDict):
    """A write that waits, or waited, for a decision."""

    id: Id
    object: Literal["proposal"]
    source: Literal["turn", "review", "ingest", "import", "consolidation"]
    action: str
    memory_id: MemoryId | None
    before: str | None
    after: str | None
    target: str
    category: str | None
    reason: Annotated[str, Field(description="Why it waits, as text.")]
    rule: Annotated[str, Field(description="Why it waits, for programs; empty if the agent's settings require it.")]
    evidence: Evidence
    session_id: Id | None
    review_id: Id
    state: Literal["waiting", "approved", "rejected", "expired"]
    times: Annotated[int, Field(description="How often it was proposed.")]
    created_at: Moment
    expires_at: Moment | None


class Consolidation(TypedDict):
    """A consolidation run and its progress."""

    id: Id
    object: Literal["consolidation"]
    book: str
    state: str
    phase: str
    trigger: str
    force: bool
    sessions_total: int
    sessions_done: int
    sessions_empty: int
    sessions_failed: int
    requests: int
    tokens: int
    redacted: int
    dropped: int
    ceiling: str | None
    written: Any
    removed: Any
    kept: Any
    change_set: Id | None
    error: dict[str, Any] | None
    not_before: Moment | None
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None


class StartedConsolidation(Consolidation):
    """A requested run, and the state of the book's sessions."""

    standing: Standing


class ConsolidationPreview(TypedDict):
    """A preview of a run: what it would read, and what it would cost."""

    object: Literal["consolidation_preview"]
    book: str
    enabled: bool
    sessions: list[dict[str, Any]]
    sessions_total: int
    synthesis: bool
    requests: int
    tokens: int
    max_requests: int
    max_tokens: int
    cost: float | None
    obstacle: str | None
    standing: Standing
    text: str
