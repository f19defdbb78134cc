"""The frozen block: the memories that every request of a session contains.

It is a pure function of the view and the agent's settings, without clocks and usage counters, so that the bytes are the
same after an eviction, after a restart and in another process, and the upstream's prompt cache stays warm."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memories.models import Target
from memories.recall.items import RecallItem
from prompts.memory import MemoryLine, memory_block
from search.entries import Entry


@dataclass(frozen=True, kw_only=True)
class ViewEntry(Entry):
    """A memory that may be injected, in the generation of its view. `said_at` is the last change of its content. It has
    no `session_id`: entries that were saved in one session need not be related."""

    said_at: datetime
    pinned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenBlock:
    """The rendered block and its memories."""

    text: str
    items: tuple[RecallItem, ...]
    holds_all: bool


def freeze(entries: Sequence[ViewEntry], *, max_memories: int, char_limit: int) -> FrozenBlock:
    """Select and render entries: all if they fit; otherwise at most half of `max_memories`, pinned first, then those
    about the user, then by last change of the content (newest first), then by number, until the block is full."""
    if not char_limit or not entries:
        return FrozenBlock(text="", items=(), holds_all=not entries)
    fits = len(entries) <= max_memories and sum(len(entry.content) for entry in entries) <= char_limit
    chosen = list(entries) if fits else _choose(entries, limit=max_memories // 2, char_limit=char_limit)
    chosen.sort(key=lambda entry: (not entry.pinned, entry.number))
    lines = [MemoryLine(number=e.number, category=e.category, content=e.content) for e in chosen]
    return FrozenBlock(text=memory_block(lines), items=tuple(map(_item, chosen)), holds_all=fits)


def _item(entry: ViewEntry) -> RecallItem:
    why = "Pinned, so it is in every answer." if entry.pinned else "In every answer of this session."
    return RecallItem(lane="frozen", reason=why, text=entry.content, number=entry.number, category=entry.category)


def _choose(entries: Sequence[ViewEntry], *, limit: int, char_limit: int) -> list[ViewEntry]:
    ranked = sorted(entries, key=lambda e: (not e.pinned, e.target != Target.USER, -e.said_at.timestamp(), e.number))
    chosen: list[ViewEntry] = []
    remaining = char_limit
    for entry in ranked:
        if len(chosen) == limit or len(entry.content) > remaining:
            break
        chosen.append(entry)
        remaining -= len(entry.content)
    return chosen
