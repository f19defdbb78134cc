"""memories.recall.two_lanes: the two lanes, their limits, and their failures."""

import asyncio
import threading
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.recall.book_views import BookState, BookView
from memories.recall.frozen import ViewEntry, freeze
from memories.recall.items import RecallItem
from memories.recall.snapshot import SessionSnapshot
from memories.recall.threads import ThreadTurn, ThreadView
from memories.recall.two_lanes import (
    SHORT_TERM_BYTES,
    SNIPPET_BYTES,
    TOTAL_BYTES,
    Injection,
    RecallSettings,
    fit_lanes,
    recall,
    truncate,
)
from search import BookIndex, Hit

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def snapshot_of(*contents: str, frozen_chars: int = 0, max_memories: int = 20) -> SessionSnapshot:
    entries = tuple(
        ViewEntry(
            number=n,
            target="user",
            category="general",
            content=content,
            keywords=(),
            pinned=False,
            said_at=NOW,
        )
        for n, content in enumerate(contents, start=1)
    )
    state = BookState(book_id=uuid4(), owner_id=uuid4(), name="main", generation=1, epoch=1)
    frozen = freeze(entries, max_memories=max_memories, char_limit=frozen_chars)
    return SessionSnapshot(view=BookView(state, entries), version=(1, 0), frozen=frozen)


def thread_of(*pairs: tuple[str, str]) -> ThreadView:
    return ThreadView(
        [
            ThreadTurn(record_id=uuid4(), run_id=uuid4(), turn=n, user=user, assistant=assistant, said_at=NOW)
            for n, (user, assistant) in enumerate(pairs, start=1)
        ]
    )


async def run(
    snapshot: SessionSnapshot,
    query: str,
    *,
    thread: ThreadView | None = None,
    max_memories: int = 20,
    seconds: float = 5,
) -> Injection:
    limits = RecallSettings(max_memories=max_memories, search="ranked", lane_seconds=seconds)
    return await recall(snapshot=snapshot, thread=thread, query=query, keywords=None, limits=limits)


async def test_the_long_term_lane_finds_memories_outside_the_frozen_block() -> None:
    found = await run(snapshot_of("Is allergic to hazelnuts.", "Plays the cello."), "May I serve hazelnut cake?")
    assert found.recalled[0].lane == "long_term"
    assert "Is allergic to hazelnuts." in found.recall
    assert found.recall.count("<memories>") == 1
    assert "<thread_memories>" not in found.recall


@pytest.mark.parametrize("message", ["{question}\n\n{text}", "{text}\n\n{question}"])
async def test_a_question_about_a_long_text_is_searched_separately(message: str) -> None:
    steps = (f"Step {n} of the release pipeline deploys file {n * 7} to the staging database." for n in range(40))
    query = message.format(text="\n".join(["```", *steps, "```"]), question="Who plays the cello?")
    snapshot = snapshot_of("Deploys run through the pipeline file release.yml.", "Plays the cello.")
    found = await run(snapshot, query)
    assert "Plays the cello." in [item.text for item in found.recalled]


async def test_memories_of_the_frozen_block_are_not_repeated() -> None:
    found = await run(snapshot_of("Is allergic to hazelnuts.", frozen_chars=1000), "hazelnut cake")
    assert (found.recall, [r.lane for r in found.recalled]) == ("", ["frozen"])
    assert found.frozen.count("<memory ") == 1


async def test_frozen_and_recalled_memories_share_one_limit() -> None:
    contents = [f"Likes hazelnut recipe number {n}." for n in range(40)]
    found = await run(snapshot_of(*contents, frozen_chars=3000, max_memories=6), "hazelnut recipes", max_memories=6)
    assert len({r.number for r in found.recalled}) == len(found.recalled) == 6


async def test_short_term_comes_first_and_quotes_earlier_turns() -> None:
    thread = thread_of(("The gate code is written on the blue door", "I see."), ("Nice weather", "Indeed."))
    found = await run(snapshot_of("Owns a blue bicycle."), "What was on the blue door?", thread=thread)
    assert found.recall.index("<thread_memories>") < found.recall.index("<memories>")
    assert "The gate code is written on the blue door" in found.recall
    short = next(r for r in found.recalled if r.lane == "short_term")
    assert (short.why, short.turn_id) == ("Said earlier in this conversation, turn 1.", thread.outside[0].run_id)


