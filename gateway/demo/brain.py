"""The demo model: rules that demonstrate memory without an API key. It saves plain statements about a person, reports
what memory gave it, and always says that it is a demo. It is never used if an upstream is configured."""

import html
import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.demo.statements import Statement, statements
from gateway.messages import last_user_index, text_of
from memories.number_words import memories
from memories.tools import Stage, tools_at

_MEMORY = re.compile(r'<memory id="\d+"[^<>]*>([^<]*)</memory>')
_RECALL_QUESTION = re.compile(r"\b(?:what do you (?:know|remember)|about me|remember about)\b", re.IGNORECASE)
_SAVE_REQUEST = re.compile(r"\b(?:remember|call me)\b", re.IGNORECASE)
_MAX_WRITES = 5
_NOTHING_TO_SAVE = "Nothing to save."
_SESSION = re.compile(r"<session>\n([^<]*)\n</session>")
_DOCUMENT = re.compile(r'<document path="MEMORY\.md">\n([^<]*)\n(?:<written_by|<taken_out|</document>)')
_NOTES_OPEN, _NOTES_CLOSE = "<notes>\n", "\n</notes>"
_SUMMARY_LINES = 20


@dataclass(frozen=True, slots=True)
class Answer:
    """Text, and tool calls as (name, arguments)."""

    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


def answer(messages: Sequence[dict[str, Any]], tools: Collection[str]) -> Answer:
    """Return the demo model's answer to a request that offers these tools."""
    is_review = bool(messages) and set(tools) == {tool.name for tool in tools_at(Stage.REVIEW)}
    if results := _results(messages):
        return Answer(_NOTHING_TO_SAVE if is_review else _acknowledge(results))
    if is_review:
        return _review(messages)
    last_user = last_user_index(messages)
    user = _text(messages[last_user]) if last_user >= 0 else ""
    if not tools and (found := _consolidation(user)) is not None:
        return Answer(found)
    injected = _memories("\n".join(_text(message) for message in messages if message.get("role") == "system"))
    new_statements = _unknown(statements(user), injected)
    if new_statements and "add_memory" in tools and _SAVE_REQUEST.search(user):
        return Answer("", _add_calls(new_statements))
    return Answer(_reply(user, new_statements, injected))


def _review(messages: Sequence[dict[str, Any]]) -> Answer:
    *conversation, prompt = messages
    texts = [_text(message) for message in conversation if message.get("role") == "user"]
    found = [statement for text in texts for statement in statements(text)]
    calls = _add_calls(_unknown(found, _memories(_text(prompt))))
    return Answer("" if calls else _NOTHING_TO_SAVE, calls)


def _unknown(found: Iterable[Statement], known: Collection[str]) -> list[Statement]:
    """Return the statements whose text is not known yet, without duplicates."""
    known_texts = {content.casefold() for content in known}
    return [statement for statement in dict.fromkeys(found) if statement.content.casefold() not in known_texts]


def _add_calls(found: Sequence[Statement]) -> tuple[tuple[str, dict[str, Any]], ...]:
    return tuple(("add_memory", statement.arguments()) for statement in found[:_MAX_WRITES])


def _reply(user: str, new_statements: Sequence[Statement], injected: Sequence[str]) -> str:
    if injected and _RECALL_QUESTION.search(user):
        listed = "\n".join(f"- {content}" for content in injected)
        closing = "This is the demo model, so I only read my notes back to you."
        return f"This is what I remember about you:\n\n{listed}\n\n{closing}"
    sentences = ["I am the demo model, so my answers are canned."]
    if new_statements:
        # A plain turn stores nothing, and the model does not know whether reviews are enabled.
        listed = " ".join(statement.content for statement in new_statements)
        sentences.insert(0, f"I heard: {listed} That is not saved yet; a review of this conversation can save it.")
    if injected:
        sentences.append(f"I was given {memories(len(injected))} with your message. Ask me what I know about you.")
    if not new_statements and not injected:
        sentences.append("Tell me something lasting about yourself, such as what you prefer, and a review can save it.")
    return " ".join(sentences)


def _acknowledge(results: Sequence[str]) -> str:
    # A note in the result means that the memory existed already.
    saved = sum('"ok": true' in result and '"note"' not in result for result in results)
    return f"I saved {memories(saved)}." if saved else "Nothing new was saved."


def _consolidation(prompt: str) -> str | None:
    """Return the JSON answer to an extraction or a synthesis, or None for any other request."""
    if "`raw_memory` and `rollout_summary`" in prompt and (session := _SESSION.search(prompt)):
        return _extraction(session[1])
    new_notes, closed, _ = prompt.partition(_NOTES_OPEN)[2].partition(_NOTES_CLOSE)
    if "`memory_md`" in prompt and closed:
        current = _DOCUMENT.search(prompt)
        return _synthesis(_bullets(current[1] if current else ""), _bullets(new_notes))
    return None


def _extraction(session: str) -> str:
    messages = [str(item.get("content", "")) for item in json.loads(session) if item.get("role") == "user"]
    found = list(dict.fromkeys(statement.content for text in messages for statement in statements(text)))
    summary = f"A session of {len(messages)} messages; {len(found)} lasting statements." if found else ""
    return json.dumps({"raw_memory": "\n".join(f"- {note}" for note in found), "rollout_summary": summary})


def _synthesis(current: Sequence[str], new_notes: Sequence[str]) -> str:
    lines = list(dict.fromkeys([*current, *new_notes]))
    summary = ["What is known from past sessions:", "", *lines[:_SUMMARY_LINES]]
    return json.dumps(
        {"memory_md": "\n".join(["# Memory", "", *lines]), "memory_summary": "\n".join(summary), "skills": []}
    )


def _bullets(text: str) -> list[str]:
    return [html.unescape(line.strip()) for line in text.splitlines() if line.strip().startswith("- ")]


def _results(messages: Sequence[dict[str, Any]]) -> list[str]:
    """Return the tool results that follow the last user message."""
    later = messages[last_user_index(messages) + 1 :]
    return [_text(message) for message in later if message.get("role") == "tool"]


def _memories(text: str) -> list[str]:
    return [html.unescape(content) for content in _MEMORY.findall(text)]


def _text(message: dict[str, Any]) -> str:
    return text_of(message.get("content"))
