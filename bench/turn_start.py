"""What memory costs at the start of a turn: the injection step, with a warm snapshot and with a cold one.

    python bench/turn_start.py --memories 1000

Works on a database of its own in a temporary home, through the shipped code. Prints a table and, as its last line,
one JSON object: `queries` (of a warm injection), `p50_ms`, `p95_ms` (warm), `cold_p95_ms` (after a write)."""

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parent.parent
WORDS = [
    "garden",
    "bread",
    "harbour",
    "invoice",
    "deploy",
    "kettle",
    "violin",
    "ticket",
    "budget",
    "cousin",
    "lesson",
    "printer",
    "marathon",
    "recipe",
    "passport",
    "router",
    "window",
    "holiday",
    "server",
    "cycling",
    "neighbour",
    "contract",
    "painting",
    "dentist",
    "keyboard",
    "forest",
    "coffee",
    "meeting",
    "archive",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=300, help="warm injections to time")
    parser.add_argument("--cold", type=int, default=20, help="injections after a write to time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="daybook-bench-") as home:
        os.environ.update(DAYBOOK_HOME=home, DJANGO_SETTINGS_MODULE="config.settings", DAYBOOK_DB_THREADS="0")
        os.environ.pop("DATABASE_URL", None)
        sys.path.insert(0, str(REPO))
        figures = measure(options.memories, options.turns, options.cold)
    print(f"{'memories':>10} {'queries':>8} {'p50 ms':>8} {'p95 ms':>8} {'cold p95 ms':>12}")
    print(
        f"{options.memories:>10} {figures['queries']:>8} {figures['p50_ms']:>8.3f} {figures['p95_ms']:>8.3f} "
        f"{figures['cold_p95_ms']:>12.3f}"
    )
    print(json.dumps(figures))


def measure(memories: int, turns: int, cold: int) -> dict[str, Any]:
    """Fill a book, open one run, and time its injection step again and again."""
    # The settings are configured by the environment that main() has just set.
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from gateway.injection import prepare
    from gateway.runs.native import open_native
    from gateway.services import agent_save, session_create
    from memories.books import book_state
    from memories.caller import Caller
    from memories.models import WriteOrigin
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

    def timed(ready: Any) -> float:
        started = time.perf_counter()
        loop.run_until_complete(prepare(ready))
        return (time.perf_counter() - started) * 1000

    loop = asyncio.new_event_loop()
    timed(context())
    ready = context()
    with CaptureQueriesContext(connection) as captured:
        timed(ready)
    warm = [timed(context()) for _ in range(turns)]
    after_write = []
    for number in range(cold):
        with book_writing(book, source) as writer:
            writer.update(1, MemoryFields(content=f"Changed {number}: {' '.join(rng.sample(WORDS, 6))}."))
        after_write.append(timed(context()))
    loop.close()
    return {
        "memories": memories,
        "queries": len(captured.captured_queries),
        "p50_ms": round(statistics.median(warm), 3),
        "p95_ms": round(percentile(warm, 95), 3),
        "cold_p50_ms": round(statistics.median(after_write), 3),
        "cold_p95_ms": round(percentile(after_write, 95), 3),
    }


def percentile(values: list[float], share: int) -> float:
    """The value below which `share` percent lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * share // 100)]


if __name__ == "__main__":
    main()