async def test_a_failing_lane_does_not_affect_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: ThreadView, query: str, *, limit: int) -> None:
        raise RuntimeError("index is broken")

    monkeypatch.setattr(ThreadView, "search", broken)
    found = await run(snapshot_of("Is allergic to hazelnuts."), "hazelnuts", thread=thread_of(("a", "b")))
    assert "Is allergic to hazelnuts." in found.recall
    assert (found.trace["short_term"]["state"], found.trace["short_term"]["kind"]) == ("failed", "RuntimeError")
    assert found.trace["long_term"]["state"] == "ok"


async def test_a_conversation_searched_before_needs_no_worker_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where: list[threading.Thread] = []
    search = ThreadView.search

    def watched(self: ThreadView, query: str, *, limit: int) -> list[tuple[ThreadTurn, str]]:
        where.append(threading.current_thread())
        return search(self, query, limit=limit)

    monkeypatch.setattr(ThreadView, "search", watched)
    thread = thread_of(("The gate code is written on the blue door", "I see."))
    for query in ("the blue door?", "the blue door?", f"the blue door {'x' * 200}?"):
        found = await run(snapshot_of("Is allergic to hazelnuts."), query, thread=thread)
        assert "blue door" in found.recall
    first, second, long = where
    assert second is threading.current_thread()
    assert first is not second
    assert long is not second


async def test_the_index_of_a_book_is_not_built_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    where: list[threading.Thread] = []
    search = BookIndex.search

    def watched(self: BookIndex, query: str, **options: Any) -> list[Hit]:
        where.append(threading.current_thread())
        return search(self, query, **options)

    monkeypatch.setattr(BookIndex, "search", watched)
    snapshot = snapshot_of("Is allergic to hazelnuts.")
    for _ in range(2):
        assert "hazelnuts" in (await run(snapshot, "hazelnuts")).recall
    first, second = where
    assert first is not threading.current_thread()
    assert second is threading.current_thread()


async def test_a_hanging_lane_is_abandoned_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def hanging(self: ThreadView, query: str, *, limit: int) -> list[object]:
        release.wait(60)
        return []

    monkeypatch.setattr(ThreadView, "search", hanging)
    try:
        found = await asyncio.wait_for(
            run(snapshot_of("Is allergic to hazelnuts."), "hazelnuts", thread=thread_of(("a", "b")), seconds=2), 30
        )
    finally:
        release.set()
    assert found.trace["short_term"]["state"] == "timeout"
    assert "Is allergic to hazelnuts." in found.recall


def item(lane: str, size: int) -> RecallItem:
    return RecallItem(lane=lane, reason="", text="x" * size)  # type: ignore[arg-type]


def test_a_reason_is_empty_if_its_explanation_fails() -> None:
    hit = Hit(1, 1.0, explain=Mock(side_effect=RuntimeError))
    assert RecallItem("long_term", hit, "tea").as_json()["why"] == ""


def test_each_lane_has_reserved_space_and_may_use_the_others_rest() -> None:
    short, long = fit_lanes([item("short_term", 512)] * 20, [item("long_term", 512)] * 20)
    assert (len(short), len(long)) == (3, 5)  # 1536 and 2560
    short, long = fit_lanes([item("short_term", 512)] * 20, [])
    assert (len(short), len(long)) == (8, 0)
    short, long = fit_lanes([item("short_term", 512)], [item("long_term", 512)] * 20)
    assert (len(short), len(long)) == (1, 7)


@given(st.lists(st.integers(1, SNIPPET_BYTES), max_size=30), st.lists(st.integers(1, SNIPPET_BYTES), max_size=30))
def test_both_lanes_together_stay_within_four_kib(shorts: list[int], longs: list[int]) -> None:
    short, long = fit_lanes([item("short_term", n) for n in shorts], [item("long_term", n) for n in longs])
    used = [sum(len(i.text) for i in lane) for lane in (short, long)]
    assert sum(used) <= TOTAL_BYTES
    # A lane is shortened only if it would exceed its reserved space.
    assert len(short) == len(shorts) or used[0] + shorts[len(short)] > SHORT_TERM_BYTES
    assert len(long) == len(longs) or used[1] + longs[len(long)] > TOTAL_BYTES - SHORT_TERM_BYTES


@given(st.text(max_size=900))
def test_a_truncated_snippet_keeps_the_limit_and_whole_characters(text: str) -> None:
    snippet = truncate(text)
    assert len(snippet.encode()) <= SNIPPET_BYTES
    assert snippet == text or (snippet.endswith("…") and text.startswith(snippet[:-1].rstrip()))


def test_a_snippet_of_exactly_the_limit_is_not_truncated() -> None:
    assert truncate("ä" * 256) == "ä" * 256
    assert truncate("ä" * 256 + "x") == "ä" * 254 + "…"
