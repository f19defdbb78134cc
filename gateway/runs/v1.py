"""Opening a run for a request that carries its whole context: one transaction finds or makes the session
(gateway.runs.resolve) and opens the run in it, or takes up the run that waits for the tool results it brings."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from django.db import IntegrityError
from django.utils import timezone

from gateway.agents.rows import agent_find
from gateway.attachments.storing import has_large_data
from gateway.errors import SessionBusy
from gateway.models import Message
from gateway.runs import fingerprint
from gateway.runs.attached import said_beside
from gateway.runs.client_tools import named_run_id, open_continued, with_dropped
from gateway.runs.context import SystemContent, TurnContext
from gateway.runs.history import known_messages
from gateway.runs.joined import require_not_running
from gateway.runs.lapsed import release_lapsed
from gateway.runs.matching import Verdict
from gateway.runs.requested import Asked, HistoryUnkept, Rule, SessionMatch, V1Request
from gateway.runs.resolve import goes_on_from, session_match
from gateway.runs.responses import response_keep
from gateway.runs.rows import messages_insert, run_open, session_touch, title_of, turn_context
from gateway.runs.waiting import end_waiting
from gateway.runs.wrappers import own_words
from gateway.upstream.outgoing import joined_content
from memories.caller import Caller
from memories.database.shared import is_shared, shareable
from memories.errors import InvalidRequest
from memories.limits import BROUGHT_MESSAGES

_ROLES = frozenset(Message.Role.values)
_TEXT_PART = frozenset({"type", "text"})


def open_v1(
    caller: Caller,
    request: V1Request,
    *,
    fork_if_busy: bool = False,
    conversation: fingerprint.Conversation | None = None,
    finding: Verdict | None = None,
) -> TurnContext:
    """Open a run for a request that carries its whole context; `conversation` is what identifies it, if it was read
    already, and `finding` what `find_session` returned for it.

    Raises SessionUnknown where it takes a finding, or a newer one, to tell which session it is; HistoryUnkept where
    what is attached to earlier messages is to be stored first; ModelNotFound, Unauthorized, InvalidRequest,
    SessionEnded; SameTurnRunning while the same request is answered; SessionBusy while another run of the session is
    open, unless `fork_if_busy`: then the conversation goes on in a new session that remembers its parent."""
    conversation = conversation or fingerprint.read_conversation(caller.owner_id, request.agent, request.messages)
    try:
        return _open(caller, request, conversation, finding, fork_if_busy=fork_if_busy)
    except IntegrityError:
        if is_shared():  # what was inserted before it still stands there
            raise
        # Another request made the session of that name, or opened a run in it, between our look and our insert.
        return _open(caller, request, conversation, finding, fork_if_busy=fork_if_busy)


@shareable
def _open(
    caller: Caller,
    request: V1Request,
    conversation: fingerprint.Conversation,
    finding: Verdict | None,
    *,
    fork_if_busy: bool,
) -> TurnContext:
    messages, beside = split_beside(request.messages)
    run_id = named_run_id(messages)
    taken_up = run_id and open_continued(caller, run_id, request.agent, messages, request.client_system)
    if taken_up:
        if request.response is not None:
            response_keep(taken_up, request.response)
        return replace(taken_up, messages=(*taken_up.messages, *beside))
    agent = agent_find(caller, request.agent)
    if fingerprint.last_asked(request.messages) < 0:
        raise InvalidRequest("These tool results belong to no turn that waits for them.", param="messages")
    asked = Asked(caller=caller, agent=agent, request=request, conversation=conversation)
    match = session_match(asked, run_id, finding)
    require_not_running(match, conversation, timezone.now())
    try:
        waiting = [] if match.session._state.adding else release_lapsed(match.session)
    except SessionBusy:
        if run_id or not fork_if_busy:  # tool results belong to this session: no fork can take them
            raise
        match, waiting = asked.new_session(Rule.BUSY, parent=match.session.pk), []
    for run in waiting:
        # The client goes on without the results that this run waits for.
        results = [message for message in request.messages if message.get("role") == "tool"]
        end_waiting(run, match.session, results, stands=goes_on_from(run, match, conversation))
    return _open_in(caller, match, request, conversation)


def _open_in(
    caller: Caller, match: SessionMatch, request: V1Request, conversation: fingerprint.Conversation
) -> TurnContext:
    session = match.session
    last_user = fingerprint.last_asked(request.messages)
    # A conversation that began elsewhere: what came before is kept as history, so that the transcript is whole and the
    # first review reads it; of a very long one only its end, so that no transaction takes long.
    before = request.messages[:last_user][::-1] if session.message_seq == 0 else ()
    spoken = (message for message in before if message.get("role") in _ROLES)
    history = list(islice(spoken, BROUGHT_MESSAGES))[::-1]
    if not request.history_kept and any(has_large_data(message.get("content")) for message in history):
        raise HistoryUnkept
    run = run_open(
        caller,
        session,
        replaces=match.regenerates,
        history_hash_before=conversation.history_hash_before,
        user_key=conversation.user_key,
        temporary=request.temporary,
        request_id=request.request_id,
        idempotency_key=request.idempotency_key,
        responses=None if request.response is None else {"0": request.response},
        trace={"session": match.as_trace()},
    )
    stored = messages_insert(session, run.pk, [*history, request.messages[last_user]], history=len(history))
    if history:
        session.reviewed_through = known_messages(session, history)
    if not session.title:
        session.title = title_of(said_beside(stored[-1].parts or ()) or stored[-1].text)
    session_touch(session)
    return turn_context(
        session,
        run,
        messages=with_dropped(caller.owner_id, request.messages),
        client_system=request.client_system,
        user=stored[-1],
        user_canonical=conversation.user,
        answered=conversation.answer,
        replaced=match.regenerates,
    )


def split_beside(messages: Sequence[dict[str, Any]]) -> tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]]]:
    """Return the messages without those behind the last results of tools that only the client wrote (the state of an
    editor, a reminder), and these. With words of the person among them they are a new turn: nothing is taken off."""
    end = len(messages)
    while end and messages[end - 1].get("role") == "user":
        end -= 1
    if not end or end == len(messages) or messages[end - 1].get("role") != "tool":
        return messages, ()
    beside = messages[end:]
    return (messages[:end], beside) if all(_is_clients_own(one.get("content")) for one in beside) else (messages, ())


def _is_clients_own(content: Any) -> bool:
    return _is_text(content) and not own_words(fingerprint.text_of(content))


def split_system(messages: Sequence[dict[str, Any]]) -> tuple[SystemContent, tuple[dict[str, Any], ...]]:
    """Return the client's leading system and developer messages as one content, and the rest of the conversation. It
    is a text, unless a part carries more than text, such as `cache_control`."""
    leading = 0
    while leading < len(messages) and messages[leading].get("role") in {"system", "developer"}:
        leading += 1
    content: SystemContent = ""
    for message in messages[:leading]:
        given = message.get("content")
        content = joined_content(content, fingerprint.text_of(given) if _is_text(given) else given)
    return content, tuple(messages[leading:])


def _is_text(content: Any) -> bool:
    return not isinstance(content, list) or all(part.keys() <= _TEXT_PART for part in content)
