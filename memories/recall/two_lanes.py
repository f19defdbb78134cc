"""Recall: the memory that a run is given beyond the frozen block, found once per run and used by all of its steps.

Two disjoint lanes run concurrently, each with its own deadline: short-term (turns of this session that are no longer in
the context window) and long-term (entries of the book that are not in the frozen block). If a lane fails, its result is
empty and the error is noted in the run's trace; neither the turn nor the other lane fails. The steps around the lanes
(gateway.turns.injection) contain errors in the same way."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any

from memories.providers import MemoryProvider, Scope, providers
from memories.recall.failures import contained, note
from memories.recall.items import RecallItem
from memories.recall.snapshot import SessionSnapshot
from memories.recall.threads import ThreadView
from memories.verdicts import verdict_of
from prompts.memory import MemoryLine, Snippet, memory_block, thread_block
from search import LONG_MESSAGE

TOTAL_BYTES = 4096
SHORT_TERM_BYTES = 1536
SNIPPET_BYTES = 512
# The number of entries up to which an existing index is searched for a short message in about a millisecond.
SMALL_INDEX = 10_000
# How many times its deadline the long-term lane may take if it first has to build the book's index: after a start, many
# are built at once.
BUILD_FACTOR = 10
_ELLIPSIS = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """The memory in a run's requests: the frozen block and the recall message, or "". `usage` is the token usage of
    model calls that were needed to find it, by kind."""

    frozen: str = ""
    guidance: str = ""
    recall: str = ""
    recalled: tuple[RecallItem, ...] = ()
    trace: dict[str, Any] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSettings:
    """The agent's settings for recall; `lane_seconds` is the deadline of each lane."""

    max_memories: int
    search: str
    lane_seconds: float


def searches_book(snapshot: SessionSnapshot, max_memories: int) -> bool:
    """Return True if the long-term lane has entries beyond the frozen block to search, and room for them."""
    return not snapshot.frozen.holds_all and max_memories > len(snapshot.frozen.items)


async def recall(
    *,
    snapshot: SessionSnapshot,
    thread: ThreadView | None,
    query: str,
    keywords: Sequence[str] | None,
    limits: RecallSettings,
    scope: Scope | None = None,
    query_vector: Sequence[float] | None = None,
    long_term: bool = True,
) -> Injection:
    """Run the lanes and fit their results into the limits. No query is needed: the indexes come with the snapshot. With
    a `scope`, external providers are asked too, and their results follow the native ones. Without `long_term`, the book
    is not searched."""
    left = limits.max_memories - len(snapshot.frozen.items)
    trace: dict[str, Any] = {}
    quick: dict[str, Awaitable[list[RecallItem]]] = {}
    slow: dict[str, Awaitable[list[RecallItem]]] = {}

    def add_lane(name: str, search: Callable[[], list[RecallItem]], small: bool, seconds: float) -> None:
        if small and len(query) <= LONG_MESSAGE:
            # Such a search takes less time than a thread hop. It cannot be interrupted, hence no deadline.
            quick[name] = _guarded(name, _inline(search), None, trace)
        else:
            # In a thread, so that a hanging lane can be abandoned at its deadline and does not block the event loop.
            slow[name] = _guarded(name, asyncio.to_thread(search), seconds, trace)

    if thread is not None and thread.outside:
        search = partial(_short_term, thread, query, limits)
        add_lane("short_term", search, thread.index_ready and len(thread.parts) <= SMALL_INDEX, limits.lane_seconds)
    if long_term and searches_book(snapshot, limits.max_memories):
        view = snapshot.view
        search = partial(_long_term, snapshot, query, keywords, left, limits.search, query_vector)
        seconds = limits.lane_seconds * (1 if view.index_ready else BUILD_FACTOR)
        add_lane("long_term", search, view.index_ready and len(view.entries) <= SMALL_INDEX, seconds)
    if scope is not None:
        with contained("providers", trace):
            slow |= {provider.name: _provider_lane(provider, scope, query, limits, trace) for provider in providers()}
    found = {name: await lane for name, lane in quick.items()}
    if slow:
        found |= zip(slow, await asyncio.gather(*slow.values()), strict=True)
    return await _injection(snapshot, found, max(0, left), trace)


async def _injection(
    snapshot: SessionSnapshot, found: dict[str, list[RecallItem]], limit: int, trace: dict[str, Any]
) -> Injection:
    """Fit the results of the lanes into the limits. `limit` is the number of long-term ones."""
    short, long = found.pop("short_term", []), found.pop("long_term", [])
    others = (item for items in found.values() for item in items)
    short, long = fit_lanes(short, [*long, *others][:limit])
    long = await _without_blocked(long, trace)
    blocks = ""
    with contained("blocks", trace):
        snippets = [Snippet(turn=item.turn or 0, text=item.text) for item in short]
        lines = [
            MemoryLine(number=item.number or item.source, category=item.category, content=item.text) for item in long
        ]
        blocks = "\n\n".join(block for block in (thread_block(snippets), memory_block(lines)) if block)
    if not blocks:
        short, long = [], []
    frozen = snapshot.frozen
    return Injection(frozen=frozen.text, recall=blocks, recalled=(*frozen.items, *short, *long), trace=trace)


