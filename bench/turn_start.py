"""Measure what memory costs at the start of a turn: the injection step with a warm snapshot, with a cold one, and with
earlier turns of the conversation that the request no longer shows, so that both lanes are searched.

    python bench/turn_start.py --memories 1000

Runs the shipped code on its own database in a temporary home. Prints a table and, as its last line, one JSON object:
`queries` (of a warm injection), `p50_ms`, `p95_ms` (warm), `lanes_p50_ms` (both lanes), `cold_p95_ms` (after a write).
The step is awaited inside a running task, as in a turn; `loop_p50_ms` starts a task for each step, as all figures did
until 28 November 2026."""

import argparse
import asyncio
import json
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from own_home import own_home

WORDS = [
    "garden", "bread", "harbour", "invoice", "deploy", "kettle", "violin", "ticket", "budget", "cousin", "lesson",
    "printer", "marathon", "recipe", "passport", "router", "window", "holiday", "server", "cycling", "neighbour",
    "contract", "painting", "dentist", "keyboard", "forest", "coffee", "meeting", "archive",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=300, help="warm injections to time")
    parser.add_argument("--cold", type=int, default=20, help="injections after a write to time")
    parser.add_argument("--earlier", type=int, default=40, help="earlier turns that the request no longer shows")
    options = parser.parse_args()
    with own_home("turn-start"):
        figures = measure(options.memories, options.turns, options.cold, options.earlier)
    names = ["memories", "queries", "p50_ms", "p95_ms", "lanes_p50_ms", "cold_p95_ms"]
    print(" ".join(f"{name:>12}" for name in names))
    print(" ".join(f"{figures[name]:>12}" for name in names))
    print(json.dumps(figures))


def measure(memories: int, turns: int, cold: int, earlier: int) -> dict[str, Any]:
    """Fill a book, open one run, and time its injection step repeatedly."""
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.db import connection
    from django.test.utils import CaptureQueriesContext
    from django.utils import timezone

    from gateway.runs.native import open_native
    from gateway.services import agent_save, session_create
    from gateway.turns.injection import prepare
    from memories.books import book_state
    from memories.caller import Caller
    from memories.models import WriteOrigin
    from memories.recall.threads import ThreadTurn, thread_cache
    from memories.services import (
        MemoryFields,
        Source,
        book_get_or_create,
        book_writing,
        owner_for_user,
    )

    call_command("migrate", verbosity=0)
    owner = owner_for_user(User.objects.create_user("bench"))
    agent = agent_save("bench", {"inject_memories": True, "user_char_limit": 0, "memory_char_limit": 0})
    source = Source(actor="system", origin=WriteOrigin.IMPORT)
    book = book_get_or_create(owner.pk, "main")
    rng = random.Random(7)
    with book_writing(book, source) as writer:
        for number in range(memories):
            writer.add(MemoryFields(content=f"Note {number}: {' '.join(rng.sample(WORDS, 6))}.", target="user"))
    caller = Caller(owner_id=owner.pk, actor="user:1")
    session = session_create(owner, agent)
    opened = open_native(caller, session_id=session.pk, content="warm up", replaces=None, request_id="bench")

    def context() -> Any:
        text = f"What did I say about the {rng.choice(WORDS)} and the {rng.choice(WORDS)}?"
        return replace(opened, user_text=text, book=book_state(owner.pk, "main"))

    def remember_earlier_turns() -> dict[str, Any]:
        """Put earlier turns of the session into the cache; return the context fields that refer to them."""
        newest = None
        for number in range(1, earlier + 1):
            said, answered = (" ".join(rng.sample(WORDS, 8)) for _ in range(2))
            turn = ThreadTurn(
                record_id=uuid4(), run_id=uuid4(), turn=number, user=said, assistant=answered, said_at=timezone.now()
            )
            thread_cache.append(owner.pk, session.pk, turn, after=newest)
            newest = turn.record_id
        return {"newest_record": newest, "turn": earlier + 1}

    def time_step(ready: Any) -> float:
        started = time.perf_counter()
        loop.run_until_complete(prepare(ready))
        return (time.perf_counter() - started) * 1000

    async def time_in_task(contexts: Sequence[Any]) -> list[float]:
        took = []
        for ready in contexts:
            started = time.perf_counter()
            await prepare(ready)
            took.append((time.perf_counter() - started) * 1000)
        return took

    loop = asyncio.new_event_loop()
    time_step(context())
    ready = context()
    with CaptureQueriesContext(connection) as captured:
        time_step(ready)
    with_own_task = [time_step(context()) for _ in range(turns)]
    warm = loop.run_until_complete(time_in_task([context() for _ in range(turns)]))
    record = remember_earlier_turns()
    both_lanes = loop.run_until_complete(time_in_task([replace(context(), **record) for _ in range(turns)]))
    after_write = []
    for number in range(cold):
        with book_writing(book, source) as writer:
            writer.update(1, MemoryFields(content=f"Changed {number}: {' '.join(rng.sample(WORDS, 6))}."))
        after_write.append(time_step(context()))
    loop.close()
    return {
        "memories": memories,
        "queries": len(captured.captured_queries),
        "p50_ms": round(statistics.median(warm), 3),
        "p95_ms": round(percentile(warm, 95), 3),
        "loop_p50_ms": round(statistics.median(with_own_task), 3),
        "lanes_p50_ms": round(statistics.median(both_lanes), 3),
        "lanes_p95_ms": round(percentile(both_lanes, 95), 3),
        "cold_p50_ms": round(statistics.median(after_write), 3),
        "cold_p95_ms": round(percentile(after_write, 95), 3),
    }


def percentile(values: list[float], share: int) -> float:
    """Return the value below which `share` per cent of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * share // 100)]


if __name__ == "__main__":
    main()
