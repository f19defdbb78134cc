"""The request as a server accepts it. The upstream's dialect is applied here, and nowhere else."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.tool_calls import calls_in, object_text
from gateway.upstream.call_ids import SHAPES, made_id
from gateway.upstream.custom_tools import with_functions
from gateway.upstream.dialects import Dialect
from gateway.upstream.kept import Kept, kept_of
from gateway.upstream.paths import without
from prompts.conversation import EMPTY_TURN, MEDIA_FOLLOWS, MEDIA_OF_TOOL, NO_RESULT, ORPHANED_RESULT

_SYSTEM = frozenset({"system", "developer"})
_WORDS = frozenset({"role", "content"})
_REASONING = frozenset({"reasoning_content", "reasoning", "reasoning_details", "thinking"})
_SHOWN = frozenset({"image_url", "video_url", "input_audio", "file"})
_GAP = "\n\n"

Message = dict[str, Any]


def request_body(body: Mapping[str, Any], dialect: Dialect, *, upstream: str) -> dict[str, Any]:
    """Return the body of a request for this server. The given body is not changed."""
    sent = {name: value for name, value in body.items() if value is not None}
    if "messages" in sent:
        sent["messages"] = _messages(body["messages"], dialect, (upstream, str(body["model"])))
    if dialect.custom_tools is False:
        sent = with_functions(sent)
    if not dialect.stream_options:
        sent.pop("stream_options", None)
    if not dialect.metadata_alone and sent.get("store") is not True:
        sent.pop("metadata", None)
    for old, new in dialect.rename.items():
        if old in sent:
            given = sent.pop(old)
            sent.setdefault(new, given)
    sent |= dialect.set
    for path in dialect.drop:
        sent = without(sent, path.split("."))
    return sent


def _messages(given: Iterable[Message], dialect: Dialect, asked: tuple[str, str]) -> list[Message]:
    messages = _with_ids(_answered(given), dialect, asked)
    if dialect.lost_said or dialect.lost_called or dialect.lost_call:
        messages = _with_stand_ins(messages, dialect)
    messages = _plain_results(messages)
    if dialect.text_results:
        messages = [_as_text(message) if message.get("role") == "tool" else message for message in messages]
    if not dialect.null_said:
        messages = [_with_text(message) for message in messages]
    if dialect.system_first:
        messages = _one_system(messages)
    if dialect.alternate_roles:
        messages = _alternating(messages)
    return messages


def _answered(given: Iterable[Message]) -> list[Message]:
    """Return the messages with a result for each call that has none. Clients leave results out when a person goes on
    without them, and no server accepts a call without a result."""
    found: list[Message] = []  # starting with the last message
    results: Counter[str] = Counter()
    for message in reversed(list(given)):
        role, missing = message.get("role"), []
        if role == "tool":
            results[str(message.get("tool_call_id") or "")] += 1
        elif role == "assistant" and message.get("tool_calls"):
            for call in calls_in(message):
                call_id = str(call.get("id") or "")
                if results[call_id]:
                    results[call_id] -= 1
                else:
                    missing.append({"role": "tool", "tool_call_id": call_id, "content": NO_RESULT})
        found += reversed(missing)
        found.append(message)
    return found[::-1]


def _with_ids(given: Iterable[Message], dialect: Dialect, asked: tuple[str, str]) -> list[Message]:
    """Return the messages with their kept fields, and with ids of tool calls that this server accepts: a call and its
    result share an id that is unique in the request. Results are in the order of their calls."""
    messages: list[Message] = []
    used: set[str] = set()
    open_calls: dict[str, deque[str]] = {}
    order: list[str] = []
    for message in given:
        role = message.get("role")
        if role == "tool":
            waiting = open_calls.get(str(message.get("tool_call_id", "")))
            if waiting:
                message = {**message, "tool_call_id": waiting[0] if len(waiting) == 1 else waiting.popleft()}
            _place(messages, message, order)
            continue
        if role == "assistant":
            kept = kept_of(message)
            if kept is None and message.keys() <= _WORDS:
                if message.get("content"):  # servers refuse an empty message
                    messages.append(message)
                continue
            message = _restored(message, kept, dialect, asked)
            calls = message.get("tool_calls")
            if isinstance(calls, list) and calls:
                message["tool_calls"], sent_ids = _identified(calls, kept, dialect, asked, used)
                open_calls |= sent_ids
                order = [call["id"] for call in message["tool_calls"] if isinstance(call, dict)]
            elif "tool_calls" in message:
                del message["tool_calls"]  # servers refuse an empty list, too
            if not message.get("content") and message.keys() <= _WORDS:
                continue
        messages.append(message)
    return messages


def _place(messages: list[Message], result: Message, order: Sequence[str]) -> None:
    """Append a result, but before the results directly before it whose calls were made later."""
    rank = {call_id: at for at, call_id in enumerate(order)}
    mine, at = rank.get(str(result.get("tool_call_id")), len(order)), len(messages)
    while at and messages[at - 1].get("role") == "tool":
        if rank.get(str(messages[at - 1].get("tool_call_id")), -1) <= mine:
            break
        at -= 1
    messages.insert(at, result)


def _restored(message: Message, kept: Kept | None, dialect: Dialect, asked: tuple[str, str]) -> Message:
    """Return a message of the assistant with its kept fields, if they come from the server that it is sent to."""
    restored = {name: value for name, value in message.items() if value is not None or name == "content"}
    if not dialect.replay_reasoning:
        return {name: value for name, value in restored.items() if name not in _REASONING}
    return {**restored, **kept.fields} if kept is not None and kept.is_of(*asked) else restored


def _identified(
    calls: Sequence[Any], kept: Kept | None, dialect: Dialect, asked: tuple[str, str], used: set[str]
) -> tuple[list[Any], dict[str, deque[str]]]:
    """Return the calls of a message with the ids and further fields to send, and the new ids by the old ones."""
    shape = SHAPES[dialect.call_ids]
    own = kept.calls if kept is not None and kept.is_of(*asked) else {}
    foreign = kept is not None and not own
    sent: list[Any] = []
    found: dict[str, deque[str]] = {}
    for call in calls:
        if not isinstance(call, dict):
            sent.append(call)
            continue
        local = str(call.get("id") or "")
        more = own.get(local, {})
        name = str(more.get("id") or ("" if foreign else local))
        if name in used or not shape.fullmatch(name):
            name = made_id(local, taken=used)
        used.add(name)
        found.setdefault(local, deque()).append(name)
        sent.append(_call(call, more, name))
    return sent, found


def _call(call: Message, more: Mapping[str, Any], name: str) -> Message:
    function = call.get("function")
    whole = {**{key: value for key, value in call.items() if key != "index"}, **more, "id": name}
    if isinstance(function, dict):
        beside = more.get("function")
        whole["function"] = {**(beside if isinstance(beside, dict) else {}), **function}
        # Servers read them, and refuse a conversation in which a model once wrote what is no JSON.
        whole["function"]["arguments"] = object_text(function.get("arguments"))
        whole.setdefault("type", "function")
    return whole


def _with_stand_ins(messages: Sequence[Message], dialect: Dialect) -> list[Message]:
    """Return the messages with a stand-in for each field that the server demands and that was lost."""
    last_user = max((at for at, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    found = []
    for at, message in enumerate(messages):
        if message.get("role") == "assistant":
            message = {**dialect.lost_said, **message}
            if calls := message.get("tool_calls"):
                message = {**dialect.lost_called, **message}
                if at > last_user and not any(call.keys() & dialect.lost_call.keys() for call in calls):
                    message["tool_calls"] = [{**dialect.lost_call, **calls[0]}, *calls[1:]]
        found.append(message)
    return found


def _plain_results(messages: Iterable[Message]) -> list[Message]:
    """Return the messages with results of tools as text, each for a call: chat completions accept no others. Pictures
    in a result, and results without a call, follow in a message of the user."""
    found: list[Message] = []
    behind: list[Any] = []
    made: set[str] = set()
    for message in messages:
        if message.get("role") != "tool":
            if behind:
                found.append({"role": "user", "content": behind})
            found.append(message)
            behind = []
            made.update(str(call.get("id")) for call in calls_in(message))
            continue
        shown, rest = _shown(message.get("content"))
        if str(message.get("tool_call_id")) not in made:
            said = said_in(message.get("content"), gap=_GAP)
            behind += [{"type": "text", "text": _GAP.join(filter(None, (ORPHANED_RESULT, said)))}, *shown]
            continue
        if shown:
            message = {**message, "content": rest or MEDIA_FOLLOWS}
            behind += [{"type": "text", "text": MEDIA_OF_TOOL}, *shown]
        found.append(message)
    return [*found, {"role": "user", "content": behind}] if behind else found


def _shown(content: Any) -> tuple[list[Any], list[Any]]:
    """Return the parts of a content that are pictures, sounds and files, and then all other parts."""
    found: tuple[list[Any], list[Any]] = [], []
    for part in content if isinstance(content, list) else ():
        found[not (isinstance(part, dict) and str(part.get("type")) in _SHOWN)].append(part)
    return found


def _one_system(messages: Sequence[Message]) -> list[Message]:
    """Put all system text into one message, the first."""
    texts = [said_in(message.get("content"), gap=_GAP) for message in messages if message.get("role") in _SYSTEM]
    rest = [message for message in messages if message.get("role") not in _SYSTEM]
    joined = _GAP.join(text for text in texts if text)
    return [{"role": "system", "content": joined}, *rest] if joined else rest


def _alternating(messages: Sequence[Message]) -> list[Message]:
    """Make user and assistant alternate after the system text, beginning with the user. Neighbours of one role are
    joined; a missing message is replaced by a few words. Tool calls and their results belong to one turn of the
    assistant, together with the words after them."""
    found: list[Message] = []
    last = "system"  # the role of the last message; results of tools count as the assistant's
    for message in messages:
        role = message.get("role")
        if role == "user" and last == "user":
            found[-1] = {**found[-1], "content": joined_content(found[-1].get("content"), message.get("content"))}
            continue
        if role == "assistant":
            if last == "assistant":
                found[-1] = _joined_said(found[-1], message)
                continue
            if last == "system":
                found.append({"role": "user", "content": EMPTY_TURN})
        elif role == "user" and last == "tool":
            found.append({"role": "assistant", "content": EMPTY_TURN})
        found.append(message)
        last = str(role)
    return found


def _joined_said(one: Message, other: Message) -> Message:
    joined = {**one, **other, "content": joined_content(one.get("content"), other.get("content"))}
    if calls := [*(one.get("tool_calls") or ()), *(other.get("tool_calls") or ())]:
        joined["tool_calls"] = calls
    return joined


def joined_content(one: Any, other: Any, *, gap: str = _GAP) -> Any:
    """Join two contents of messages: as a text with a gap, or as parts if one of them has parts."""
    if not one or not other:
        return one or other
    if isinstance(one, str) and isinstance(other, str):
        return one + gap + other
    return [*_parts(one), *_parts(other)]


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _as_text(message: Message) -> Message:
    return {**message, "content": said_in(message.get("content"), gap=_GAP)}


def _with_text(message: Message) -> Message:
    silent = message.get("role") == "assistant" and message.get("content") is None
    return {**message, "content": ""} if silent else message


def said_in(content: Any, *, gap: str = "") -> str:
    """Return the text of a message's or delta's content, which may be in parts; they are joined with the gap."""
    if isinstance(content, list):
        texts = (said_in(part.get("text"), gap=gap) for part in content if isinstance(part, dict))
        return gap.join(text for text in texts if text)
    return content if isinstance(content, str) else ""
