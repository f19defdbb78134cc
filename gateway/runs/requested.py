"""A request to /v1 for a turn, what its session is looked for by, and the session that was found, with the reason."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from gateway.errors import SessionBusy
from gateway.models import Agent, Run, Session
from gateway.runs.context import SystemContent
from gateway.runs.fingerprint import Conversation
from gateway.runs.session_rows import locked_sessions
from memories.caller import Caller
from memories.database.statements import RowFactory
from memories.errors import Conflict

_NEW_SESSION = RowFactory(Session)


@dataclass(frozen=True, slots=True, kw_only=True)
class V1Request:
    """A request for a turn, its messages split into leading system text and the conversation."""

    agent: str
    messages: tuple[dict[str, Any], ...]
    client_system: SystemContent
    session_ref: str = ""
    # The id is a chat's of a client that talks to several agents in one chat: each has a session of its own there.
    shared_ref: bool = False
    temporary: bool = False
    idempotency_key: str = ""
    is_retry: bool = False
    request_id: str = ""
    # The last `/memory` command that the request resends, with its answer; among the messages there is none.
    after_command: tuple[str, str] | None = None
    # What is attached to all of its messages was stored; else to the newest only, which every turn stores.
    history_kept: bool = False
    # The run whose stored transcript the messages begin with, and what is to be kept of this request with its run: both
    # of /v1/responses.
    after: UUID | None = None
    response: dict[str, Any] | None = None


class SessionUnknown(Conflict):
    """No session is known by the hash of its conversation, or the one that was found went on meanwhile: what the turns
    have in common must be looked at. Raised before anything was stored."""

    def __init__(self) -> None:
        super().__init__("Another request changed this conversation at the same moment. Send it again.")


class HistoryUnkept(Conflict):
    """The session is new and keeps what was said before, and what is attached to that is to be stored first. Raised
    before anything was stored."""

    def __init__(self) -> None:
        super().__init__("What is attached to earlier messages was not stored. Send it again.")


class SameTurnRunning(SessionBusy):
    """The same request is being answered; details: run_id."""


class Rule(StrEnum):
    """Why a session was chosen. Kept in the run's trace."""

    ID = "id"  # the client named it
    CALL_IDS = "call_ids"  # results of calls that were made there
    PREVIOUS_RESPONSE = "previous_response"
    AFTER_COMMAND = "after_command"  # it held nothing but the command that the request begins with
    SAME_HISTORY = "same_history"  # its whole transcript is what the request begins with
    UNANSWERED = "unanswered"  # so it is, but for a message that was not answered
    SAME_TURN = "same_turn"  # the same request as before
    RETRY = "retry"  # the same first message, and the client says that it repeats it
    ALIKE = "alike"  # their turns have enough in common
    SUMMARY = "summary"  # the request begins with a summary of it that was written here
    EDITED = "edited"  # new: it leaves another session at an earlier turn
    SEVERAL = "several"  # new: several sessions fit equally well
    BUSY = "busy"  # new: its session was busy with another message
    NEW = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMatch:
    """The session (not stored yet, if it is new), the run whose turn is asked for again, and the reason. `through`: the
    number of the last turn of it that the request is known to hold."""

    session: Session
    rule: Rule
    regenerates: Run | None = None
    through: int = 0
    common: dict[str, int] = field(default_factory=dict)

    def as_trace(self) -> dict[str, Any]:
        """Return the reason, as a run's trace keeps it: no word of what was said."""
        return {"rule": self.rule.value, **({"common": self.common} if self.common else {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a session is looked for by: a request, its caller, its agent, and what identifies its conversation."""

    caller: Caller
    agent: Agent
    request: V1Request
    conversation: Conversation

    def sessions(self, **filters: Any) -> "QuerySet[Session]":
        """Return the sessions that it may go on in; those that are read are locked."""
        active = {"agent": self.agent, "state": Session.State.ACTIVE, "temporary": self.request.temporary}
        return locked_sessions(self.caller).filter(**active, **filters)

    def runs(self, **filters: Any) -> "QuerySet[Run]":
        """Return the owner's runs with the agent that were not replaced, with their sessions, newest first."""
        standing = {"superseded": False, "session__agent": self.agent, "session__deleted_at": None}
        rows = Run.objects.filter(owner_id=self.caller.owner_id, **standing, **filters)
        return rows.select_related("session__agent").order_by("-id")

    def active_runs(self, **filters: Any) -> "QuerySet[Run]":
        """Return those of the runs in whose sessions it may go on."""
        temporary = self.request.temporary
        return self.runs(session__state=Session.State.ACTIVE, session__temporary=temporary, **filters)

    def same_turn(self) -> dict[str, str]:
        """Return the filters of a run that was opened for the same conversation."""
        conversation = self.conversation
        return {"history_hash_before": conversation.history_hash_before, "user_key": conversation.user_key}

    def new_session(
        self,
        rule: Rule = Rule.NEW,
        *,
        parent: UUID | None = None,
        external_id: str | None = None,
        common: dict[str, int] | None = None,
    ) -> SessionMatch:
        """Return a new session, inserted with its final values when its first run is open."""
        session = _NEW_SESSION.row(
            owner_id=self.caller.owner_id,
            agent_id=self.agent.pk,
            temporary=self.request.temporary,
            external_id=external_id,
            parent_id=parent,
        )
        session.agent = self.agent
        return SessionMatch(session=session, rule=rule, common=common or {})
