"""The demo model: rules that let a newcomer see the whole loop without a key. Always labelled, never used when an
upstream is configured. It saves plain statements about the person, uses what was injected, and says so."""

import html
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.demo.consolidation import consolidation_answer
from gateway.demo.review import add_call, review_calls
from gateway.demo.statements import Listener
from memories.tools import Stage, tools_at

_LINE = re.compile(r'<memory id="(\d+)"[^>]*>(.*?)</memory>', re.DOTALL)
_ASKED = re.compile(r"\b(what do you (know|remember)|about me|remember about)\b", re.IGNORECASE)
_AT_ONCE = re.compile(r"\b(remember|call me)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answer:
    """Text, and tool calls as (name, arguments)."""

    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


def answer(messages: Sequence[dict[str, Any]], tools: Collection[str]) -> Answer:
    """What the demo model says to a request that offers these tools."""
    if any(message.get("role") == "tool" for message in _tail(messages)):
        return Answer("Nothing to save." if _is_review(messages, tools) else _acknowledge(messages))
    if _is_review(messages, tools):
        return _review(messages)
    user = _last_user(messages)
    if not tools and (said := consolidation_answer(user, notes)) is not None:
        return Answer(said)
    injected = _injected(messages)
    known = {content.casefold() for _, content in injected}
    heard = [said for said in Listener().hear(user) if said.content.casefold() not in known]
    if heard and "add_memory" in tools and _AT_ONCE.search(user):
        return Answer("", tuple(add_call(said) for said in heard))
    return Answer(_reply(user, [said.content for said in heard], injected))


def notes(text: str) -> list[str]:
    """What a message says that is lasting, one note each."""
    return [said.content for said in Listener().hear(text)]


def _review(messages: Sequence[dict[str, Any]]) -> Answer:
    *conversation, prompt = [(str(message.get("role")), _text(message)) for message in messages]
    existing = [(number, html.unescape(content)) for number, content in _LINE.findall(prompt[1])]
    calls = review_calls(conversation, existing)
    return Answer("" if calls else "Nothing to save.", tuple(calls))


def _reply(user: str, heard: Sequence[str], injected: Sequence[tuple[str, str]]) -> str:
    if injected and _ASKED.search(user):
        listed = "\n".join(f"- {content}" for _, content in injected)
        closing = "This is the demo model, so I only read my notes back to you."
        return f"This is what I remember about you:\n\n{listed}\n\n{closing}"
    opening = "I am the demo model, so my answers are canned."
    if heard:
        # A plain turn stores nothing, and whether there are reviews is not for the model to know.
        opening = (
            f"I heard: {' '.join(heard)} That is not saved yet; a review of this conversation can save it. {opening}"
        )
    if injected:
        count = f"{len(injected)} {'memory' if len(injected) == 1 else 'memories'}"
        return f"{opening} I was given {count} with your message. Ask me what I know about you."
    if heard:
        return opening
    return f"{opening} Tell me something lasting about yourself, such as what you prefer, and a review can save it."


def _acknowledge(messages: Sequence[dict[str, Any]]) -> str:
    saved = sum(1 for message in _tail(messages) if message.get("role") == "tool" and '"ok": true' in _text(message))
    return f"I saved {saved} {'memory' if saved == 1 else 'memories'}." if saved else "I knew that already."


def _is_review(messages: Sequence[dict[str, Any]], tools: Collection[str]) -> bool:
    # A review offers exactly the tools that write; a conversation also those that read.
    return set(tools) == {tool.name for tool in tools_at(Stage.REVIEW)} and bool(messages)


def _tail(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What follows the last user message."""
    users = [index for index, message in enumerate(messages) if message.get("role") == "user"]
    return list(messages[users[-1] + 1 :]) if users else list(messages)


def _last_user(messages: Sequence[dict[str, Any]]) -> str:
    return next((_text(message) for message in reversed(messages) if message.get("role") == "user"), "")


def _injected(messages: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    system = "\n".join(_text(message) for message in messages if message.get("role") == "system")
    return [(number, html.unescape(content)) for number, content in _LINE.findall(system)]


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")
