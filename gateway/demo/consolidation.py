"""The demo model's answers in consolidation: a session's plain statements as notes, and all notes as documents."""

import html
import json
import re
from collections.abc import Sequence

from gateway.demo.statements import statements

_SESSION = re.compile(r"<session>\n(.*?)\n</session>", re.DOTALL)
_DOCUMENT = re.compile(r'<document path="MEMORY\.md">\n(.*?)\n(?:<written_by|<taken_out|</document>)', re.DOTALL)
_NOTES = re.compile(r"<notes>\n(.*?)\n</notes>", re.DOTALL)
_SUMMARY_LINES = 20


def consolidation_answer(prompt: str) -> str | None:
    """Return the JSON answer to an extraction or a synthesis, or None for any other request."""
    if "`raw_memory` and `rollout_summary`" in prompt and (session := _SESSION.search(prompt)):
        return _extraction(session[1])
    if "`memory_md`" in prompt and (new_notes := _NOTES.search(prompt)):
        current = _DOCUMENT.search(prompt)
        return _synthesis(_bullets(current[1] if current else ""), _bullets(new_notes[1]))
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
