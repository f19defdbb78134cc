"""Prompts for consolidation (extraction and synthesis), and the Memory Guidance block."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from prompts.files import fill, prompt_file

_SYSTEM = "memories/stage_one_system"
_INPUT = "memories/stage_one_input"
_SYNTHESIS = "memories/consolidation"
_GUIDANCE = "memories/read_path"


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentDocument:
    """A document's current content, with the lines that a person wrote and those that they removed."""

    path: str
    content: str
    person_lines: Sequence[str]
    struck_lines: Sequence[str]
    reads: int
    last_read: str  # a date, or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionNotes:
    """The result of a session's extraction."""

    session_id: str
    date: str
    raw_memory: str
    synopsis: str


def extraction_messages(*, thread_id: str, items: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return the messages for one extraction; `items` are `{role, content}` in order."""
    # "<" is escaped as JSON allows, so that no content can end the tag around it.
    listed = json.dumps(list(items), ensure_ascii=False, indent=1).replace("<", "\\u003c")
    return (
        {"role": "system", "content": prompt_file(_SYSTEM).text},
        {"role": "user", "content": fill(prompt_file(_INPUT), thread_id=thread_id, response_items_json=listed)},
    )


def synthesis_messages(
    *, documents: Sequence[CurrentDocument], notes: Sequence[SessionNotes]
) -> tuple[dict[str, Any], ...]:
    """Return the messages for one synthesis; `documents` are sorted by path, `notes` newest first."""
    text = fill(
        prompt_file(_SYNTHESIS),
        current_memory_md="\n".join(map(_document, documents)) or "(none yet)",
        artifact_usage="\n".join(map(_usage, documents)) or "(none yet)",
        rollout_summaries="\n".join(f"- {note.date}: {escape(note.synopsis)}" for note in notes if note.synopsis)
        or "(none)",
        raw_memories="\n".join(map(_note, notes)) or "(none)",
    )
    return ({"role": "user", "content": text},)


def guidance(summary: str, *, read_tool: str = "read") -> str:
    """Return the Memory Guidance block for a summary, or "" if it is blank; the summary cannot end the block's tag.
    `read_tool` is the name of the tool that reads documents."""
    if not summary.strip():
        return ""
    return fill(prompt_file(_GUIDANCE), memory_summary=escape(summary), read_tool=read_tool)


def prompts_sha256() -> dict[str, str]:
    """Return the hashes of the consolidation prompts by name."""
    return {name: prompt_file(name).sha256 for name in (_SYSTEM, _INPUT, _SYNTHESIS)}


def _document(document: CurrentDocument) -> str:
    parts = [f'<document path="{document.path}">', escape(document.content)]
    if document.person_lines:
        parts += ["<written_by_a_person>", *map(escape, document.person_lines), "</written_by_a_person>"]
    if document.struck_lines:
        parts += ["<taken_out_by_a_person>", *map(escape, document.struck_lines), "</taken_out_by_a_person>"]
    return "\n".join([*parts, "</document>"])


def _usage(document: CurrentDocument) -> str:
    last = f", last on {document.last_read}" if document.last_read else ""
    return f"- {document.path}: read {document.reads} {'time' if document.reads == 1 else 'times'}{last}"


def _note(note: SessionNotes) -> str:
    return f'<session id="{note.session_id}" date="{note.date}">\n{escape(note.raw_memory)}\n</session>'
