"""Executes `/memory` commands, which are never sent upstream. Their messages have the kind `command` and no run, so
they are not counted, recorded, reviewed or extracted. The verbs are in gateway.command_syntax.COMMANDS; handlers are
registered here and by the apps above. A handler uses its own transactions; the messages are stored after it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from typing import Any
from uuid import UUID

from django.db import transaction

from gateway.agents.rows import agent_find, require_key
from gateway.command_syntax import (
    COMMAND,
    COMMANDS,
    VERBS,
    ParsedCommand,
    command_text,
    parse_command,
    without_commands,
)
from gateway.messages import SYSTEM_ROLES
from gateway.models import Agent, Message, Run, Session
from gateway.runs import fingerprint
from gateway.runs.candidates import find_continuation
from gateway.runs.context import AgentConfig, RunOutput, TurnContext, agent_config
from gateway.runs.ending import release_lapsed
from gateway.runs.joined import RunResult, placeholder_context
from gateway.runs.matching import Continuation
from gateway.runs.requested import SessionLookup, V1Request
from gateway.runs.resolve import command_session
from gateway.runs.rows import messages_insert, session_touch
from gateway.runs.session_rows import lock
from gateway.services import require_active, session_get
from gateway.turns.events import done_json
from gateway.turns.injection import injected_blocks
from memories.books import book_state
from memories.caller import UNLIMITED, Caller, KeyLimits
from memories.database.batches import Slices
from memories.ids import uuid7
from memories.limits import INGEST_MESSAGES
from memories.recall.book_views import BookState
from memories.recall.frozen import freeze
from memories.recall.snapshot import snapshots
from memories.recall.two_lanes import TOTAL_BYTES

_NO_USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCall:
    """A command to execute. With `temporary` the session neither reads nor writes memory."""

    caller: Caller
    command: ParsedCommand
    agent: AgentConfig
    book: BookState
    temporary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReply:
    """The answer to a command, and its memory changes in the format of a turn."""

    text: str
    changes: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTurn:
    """A stored command with its answer. The id of the command's message serves as run id."""

    context: TurnContext
    result: RunResult

    def as_json(self) -> dict[str, Any]:
        """Return the command as a turn of the native API. Its usage is empty, since no model was asked."""
        return {**done_json(self.context, self.result), "kind": Message.Kind.COMMAND.value, "usage": {}}


Handler = Callable[[CommandCall], CommandReply | Slices[CommandReply]]
_handlers: dict[str, Handler] = {}


def register_handler(verb: str, handler: Handler) -> None:
    """Register the handler of a verb; called here and from an AppConfig's ready(). Raises LookupError."""
    if verb not in VERBS:
        raise LookupError(f"{COMMAND} {verb} is not in the table of commands")
    _handlers[verb] = handler


def command_in(messages: Sequence[dict[str, Any]]) -> ParsedCommand | None:
    """Return the command in the last message of a request if that is a user message, otherwise None."""
    return parse_command(_last_user_text(messages))


def answer_native(caller: Caller, session_id: UUID | None, content: str) -> Slices[CommandTurn]:
    """Execute a command in the session that the caller names. Raises NotFound, SessionEnded, SessionBusy,
    Unauthorized."""
    command = parse_command(content, native=True) or ParsedCommand(verb="help")
    require_key(caller)
    session = session_get(caller.owner_id, session_id, limits=caller.limits)
    require_active(session)
    with transaction.atomic():
        release_lapsed(Session.objects.select_for_update(no_key=True).get(pk=session.pk))
    temporary = session.temporary or not caller.remembers
    reply = yield from _execute(caller, session.agent, command, temporary=temporary)
    return _store(session, content, reply)


def answer_v1(request: V1Request) -> Slices[CommandTurn]:
    """Execute a command after a resent conversation. Raises ModelNotFound, Unauthorized, InvalidRequest."""
    command = command_in(request.messages) or ParsedCommand(verb="help")
    caller, agent = request.caller, agent_find(request.caller, request.agent)
    # The messages before the command identify the session, so look it up with another message in place of the command.
    placeholder = {"role": "user", "content": f"A command stood here: {uuid7()}"}
    others, last_command = without_commands(request.messages)
    before = replace(request, messages=(*others, placeholder), after_command=last_command)
    lookup = SessionLookup(agent=agent, request=before)
    yield True
    continuation = find_continuation(before) if before.conversation.turns_before else Continuation()
    yield
    with transaction.atomic():
        command_session(lookup, continuation)  # raises before the command has an effect
    reply = yield from _execute(caller, agent, command, temporary=request.temporary)
    with transaction.atomic():
        session = command_session(lookup, continuation)
        if session._state.adding:
            # After a response that others follow, the conversation up to there continues in the new session.
            history = _answered(others)[-INGEST_MESSAGES:] if request.after else ()
            messages_insert(session, None, history, history=len(history))
            session.reviewed_through = session.message_seq
            session_touch(session)
        text = _last_user_text(request.messages)
        named = "" if request.session_ref else fingerprint.commands_key(caller.owner_id, agent.name, text, reply.text)
        return _store(session, text, reply, commands_key=named)


