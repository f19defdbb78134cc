"""The frozen block: which memories every request of a session carries, and in which bytes.

A pure function of the view and the agent's settings: no clock, no usage counter, so that an eviction, a restart or
another process gives the same bytes and the upstream's prompt cache stays warm."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memories.models import Target
from prompts.memory import MemoryLine, memory_block


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewEntry:
    """A memory that may be injected, as it was in its generation."""

    number: int
    target: str
    category: str
    content: str
    keywords: tuple[str, ...]
    pinned: bool
    content_changed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenBlock:
    """The rendered block and the memories it holds."""

    text: str
    entries: tuple[ViewEntry, ...]
    holds_all: bool


def freeze(entries: Sequence[ViewEntry], *, max_memories: int, char_limit: int) -> FrozenBlock:
    """Choose and render. If everything fits, everything; else at most half of `max_memories`, pinned first, then
    what is about the person, then by when the words last changed (newest first), then by number, until full."""
    if not char_limit or not entries:
        return FrozenBlock(text="", entries=(), holds_all=not entries)
    fits = len(entries) <= max_memories and sum(len(entry.content) for entry in entries) <= char_limit
    chosen = list(entries) if fits else _choose(entries, most=max_memories // 2, char_limit=char_limit)
    chosen.sort(key=lambda entry: (not entry.pinned, entry.number))
    return FrozenBlock(text=render(chosen), entries=tuple(chosen), holds_all=fits)


def render(entries: Sequence[ViewEntry]) -> str:
    """Return the `<memories>` block of these entries, in this order."""
    return memory_block([MemoryLine(number=e.number, category=e.category, content=e.content) for e in entries])


def _choose(entries: Sequence[ViewEntry], *, most: int, char_limit: int) -> list[ViewEntry]:
    ranked = sorted(
        entries, key=lambda e: (not e.pinned, e.target != Target.USER, -e.content_changed_at.timestamp(), e.number)
    )
    chosen: list[ViewEntry] = []
    left = char_limit
    for entry in ranked:
        if len(chosen) == most or len(entry.content) > left:
            break
        chosen.append(entry)
        left -= len(entry.content)
    return chosen
