"""Requests that clients make for themselves: a title for the chat, tags, follow-up questions, summaries. They are not
turns of a conversation; gateway.passthrough answers them without session, memory or counting.

A client may declare such a request in a header or in `metadata`. Otherwise it is recognised by words that
client_tasks.toml lists, together with a second sign in its structure. A request in doubt is a turn, since a person may
ask for a title, too (docs/decisions/0035-tasks-of-clients.md)."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from gateway.runs.fingerprint import text_of
from gateway.runs.wrappers import without_reminders

Message = dict[str, Any]
_FILE = Path(__file__).with_suffix(".toml")
# Characters that are searched for the words: these prompts hold the conversation between beginning and end.
_HEAD, _TAIL = 4_000, 200
_TINY = 64  # tokens
_SYSTEM_ROLES = frozenset({"system", "developer"})
_MEMORY_TOOLS = frozenset({"set_memory", "delete_memory"})
_ANSWER_TOOLS = frozenset({"respond_in_schema"})
_TASK_KEYS = ("task", "task_name", "request_type")
_TASKS = re.compile(
    r"(?:^|_)(?:titles?|tags?|follow_?ups?|emoji|queries|query|autocomplete|moa|image_prompt|function_calling|compaction"
    r"|memory_review)"
    r"(?:_|$)",
    re.IGNORECASE,
)
# Headers in which clients say what a request is for, and their values for requests that are not turns.
_TASK_HEADERS: dict[str, frozenset[str]] = {
    "x-claude-code-request-class": frozenset({"auxiliary", "compaction"}),
    "x-openai-subagent": frozenset({"compact", "memory_consolidation"}),
}
CODEX_METADATA = "x-codex-turn-metadata"
_CODEX_KINDS = frozenset({"prewarm", "compaction", "memory"})


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRequest:
    """A known request of a client; see client_tasks.toml. Words are folded."""

    where: str
    starts: tuple[str, ...]
    holds: tuple[str, ...]
    ends: tuple[str, ...]
    signs: tuple[frozenset[str], ...]

    def fits(self, head: str, tail: str) -> bool:
        """Return True if a message with this beginning and end, both folded, has the words of this request."""
        return (
            (not self.starts or head.startswith(self.starts))
            and all(words in head for words in self.holds)
            and (not self.ends or tail.endswith(self.ends))
        )


def is_client_task(
    messages: Sequence[Message],
    *,
    headers: Mapping[str, str],
    metadata: Mapping[str, Any],
    tools: Sequence[Message] = (),
    stream: bool = False,
    max_tokens: Any = None,
) -> bool:
    """Return True if the client makes a request for itself. `messages` must not be empty."""
    if _is_declared(headers, metadata):
        return True
    signs = _signs(messages, tools, stream=stream, max_tokens=max_tokens)
    for where, message in _places(messages):
        text = without_reminders(text_of(message.get("content")))
        head, tail = _folded(text[:_HEAD]), _folded(text[-_TAIL:])
        beginnings, possible = _possible(where, signs)
        if head.startswith(beginnings) and any(known.fits(head, tail) for known in possible):
            return True
    return False


def _places(messages: Sequence[Message]) -> Iterator[tuple[str, Message]]:
    """Yield the messages that may hold the words, each with its place: the first instruction as `system`, and as `user`
    the last message of the user and the system messages after it."""
    if messages[0].get("role") in _SYSTEM_ROLES:
        yield "system", messages[0]
    for message in reversed(messages):
        if message.get("role") == "user" or message.get("role") in _SYSTEM_ROLES:
            yield "user", message
        if message.get("role") == "user":
            return


@cache
def known_requests() -> tuple[KnownRequest, ...]:
    """Return what client_tasks.toml lists."""
    with _FILE.open("rb") as file:
        rows = tomllib.load(file)["request"]
    return tuple(
        KnownRequest(
            where=row["where"],
            signs=tuple(frozenset(sign.split("+")) for sign in row["signs"]),
            **{name: tuple(map(_folded, row.get(name, ()))) for name in ("starts", "holds", "ends")},
        )
        for row in rows
    )


@cache
def _possible(where: str, signs: frozenset[str]) -> tuple[tuple[str, ...], tuple[KnownRequest, ...]]:
    """Return the known requests for that place that have one of their signs among these, and with what they begin:
    "" for one that may begin with anything. Most messages begin with none of it, and need not be compared with each."""
    possible = tuple(
        known for known in known_requests() if known.where == where and any(wanted <= signs for wanted in known.signs)
    )
    return tuple(words for known in possible for words in known.starts or ("",)), possible


def _is_declared(headers: Mapping[str, str], metadata: Mapping[str, Any]) -> bool:
    """Return True if the client declares that it asks for itself."""
    if any(isinstance(metadata.get(key), str) and _TASKS.search(metadata[key]) for key in _TASK_KEYS):
        return True
    if _TASKS.search(headers.get("x-openwebui-task", "")):
        return True
    if any(headers.get(name, "").lower() in values for name, values in _TASK_HEADERS.items()):
        return True
    return _codex_kind(headers.get(CODEX_METADATA) or metadata.get(CODEX_METADATA)) in _CODEX_KINDS


def _codex_kind(given: Any) -> str:
    """Return the kind of request that Codex declares, such as `turn` or `compaction`; "" without one."""
    try:
        said = json.loads(given) if isinstance(given, str) else None
    except ValueError:
        return ""
    return str(said.get("request_kind", "")) if isinstance(said, dict) else ""


def _signs(messages: Sequence[Message], tools: Sequence[Message], *, stream: bool, max_tokens: Any) -> frozenset[str]:
    spoken = (
        message
        for message in messages
        if message.get("role") == "user" or (message.get("role") == "assistant" and not message.get("tool_calls"))
    )
    said = len(list(islice(spoken, 2)))
    names = {_tool_name(tool) for tool in tools}
    signs = {
        "single": said == 1,
        "history": said > 1,
        "no_tools": not tools,
        "not_streamed": not stream,
        "one_token": max_tokens == 1,
        "tiny": isinstance(max_tokens, int) and max_tokens <= _TINY,
        "memory_tools": bool(names) and names <= _MEMORY_TOOLS,
        "answer_tool": bool(names) and names <= _ANSWER_TOOLS,
        "whole": True,
    }
    return frozenset(name for name, there in signs.items() if there)


def _tool_name(tool: Message) -> str:
    function = tool.get("function")
    return str(function.get("name", "")) if isinstance(function, dict) else ""


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
