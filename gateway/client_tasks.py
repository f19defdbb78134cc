"""Recognises requests that clients make for their own purposes: a chat title, tags, follow-up questions, summaries.
They are not turns of a conversation; gateway.passthrough answers them without session, memory or counting.

A client may declare such a request in a header or in `metadata`. Otherwise it is recognised by words that
client_tasks.toml lists, together with a sign in its structure. If in doubt, a request is a turn, since a person may
also ask for a title (docs/decisions/0035)."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from gateway.messages import SYSTEM_ROLES, ChatMessage, text_of
from gateway.runs.wrappers import without_reminders
from memories.errors import InvalidRequest
from memories.json_input import read_json

_FILE = Path(__file__).with_suffix(".toml")
# Characters at both ends that are searched for the words; these prompts have the conversation in between.
_HEAD, _TAIL = 4_000, 200
_TINY = 64  # output tokens
_MEMORY_TOOLS = frozenset({"set_memory", "delete_memory"})
_ANSWER_TOOLS = frozenset({"respond_in_schema"})
_TASK_KEYS = ("task", "task_name", "request_type")
_TASKS = re.compile(
    r"(?:^|_)(?:titles?|tags?|follow_?ups?|emoji|queries|query|autocomplete|moa|image_prompt|function_calling|compaction"
    r"|memory_review)"
    r"(?:_|$)",
    re.IGNORECASE,
)
# Headers in which clients declare the purpose of a request, and their values for requests that are not turns.
_TASK_HEADERS: dict[str, frozenset[str]] = {
    "x-claude-code-request-class": frozenset({"auxiliary", "compaction"}),
    "x-openai-subagent": frozenset({"compact", "memory_consolidation"}),
}
CODEX_METADATA = "x-codex-turn-metadata"
_CODEX_KINDS = frozenset({"prewarm", "compaction", "memory"})


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRequest:
    """A known client task; see client_tasks.toml. Its words are folded."""

    where: str
    starts: tuple[str, ...]
    holds: tuple[str, ...]
    ends: tuple[str, ...]
    signs: tuple[frozenset[str], ...]

    def fits(self, head: str, tail: str) -> bool:
        """Return True if a message with this folded beginning and end has the words of this task."""
        return (
            (not self.starts or head.startswith(self.starts))
            and all(words in head for words in self.holds)
            and (not self.ends or tail.endswith(self.ends))
        )


def is_client_task(
    messages: Sequence[ChatMessage],
    *,
    headers: Mapping[str, str],
    metadata: Mapping[str, Any],
    tools: Sequence[ChatMessage] = (),
    stream: bool = False,
    max_tokens: Any = None,
) -> bool:
    """Return True if a request is a client task. `messages` must not be empty."""
    if _is_declared(headers, metadata):
        return True
    signs = _signs(messages, tools, stream=stream, max_tokens=max_tokens)
    for where, message in _places(messages):
        text = without_reminders(text_of(message.get("content")))
        head, tail = _folded(text[:_HEAD]).removeprefix("- "), _folded(text[-_TAIL:])
        if any(known.fits(head, tail) for known in _possible(where, signs)):
            return True
    return False


def _places(messages: Sequence[ChatMessage]) -> Iterator[tuple[str, ChatMessage]]:
    """Yield the messages that may contain the words, each with its place: a system message at the beginning as
    `system`, and the last user message and the system messages after it as `user`."""
    if messages[0].get("role") in SYSTEM_ROLES:
        yield "system", messages[0]
    for message in reversed(messages):
        if message.get("role") == "user" or message.get("role") in SYSTEM_ROLES:
            yield "user", message
        if message.get("role") == "user":
            return


@cache
def _possible(where: str, signs: frozenset[str]) -> tuple[KnownRequest, ...]:
    """Return the tasks whose words may be at `where` of a request with these signs."""
    return tuple(
        known for known in known_requests() if known.where == where and any(wanted <= signs for wanted in known.signs)
    )


@cache
def known_requests() -> tuple[KnownRequest, ...]:
    """Return the tasks in client_tasks.toml."""
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


def _is_declared(headers: Mapping[str, str], metadata: Mapping[str, Any]) -> bool:
    """Return True if the client declares the request to be a task."""
    if any(isinstance(metadata.get(key), str) and _TASKS.search(metadata[key]) for key in _TASK_KEYS):
        return True
    if _TASKS.search(headers.get("x-openwebui-task", "")):
        return True
    if any(headers.get(name, "").lower() in values for name, values in _TASK_HEADERS.items()):
        return True
    return _codex_kind(headers.get(CODEX_METADATA) or metadata.get(CODEX_METADATA)) in _CODEX_KINDS


def _codex_kind(given: Any) -> str:
    """Return the kind of request that Codex declares, such as `turn` or `compaction`; "" if there is none."""
    try:
        metadata = read_json(given, repair=True) if isinstance(given, str) else None
    except InvalidRequest:
        return ""
    return str(metadata.get("request_kind", "")) if isinstance(metadata, dict) else ""


def _signs(
    messages: Sequence[ChatMessage], tools: Sequence[ChatMessage], *, stream: bool, max_tokens: Any
) -> frozenset[str]:
    spoken = (
        message
        for message in messages
        if message.get("role") == "user" or (message.get("role") == "assistant" and not message.get("tool_calls"))
    )
    count = len(list(islice(spoken, 2)))
    names = {(tool.get("function") or {}).get("name") for tool in tools}
    signs = {
        "single": count == 1,
        "history": count > 1,
        "no_tools": not tools,
        "not_streamed": not stream,
        "one_token": max_tokens == 1,
        "tiny": isinstance(max_tokens, int) and max_tokens <= _TINY,
        "memory_tools": bool(names) and names <= _MEMORY_TOOLS,
        "answer_tool": bool(names) and names <= _ANSWER_TOOLS,
        "whole": True,
    }
    return frozenset(name for name, present in signs.items() if present)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