def stored_command(
    owner_id: UUID, session_id: UUID | None, turn_id: UUID | None, *, limits: KeyLimits = UNLIMITED
) -> dict[str, Any] | None:
    """Return a command's turn from its rows, or None."""
    if session_id is None or turn_id is None:
        return None
    rows = Message.objects.filter(
        owner_id=owner_id, session_id=session_id, kind=Message.Kind.COMMAND, session__deleted_at=None
    )
    rows = limits.filter(rows, agent="session__agent__name")
    command = rows.filter(pk=turn_id, role=Message.Role.USER).select_related("session__agent").first()
    answer = rows.filter(seq=command.seq + 1).first() if command else None
    return _turn(command.session, command, answer.text, []).as_json() if command and answer else None


def _execute(caller: Caller, agent: Agent, command: ParsedCommand, *, temporary: bool) -> Slices[CommandReply]:
    config, book = agent_config(agent), book_state(caller.owner_id, agent.book)
    call = CommandCall(caller=caller, command=command, agent=config, book=book, temporary=temporary)
    reply = _handlers[command.verb](call)
    return reply if isinstance(reply, CommandReply) else (yield from reply)


@transaction.atomic
def _store(session: Session, text: str, reply: CommandReply, *, commands_key: str = "") -> CommandTurn:
    """Store a command and its answer. `commands_key` identifies a session that holds only commands so far."""
    row = lock(session)
    exchange = [{"role": "user", "content": text.strip()}, {"role": "assistant", "content": reply.text}]
    messages = messages_insert(row, None, exchange, kind=Message.Kind.COMMAND)
    if commands_key and (row.message_seq == len(messages) or row.history_hash.startswith(fingerprint.COMMANDS_ONLY)):
        row.history_hash = commands_key
        row.touch()
    row.save(update_fields=["message_seq", "history_hash", "last_active_at"])
    return _turn(row, messages[0], reply.text, reply.changes)


def _answered(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of a transcript up to the last answer: without system messages, and without messages that
    came with a command, which are not stored."""
    spoken = [message for message in messages if message["role"] in Message.Role.values]
    return [*dropwhile(lambda message: message["role"] == Message.Role.USER, reversed(spoken))][::-1]


def _last_user_text(messages: Sequence[dict[str, Any]]) -> str:
    last = next((message for message in reversed(messages) if message.get("role") not in SYSTEM_ROLES), None)
    return command_text(last.get("content")) if last and last.get("role") == "user" else ""


def _turn(session: Session, command: Message, text: str, changes: list[dict[str, Any]]) -> CommandTurn:
    result = RunResult(
        state=Run.State.COMPLETED,
        output=RunOutput(text=text, usage=dict(_NO_USAGE)),
        changes=changes,
        turns_since_review=session.turns_since_memory_review,
    )
    context = placeholder_context(session, command.pk, turn=session.turns, started_at=command.created_at)
    return CommandTurn(context=context, result=result)


def fenced(text: str) -> str:
    """Return a text in a Markdown fence that is longer than any fence in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _view(call: CommandCall) -> CommandReply:
    if call.temporary:
        return CommandReply(text="Temporary session. No memory is read and none is saved.")
    blocks, book = injected_blocks(call.book, call.agent), call.book.name
    recalled = _recalled_words(call)
    if blocks:
        text = f"Given to the agent with every message, from book {book}:\n\n{fenced(blocks)}"
        return CommandReply(text="\n\n".join(filter(None, [text, recalled])))
    if recalled:
        return CommandReply(text=f"Nothing from book {book} is given to the agent with every message. {recalled}")
    return CommandReply(text=f"Nothing from book {book} is given to the agent.")


def _recalled_words(call: CommandCall) -> str:
    """Return a sentence about the memories outside the frozen block that may be recalled; "" if there are none."""
    agent = call.agent.settings
    if not agent.inject_memories:
        return ""
    entries = snapshots.view(call.book).entries
    frozen = freeze(entries, max_memories=agent.max_inject_memories, char_limit=agent.frozen_char_limit).items
    others, room = len(entries) - len(frozen), agent.max_inject_memories - len(frozen)
    if not others or not room:
        return ""
    which = f"{'The' if not frozen else 'Another'} {others} {'memory' if others == 1 else 'memories'}"
    return (
        f"{which} of the book {'is' if others == 1 else 'are'} searched for each message. At most {room} "
        f"{'match is' if room == 1 else 'matches are'} given with it, within {TOTAL_BYTES // 1024} KiB."
    )


def _help(call: CommandCall) -> CommandReply:
    unknown = [] if call.command.known else ["There is no such command."]
    lines = [f"- `{command.line}`: {command.about}" for command in COMMANDS]
    return CommandReply(text="\n".join([*unknown, f"Commands for book {call.book.name}:", *lines]))


register_handler("view", _view)
register_handler("help", _help)
