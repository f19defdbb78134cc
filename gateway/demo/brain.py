"""The demo model: rules that let a newcomer see the whole loop without a key. Always labelled, never used when an
upstream is configured. It saves plain statements about the person, uses what was injected, and says so."""

import html
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.demo.consolidation import consolidation_answer

_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_LINE = re.compile(r'<memory id="(\d+)"[^>]*>(.*?)</memory>', re.DOTALL)
_ASKED = re.compile(r"\b(what do you (know|remember)|about me|remember about)\b", re.IGNORECASE)

# (what a person says, how it is noted, category); one statement a sentence.
_STATEMENTS: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), note, category)
    for pattern, note, category in (
        (r"\bcall me (?P<x>[\w' -]{2,40})", "Wants to be called {x}.", "identity"),
        (r"\bmy name is (?P<x>[\w' -]{2,40})", "Their name is {x}.", "identity"),
        (r"\bI(?:'m| am) (?P<x>(?:a |an |the )?[\w' -]{3,80})", "Is {x}.", "fact"),
        (r"\bI (?:really )?(?:prefer|like|love) (?P<x>[^.!?]{3,120})", "Prefers {x}.", "preference"),
        (r"\bI (?:don't like|dislike|hate) (?P<x>[^.!?]{3,120})", "Dislikes {x}.", "preference"),
        (r"\bI (?:live|work) (?P<x>(?:in|at|for|near) [^.!?]{2,80})", "Lives or works {x}.", "fact"),
        (r"\b(?:please )?remember (?:that )?(?P<x>[^.!?]{4,160})", "{x}.", "note"),
        (r"\bmy (?P<x>[\w' -]{2,40} (?:is|are) [^.!?]{2,100})", "Their {x}.", "fact"),
    )
)
_PASSING = re.compile(
    r"^(?:not |just |so |very |going|trying|looking|asking|sorry|sure|fine|good|happy|glad|back|done|here|wondering"
    r"|curious|afraid)",
    re.IGNORECASE,
)
_TWO = re.compile(r",? and (?=I (?:prefer|like|love|hate|live|work)\b)", re.IGNORECASE)


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
    if "add_memory" in tools and (noted := notes(user)):
        known = {content.casefold() for _, content in _injected(messages)}
        calls = tuple(_add(note, category) for note, category in noted if note.casefold() not in known)
        if calls and re.search(r"\b(remember|call me)\b", user, re.IGNORECASE):
            return Answer("", calls)
    return Answer(_reply(user, _injected(messages)))


def notes(text: str) -> list[tuple[str, str]]:
    """`(note, category)` for each plain statement a person makes about themselves."""
    found = []
    for sentence in _SENTENCE.findall(_TWO.sub(". ", text)):
        if sentence.rstrip().endswith("?"):
            continue
        for pattern, note, category in _STATEMENTS:
            if (match := pattern.search(sentence)) and not _PASSING.match(match["x"].strip()):
                said = match["x"].strip().rstrip(",;:")
                line = note.format(x=said)
                found.append((line[0].upper() + line[1:], category))
                break
    return found


def _review(messages: Sequence[dict[str, Any]]) -> Answer:
    prompt = _text(messages[-1])
    known = {html.unescape(content).casefold() for _, content in _LINE.findall(prompt)}
    calls = []
    for message in messages[:-1]:
        if message.get("role") != "user":
            continue
        for note, category in notes(_text(message)):
            if note.casefold() not in known:
                known.add(note.casefold())
                calls.append(_add(note, category))
    return Answer("" if calls else "Nothing to save.", tuple(calls))


def _add(note: str, category: str) -> tuple[str, dict[str, Any]]:
    return "add_memory", {
        "content": note,
        "target": "user",
        "category": category,
        "keywords": _keywords(note),
    }


def _keywords(note: str) -> list[str]:
    topics = {
        "vegetarian": ["food", "diet", "meal", "recipe", "dinner"],
        "answer": ["style", "length", "format"],
    }
    return [word for topic, words in topics.items() if topic in note.casefold() for word in words]


def _reply(user: str, injected: Sequence[tuple[str, str]]) -> str:
    if injected and _ASKED.search(user):
        listed = "\n".join(f"- {content}" for _, content in injected)
        closing = "This is the demo model, so I only read my notes back to you."
        return f"This is what I remember about you:\n\n{listed}\n\n{closing}"
    opening = "I am the demo model, so my answers are canned."
    if noted := notes(user):
        opening = f"Noted: {' '.join(note for note, _ in noted)} {opening}"
    if injected:
        count = f"{len(injected)} {'memory' if len(injected) == 1 else 'memories'}"
        return f"{opening} I was given {count} with your message. Ask me what I know about you."
    return f"{opening} Tell me something lasting about yourself, such as what you prefer, and it will be remembered."


def _acknowledge(messages: Sequence[dict[str, Any]]) -> str:
    saved = sum(1 for message in _tail(messages) if message.get("role") == "tool" and '"ok": true' in _text(message))
    return f"I saved {saved} {'memory' if saved == 1 else 'memories'}." if saved else "I knew that already."


def _is_review(messages: Sequence[dict[str, Any]], tools: Collection[str]) -> bool:
    # A review offers exactly the three writing tools; a conversation also those that read.
    return set(tools) == {"add_memory", "update_memory", "delete_memory"} and bool(messages)


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