def fit_lanes(short: Sequence[RecallItem], long: Sequence[RecallItem]) -> tuple[list[RecallItem], list[RecallItem]]:
    """Fit the results of both lanes into TOTAL_BYTES. Each lane has a reserve and may use what the other leaves. Sizes
    are those of the UTF-8 text before escaping."""
    reserve_long = TOTAL_BYTES - SHORT_TERM_BYTES
    wants_short, wants_long = ([utf8_size(item.text) for item in lane] for lane in (short, long))
    for_short = max(SHORT_TERM_BYTES, TOTAL_BYTES - sum(wants_long))
    for_long = max(reserve_long, TOTAL_BYTES - sum(wants_short))
    return _fill(short, wants_short, for_short), _fill(long, wants_long, for_long)


def utf8_size(text: str) -> int:
    """Return the size of a text in UTF-8, in bytes."""
    return len(text) if text.isascii() else len(text.encode())


def truncate(text: str) -> str:
    """Return the text truncated to SNIPPET_BYTES of UTF-8, between characters and including the ellipsis."""
    if utf8_size(text) <= SNIPPET_BYTES:
        return text
    return text.encode()[: SNIPPET_BYTES - len(_ELLIPSIS.encode())].decode(errors="ignore").rstrip() + _ELLIPSIS


async def _inline(search: Callable[[], list[RecallItem]]) -> list[RecallItem]:
    return search()


async def _provider_lane(
    provider: MemoryProvider, scope: Scope, query: str, limits: RecallSettings, trace: dict[str, Any]
) -> list[RecallItem]:
    async def search() -> list[RecallItem]:
        texts = list(await provider.retrieve_context(scope, query))[: limits.max_memories]
        why = f"From {provider.name}."
        return [
            RecallItem(lane="long_term", reason=why, text=truncate(str(text)), source=f"{provider.name}:{number}")
            for number, text in enumerate(texts, start=1)
        ]

    return await _guarded(provider.name, search(), limits.lane_seconds, trace)


async def _without_blocked(items: list[RecallItem], trace: dict[str, Any]) -> list[RecallItem]:
    """Return the entries without those of other providers that the scan blocks; ours were scanned before."""
    if not (blocked := [item for item in items if item.source]):
        return items
    with contained("providers", trace):
        blocked = await asyncio.to_thread(lambda: [item for item in blocked if verdict_of(item.text, ()).rule])
        if blocked:
            trace["providers_blocked"] = len(blocked)
    return [item for item in items if item not in blocked]


async def _guarded(
    name: str, search: Awaitable[list[RecallItem]], seconds: float | None, trace: dict[str, Any]
) -> list[RecallItem]:
    """Run a lane with a deadline. Errors are contained and noted in the trace."""
    started = time.perf_counter()
    found: list[RecallItem] = []
    with contained(name, trace):
        try:
            found = await asyncio.wait_for(search, seconds)
            note(name, "ok", trace)
        except TimeoutError:
            note(name, "timeout", trace)
    trace[name] |= {"found": len(found), "ms": round((time.perf_counter() - started) * 1000, 2)}
    return found


def _short_term(thread: ThreadView, query: str, limits: RecallSettings) -> list[RecallItem]:
    return [
        RecallItem(
            lane="short_term",
            reason=f"Said earlier in this conversation, turn {turn.turn}.",
            text=truncate(text),
            turn_id=turn.run_id,
            turn=turn.turn,
        )
        for turn, text in thread.search(query, limit=limits.max_memories)
    ]


def _long_term(
    snapshot: SessionSnapshot,
    query: str,
    keywords: Sequence[str] | None,
    limit: int,
    search: str,
    vector: Sequence[float] | None,
) -> list[RecallItem]:
    view = snapshot.view
    frozen = {item.number for item in snapshot.frozen.items if item.number}
    hits = view.index.search(
        query, limit=limit, keywords=keywords, strategy=search, exclude=frozen, query_vector=vector
    )
    found = ((hit, view.by_number[hit.number]) for hit in hits)
    return [RecallItem("long_term", hit, truncate(e.content), number=e.number, category=e.category) for hit, e in found]


def _fill(items: Sequence[RecallItem], sizes: Sequence[int], limit: int) -> list[RecallItem]:
    """Return as many of the first items as fit into `limit` bytes."""
    return [item for item, until_here in zip(items, accumulate(sizes), strict=True) if until_here <= limit]
