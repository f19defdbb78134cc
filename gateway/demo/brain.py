"""The demo model: rules that show a newcomer how memory works without an API key. It always says what it is, and is
never used if an upstream is configured. It saves plain statements about a person and reports what memory gave it."""

import html
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.demo.consolidation import consolidation_answer
from gateway.demo.statements import Statement, statements
from memories.number_words import memories
from memories.tools import Stage, tools_at

_MEMORY = re.compile(r'<memory id="\d+"[^>]*>(.*?)</memory>', re.DOTALL)
_ASKED = re.compile(r"\b(?:what do you (?:know|remember)|about me|remember about)\b", re.IGNORECASE)
_AT_ONCE = re.compile(r"\b(?:remember|call me)\b", re.IGNORECASE)
_MOST_WRITES = 5
_NOTHING = "Nothing to save."


@dataclass(frozen=True, slots=True)
class Answer:
    """Text, and tool calls as (name, arguments)."""

    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


def answer(messages: Sequence[dict[str, Any]], tools: Collection[str]) -> Answer:
    """Return the demo model's answer to a request that offers these tools."""
    is_review = bool(messages) and set(tools) == {tool.name for tool in tools_at(Stage.REVIEW)}
    if results := _results(messages):
        return Answer(_NOTHING if is_review else _acknowledge(results))
    if is_review:
        return _review(messages)
    user = _last_user(messages)
    if not tools and (said := consolidation_answer(user)) is not None:
        return Answer(said)
    injected = _memories("\n".join(_text(message) for message in messages if message.get("role") == "system"))
    heard = _new(statements(user), injected)
    if heard and "add_memory" in tools and _AT_ONCE.search(user):
        return Answer("", _saving(heard))
    return Answer(_reply(user, heard, injected))


def _review(messages: Sequence[dict[str, Any]]) -> Answer:
    *conversation, prompt = messages
    said = [found for message in conversation if message.get("role") == "user" for found in statements(_text(message))]
    calls = _saving(_new(said, _memories(_text(prompt))))
    return Answer("" if calls else _NOTHING, calls)


def _new(said: Iterable[Statement], known: Collection[str]) -> list[Statement]:
    """Return the statements that are not known yet, without repetitions."""
    left_out = {content.casefold() for content in known}
    return [one for one in dict.fromkeys(said) if one.content.casefold() not in left_out]


def _saving(said: Sequence[Statement]) -> tuple[tuple[str, dict[str, Any]], ...]:
    return tuple(("add_memory", one.arguments()) for one in said[:_MOST_WRITES])


def _reply(user: str, heard: Sequence[Statement], injected: Sequence[str]) -> str:
    if injected and _ASKED.search(user):
        listed = "\n".join(f"- {content}" for content in injected)
        closing = "This is the demo model, so I only read my notes back to you."
        return f"This is what I remember about you:\n\n{listed}\n\n{closing}"
    said = ["I am the demo model, so my answers are canned."]
    if heard:
        # A plain turn stores nothing, and the model does not know whether there are reviews.
        listed = " ".join(one.content for one in heard)
        said.insert(0, f"I heard: {listed} That is not saved yet; a review of this conversation can save it.")
    if injected:
        said.append(f"I was given {memories(len(injected))} with your message. Ask me what I know about you.")
    if not heard and not injected:
        said.append("Tell me something lasting about yourself, such as what you prefer, and a review can save it.")
    return " ".join(said)


def _acknowledge(results: Sequence[str]) -> str:
    # A note says that the memory was there already.
    saved = sum('"ok": true' in result and '"note"' not in result for result in results)
    return f"I saved {memories(saved)}." if saved else "Nothing new was saved."


def _results(messages: Sequence[dict[str, Any]]) -> list[str]:
    """Return the tool results that follow the last user message."""
    last_user = max((place for place, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    return [_text(message) for message in messages[last_user + 1 :] if message.get("role") == "tool"]


def _last_user(messages: Sequence[dict[str, Any]]) -> str:
    return next((_text(message) for message in reversed(messages) if message.get("role") == "user"), "")


def _memories(text: str) -> list[str]:
    return [html.unescape(content) for content in _MEMORY.findall(text)]


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")
