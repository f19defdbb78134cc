"""Values of the session look-up: a request to /v1, the look-up itself, and the matched session with the reason."""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from gateway.errors import SessionBusy
from gateway.messages import last_user_index
from gateway.models import Agent, Run, Session
from gateway.runs.context import SystemContent, TurnContext
from gateway.runs.fingerprint import ResentConversation, read_conversation
from gateway.runs.own_messages import own_messages
from gateway.runs.session_rows import locked_sessions
from memories.caller import Caller
from memories.database.statements import RowFactory
from memories.errors import Conflict
from memories.limits import INGEST_MESSAGES

_NEW_SESSION = RowFactory(Session)


@dataclass(frozen=True, kw_only=True)
class V1Request:
    """A request for a turn. Its messages are split into the leading system text and the conversation."""

    caller: Caller
    agent: str
    messages: tuple[dict[str, Any], ...]
    client_system: SystemContent
    session_ref: str = ""
    # The id names a chat in which the client talks to several agents: each agent gets a session of its own.
    shared_ref: bool = False
    temporary: bool = False
    idempotency_key: str = ""
    is_retry: bool = False
    request_id: str = ""
    # It has so much text that reading it takes milliseconds.
    is_large: bool = False
    # The last `/memory` command that the request resends, and its answer; `messages` contain no commands.
    after_command: tuple[str, str] | None = None
    # The attachments of all messages are stored; otherwise only those of the newest message are.
    history_kept: bool = False
    # What the client itself wrote after the tool results at the end of the request; `messages` do not contain it.
    notes: tuple[dict[str, Any], ...] = ()
    # For /v1/responses: the run whose stored transcript `messages` begin with, and the request fields to store in
    # `Run.responses`.
    after: UUID | None = None
    response: dict[str, Any] | None = None

    @cached_property
    def conversation(self) -> ResentConversation:
        """The fingerprint of the messages. Reading many messages is slow."""
        return read_conversation(self.caller.owner_id, self.agent, self.messages)

    @cached_property
    def said_before(self) -> list[dict[str, Any]]:
        """The person's own messages directly before the newest one, the latest first. Reading long ones is slow."""
        return own_messages(self.messages[: max(0, last_user_index(self.messages))], INGEST_MESSAGES)


class ComparisonNeeded(Conflict):
    """No hash identifies the session, or the session changed since it was compared: the caller has to call
    `find_continuation` and try again. Raised before anything is stored."""

    def __init__(self) -> None:
        super().__init__("Another request changed this conversation at the same time. Send the request again.")


class AttachmentsNotStored(Conflict):
    """A new session would store earlier messages, whose attachments must be stored first. Nothing is stored yet."""

    def __init__(self) -> None:
        super().__init__("The attachments of earlier messages are not stored. Send the request again.")


class OtherBranchShown(Conflict):
    """The request continues a branch of the session that is not shown: the caller has to show the branch of `run`
    (`gateway.runs.branches`) and try again. Raised before anything is stored."""

    def __init__(self, run: Run) -> None:
        super().__init__("Another version of this conversation is shown. Send the request again.")
        self.run = run


class SameTurnRunning(SessionBusy):
    """The same request is already being answered; details: run_id. `context` is that of a request which waits for the
    answer."""

    def __init__(self, context: TurnContext) -> None:
        super().__init__("The same request is being answered.", run_id=str(context.run_id))
        self.context = context


class Rule(StrEnum):
    """Why a session was chosen. Stored in the run's trace."""

    ID = "id"  # the client named it
    CALL_IDS = "call_ids"  # the request ends with results of calls that were made there
    PREVIOUS_RESPONSE = "previous_response"
    AFTER_COMMAND = "after_command"  # it contained only the command that the request begins with
    SAME_HISTORY = "same_history"  # the request begins with its whole transcript
    UNANSWERED = "unanswered"  # the same, except for a message that was not answered
    SAME_TURN = "same_turn"  # the same request as before
    RETRY = "retry"  # the same first message, which the client declares to be a retry
    ALIKE = "alike"  # the turns have enough in common
    SUMMARY = "summary"  # the request begins with a summary of it that the gateway passed through
    EDITED = "edited"  # new: the request branches off another session at an earlier turn
    SEVERAL = "several"  # new: several sessions fit equally well
    BUSY = "busy"  # new: the matching session was busy with another message
    NEW = "new"

    @classmethod
    def by_content(cls, rule: str | None) -> bool:
        """Return True if a run was opened by a client that named no session; without a rule in its trace it was opened
        by the native API. Equal words that were never answered belong together only between such clients."""
        return rule not in {None, cls.ID}


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedSession:
    """The session of a request (not stored yet if it is new), the run that the request regenerates, and the reason.
    `through` is the number of the last turn of the session that the request is known to contain. `hidden` is a run of
    the branch that the request continues, if that is not shown."""

    session: Session
    rule: Rule
    regenerates: Run | None = None
    through: int = 0
    hidden: Run | None = None
    common: dict[str, int] = field(default_factory=dict)

    def as_trace(self) -> dict[str, Any]:
        """Return the reason for the run's trace. It contains no text of the conversation."""
        return {"rule": self.rule.value, **({"common": self.common} if self.common else {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLookup:
    """The look-up of the session of a request to an agent."""

    agent: Agent
    request: V1Request

    @property
    def owner_id(self) -> UUID:
        return self.request.caller.owner_id

    @property
    def conversation(self) -> ResentConversation:
        return self.request.conversation

    def sessions(self, **filters: Any) -> "QuerySet[Session]":
        """Return the sessions in which the request may continue. Rows that are read are locked."""
        active = {"agent": self.agent, "state": Session.State.ACTIVE, "temporary": self.request.temporary}
        return locked_sessions(self.owner_id).filter(**active, **filters)

    def every_run(self, **filters: Any) -> "QuerySet[Run]":
        """Return the owner's runs with this agent, shown and hidden, newest first."""
        agent = {"session__agent": self.agent, "session__deleted_at": None}
        return Run.objects.filter(owner_id=self.owner_id, **agent, **filters).order_by("-id")

    def runs(self, **filters: Any) -> "QuerySet[Run]":
        """Return the shown ones of `every_run`, with their sessions."""
        return self.every_run(superseded=False, **filters).select_related("session__agent")

    def active_runs(self, **filters: Any) -> "QuerySet[Run]":
        """Return those of `runs` in whose sessions the request may continue."""
        return self.runs(**self.in_active_session, **filters)

    @property
    def in_active_session(self) -> dict[str, Any]:
        """Filters for runs in whose sessions the request may continue."""
        return {"session__state": Session.State.ACTIVE, "session__temporary": self.request.temporary}

    def new_session(
        self, rule: Rule = Rule.NEW, *, common: dict[str, int] | None = None, **fields: Any
    ) -> MatchedSession:
        """Return a new session with these fields. It is inserted, with its final values, once its first run is open."""
        temporary = self.request.temporary
        session = _NEW_SESSION.row(owner_id=self.owner_id, agent_id=self.agent.pk, temporary=temporary, **fields)
        session.agent = self.agent
        return MatchedSession(session=session, rule=rule, common=common or {})
