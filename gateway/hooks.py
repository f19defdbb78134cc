"""Events for the apps above: a turn is complete, or a session is forgotten. Listeners are registered when Django
starts, so that the gateway need not import these apps."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from gateway.agents.settings import AgentSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCompleted:
    """A completed, counted user turn, reported inside its closing transaction, with the session's row locked."""

    owner_id: UUID
    session_id: UUID
    run_id: UUID
    agent_name: str
    settings: AgentSettings
    book_id: UUID
    book_epoch: int
    turns_since_review: int
    last_seq: int
    reviewed_through: int


# Each returns True if it has handled the turns so far, so that the session's counter is reset.
TurnListener = Callable[[TurnCompleted], bool]
_listeners: list[TurnListener] = []


def on_turn_completed(listener: TurnListener) -> None:
    """Register a listener; called from an AppConfig's ready()."""
    if listener not in _listeners:
        _listeners.append(listener)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionForgotten:
    """A session that is deleted, or whose record is forgotten, reported inside that transaction, with its row
    locked."""

    owner_id: UUID
    session_id: UUID
    book: str


SessionListener = Callable[[SessionForgotten], None]
_session_listeners: list[SessionListener] = []


def on_session_forgotten(listener: SessionListener) -> None:
    """Register a listener; called from an AppConfig's ready()."""
    if listener not in _session_listeners:
        _session_listeners.append(listener)


def session_forgotten(event: SessionForgotten) -> None:
    """Call every listener."""
    for listener in _session_listeners:
        listener(event)


def turn_completed(event: TurnCompleted) -> bool:
    """Call every listener. Return True if one of them wants the counter reset."""
    return any([listener(event) for listener in _listeners])  # noqa: C419 - every one of them is told
