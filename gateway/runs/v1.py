"""Opens a run for a request that carries its whole context. One transaction finds or creates the session
(gateway.runs.resolve) and opens the run, or resumes the run that waits for the tool results in the request."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice, takewhile
from typing import Any
from uuid import UUID

from django.db import IntegrityError
from django.utils import timezone

from gateway.agents.rows import agent_find
from gateway.attachments.storing import has_large
from gateway.digests import digest
from gateway.errors import SessionBusy
from gateway.messages import SYSTEM_ROLES, joined_content, last_user_index, text_of
from gateway.models import Message, Run, Session
from gateway.runs import fingerprint
from gateway.runs.client_tools import named_run_id, open_continued, with_kept_fields
from gateway.runs.context import SystemContent, TurnContext
from gateway.runs.ending import end_waiting, release_lapsed
from gateway.runs.joined import require_not_running
from gateway.runs.matching import Continuation
from gateway.runs.new_messages import unstored_messages
from gateway.runs.participants import has_names, other_participants
from gateway.runs.renamed_calls import with_our_ids
from gateway.runs.requested import (
    AttachmentsNotStored,
    MatchedSession,
    OtherBranchShown,
    Rule,
    SessionLookup,
    V1Request,
)
from gateway.runs.resolve import keeps_waiting_run, session_match
from gateway.runs.rows import turn_open
from memories.database.shared import is_shared, shareable
from memories.errors import InvalidRequest
from memories.limits import INGEST_MESSAGES

_ROLES = frozenset(Message.Role.values)
_TEXT_PART = frozenset({"type", "text"})
# If a client changes a conversation while continuing it, several sessions begin alike.
_MAX_ALIKE_SESSIONS = 5


def open_v1(
    request: V1Request,
    *,
    fork_if_busy: bool = False,
    continuation: Continuation | None = None,
    lease: datetime | None = None,
) -> TurnContext:
    """Open a run for a request that carries its whole context. `continuation` is the result of `find_continuation` for
    it, and `lease` the lease under which turns after a repeated one were hidden.

    Raises ComparisonNeeded if finding the session takes a (newer) `continuation`; AttachmentsNotStored if attachments
    of earlier messages have to be stored first; LaterTurnsShown if later turns have to be hidden first;
    OtherBranchShown if another branch has to be shown first; ModelNotFound, Unauthorized, InvalidRequest, SessionEnded;
    SameTurnRunning while the same request is being answered; SessionBusy
    while another run of the session is open. With `fork_if_busy` the conversation then continues in a new session that
    remembers its parent."""
    _ = request.conversation, request.said_before  # read before the transaction
    opening = partial(_open, request, continuation, fork_if_busy=fork_if_busy, lease=lease)
    try:
        return opening()
    except IntegrityError:
        if is_shared():  # the shared transaction still contains the earlier inserts
            raise
        return opening()  # another request created the session of that name, or opened a run in it, after our query


@shareable
def _open(
    request: V1Request, continuation: Continuation | None, *, fork_if_busy: bool, lease: datetime | None
) -> TurnContext:
    messages: Sequence[dict[str, Any]] = request.messages
    run_id = named_run_id(messages)
    if run_id and (resumed := open_continued(request, run_id, messages)):
        return resumed
    agent = agent_find(request.caller, request.agent)
    ends_in_results = bool(messages) and messages[-1].get("role") == "tool"
    if last_user_index(request.messages) < 0:
        nothing_said = "Write a message: `/memory` commands and their answers are not sent to a model."
        raise InvalidRequest(
            "No turn waits for these tool results." if ends_in_results else nothing_said, param="messages"
        )
    lookup = SessionLookup(agent=agent, request=request)
    if run_id is None and ends_in_results:
        messages = with_our_ids(lookup, messages)
        renamed_id = named_run_id(messages)
        if renamed_id and (resumed := open_continued(request, renamed_id, messages)):
            return resumed
    match = session_match(lookup, run_id, continuation)
    require_not_running(match, request.conversation, timezone.now())
    try:
        waiting = [] if match.session._state.adding else release_lapsed(match.session, lease=lease)
    except SessionBusy:
        if run_id or not fork_if_busy:  # tool results belong to this session: no fork can take them
            raise
        match, waiting = lookup.new_session(Rule.BUSY, parent_id=match.session.pk), []
    if match.hidden:
        raise OtherBranchShown(match.hidden)
    for run in waiting:
        # The client continues without the results that this run waits for.
        results = [message for message in request.messages if message.get("role") == "tool"]
        end_waiting(run, match.session, results, keep=keeps_waiting_run(run, match, request.conversation))
    return _open_in(match, lookup)


def _open_in(match: MatchedSession, lookup: SessionLookup) -> TurnContext:
    request, conversation, session = lookup.request, lookup.conversation, match.session
    last_user = last_user_index(request.messages)
    before, is_new = request.messages[:last_user], session.message_seq == 0
    if is_new:
        # Earlier messages of a conversation that began elsewhere become history, so that the transcript is complete
        # and the first review reads them: only the latest, to keep the transaction short.
        spoken = (message for message in reversed(before) if message.get("role") in _ROLES)
        earlier = list(islice(spoken, INGEST_MESSAGES))[::-1]
    else:
        earlier = unstored_messages(match, request, before)
    if not request.history_kept and any(has_large(message.get("content")) for message in earlier):
        raise AttachmentsNotStored
    history = len(earlier) if is_new else 0
    if history:
        session.reviewed_through = _known_message_count(session, earlier)
    context, _ = turn_open(
        session,
        [*earlier, request.messages[last_user]],
        history=history,
        others=_other_participants(session, request.messages),
        canonical=conversation.user,
        replaces=match.regenerates,
        history_hash_before=conversation.history_hash_before,
        user_key=conversation.user_key,
        temporary=request.temporary,
        request_id=request.request_id,
        idempotency_key=request.idempotency_key,
        responses=None if request.response is None else {"0": request.response},
        trace={"session": match.as_trace()},
    )
    messages = (*with_kept_fields(lookup.owner_id, request.messages), *request.notes)
    return replace(context, messages=messages, client_system=request.client_system, answer_prefix=conversation.answer)


def _other_participants(session: Session, messages: Sequence[dict[str, Any]]) -> frozenset[str]:
    """Return the names of the participants other than the person. A client may send only the last messages of a group
    chat, so names of earlier ones stay what they were. At most one query, none without names."""
    others = other_participants(messages)
    if others or session._state.adding or not has_names(messages):
        return others
    rows = Message.objects.filter(owner_id=session.owner_id, session=session).order_by("-seq")
    return frozenset(filter(None, rows.values_list("participant", flat=True)[:INGEST_MESSAGES]))


def _known_message_count(session: Session, history: Sequence[dict[str, Any]]) -> int:
    """Return how many messages at the beginning of a new session's history are not reviewed with it, since another
    session contains them. For a fork that is all of them; otherwise it is the turns whose user messages also begin an
    earlier session with this agent, whatever the answers. Two queries, none for a fork."""
    if session.parent_id is not None:
        return len(history)
    user_texts = fingerprint.user_texts(history)
    return _before_turn(history, _known_turns(session.owner_id, session.agent.name, user_texts)) if user_texts else 0


def _known_turns(owner_id: UUID, agent_name: str, texts: Sequence[str]) -> int:
    runs = Run.objects.filter(owner_id=owner_id, superseded=False, temporary=False)
    first = runs.filter(
        history_hash_before=fingerprint.first_history_hash(owner_id, agent_name), user_key=digest(texts[0])
    ).order_by("-id")
    sessions = list(first.values_list("session_id", flat=True)[:_MAX_ALIKE_SESSIONS])
    if not sessions:
        return 0
    rows = runs.filter(session_id__in=sessions, state=Run.State.COMPLETED, turn__lte=len(texts)).order_by("turn")
    known: dict[UUID, list[str]] = {}
    for session_id, key in rows.values_list("session_id", "user_key"):
        known.setdefault(session_id, []).append(key)
    user_keys = list(map(digest, texts))
    alike = (takewhile(lambda pair: pair[0] == pair[1], zip(keys, user_keys, strict=False)) for keys in known.values())
    return max((len(list(pairs)) for pairs in alike), default=0)


def _before_turn(messages: Sequence[dict[str, Any]], turns: int) -> int:
    """Return the number of messages in the first `turns` turns. Consecutive unanswered user messages are one turn."""
    count, answered = 0, True
    for place, message in enumerate(messages):
        if message.get("role") == "user":
            count += answered
            if count > turns:
                return place
            answered = False
        elif message.get("role") == "assistant" and fingerprint.is_said(message.get("content")):
            answered = True
    return len(messages)


def split_system(messages: Sequence[dict[str, Any]]) -> tuple[SystemContent, tuple[dict[str, Any], ...]]:
    """Return the client's leading system and developer messages joined into one content, and the other messages. The
    content is a string, unless a part has more fields than its text, such as `cache_control`."""
    leading = list(takewhile(lambda message: message.get("role") in SYSTEM_ROLES, messages))
    contents = [message.get("content") for message in leading]
    joined = joined_content("", *(text_of(content) if _is_text(content) else content for content in contents))
    return joined, tuple(messages[len(leading) :])


def _is_text(content: Any) -> bool:
    return not isinstance(content, list) or all(part.keys() <= _TEXT_PART for part in content)
