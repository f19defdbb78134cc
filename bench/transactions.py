"""Measure the longest write transaction of large operations: a session of thousands of turns is branched, edited and
deleted, hundreds of messages are stored at once, and a person with much data is forgotten.

    python bench/transactions.py
    python bench/transactions.py --only branch --turns 2000
    python bench/transactions.py --database-url postgres://user:password@127.0.0.1:5432/postgres

Runs the shipped code on its own database, as growth.py does. Rows of runs are as wide as those of real turns (5 kB).
Each operation runs --repeats times on new data; the figures are medians of these: the milliseconds of the longest
transaction, from BEGIN to the end of the commit, the processor time of this process within it, and the number of
transactions. A statement outside of a transaction counts as one. The last line is one JSON object."""

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from growth import database
from own_home import own_home

READS = ("SELECT", "BEGIN", "SAVEPOINT", "RELEASE", "ROLLBACK", "PRAGMA", "SET")


class Held(NamedTuple):
    """How long a transaction took, in seconds of the clock and of the processor."""

    seconds: float
    cpu: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database-url", default="", help="a PostgreSQL server to create a database on")
    parser.add_argument("--only", nargs="*", default=[""], help="operations whose name contains one of these")
    parser.add_argument("--turns", type=int, default=8_000, help="turns of the long session")
    parser.add_argument("--repeats", type=int, default=3, help="measurements per operation")
    options = parser.parse_args()
    with database(options.database_url) as variables, own_home("transactions", variables):
        from growth_data import migrate
        from transactions_data import operations

        migrate()
        found = [
            measure(name, prepare, options.repeats)
            for name, prepare in operations(options.turns).items()
            if any(part in name for part in options.only)
        ]
    print(json.dumps({"operations": found, "database": "postgresql" if options.database_url else "sqlite"}))


def measure(name: str, prepare: Callable[[], Callable[[], object]], repeats: int) -> dict[str, Any]:
    """Run an operation several times on new data, print its line, and return its figures."""
    longest, counts = [], []
    for _ in range(repeats):
        operation = prepare()
        gc.collect()
        gc.freeze()  # as in a web process, whose collector ignores what was loaded before
        with transactions_timed() as held:
            operation()
        longest.append(max(held))
        counts.append(len(held))
    figures = {
        "name": name,
        "longest_ms": round(statistics.median(one.seconds for one in longest) * 1000, 1),
        "cpu_ms": round(statistics.median(one.cpu for one in longest) * 1000, 1),
        "transactions": round(statistics.median(counts)),
    }
    print(f"{name:52}{figures['longest_ms']:9}{figures['cpu_ms']:9}{figures['transactions']:6}", flush=True)
    return figures


@contextmanager
def transactions_timed() -> Iterator[list[Held]]:
    """Yield a list to which each write transaction of this thread's connection is appended."""
    from django.db import connection
    from django.db.backends.utils import CursorWrapper

    held: list[Held] = []
    began: list[tuple[float, float]] = []
    set_autocommit, commit, execute = connection.set_autocommit, connection.commit, CursorWrapper._execute

    def end() -> None:
        seconds, cpu = began.pop()
        held.append(Held(time.perf_counter() - seconds, time.process_time() - cpu))

    def timed_set_autocommit(autocommit: bool, *args: Any, **kwargs: Any) -> None:
        if not autocommit:
            began.append((time.perf_counter(), time.process_time()))
        set_autocommit(autocommit, *args, **kwargs)

    def timed_commit() -> None:
        commit()
        if began:
            end()

    def timed_execute(cursor: CursorWrapper, sql: Any, params: Any, *ignored: Any) -> Any:
        if connection.in_atomic_block or str(sql).startswith(READS):
            return execute(cursor, sql, params, *ignored)
        began.append((time.perf_counter(), time.process_time()))
        try:
            return execute(cursor, sql, params, *ignored)
        finally:
            end()

    connection.set_autocommit = timed_set_autocommit
    connection.commit = timed_commit
    CursorWrapper._execute = timed_execute
    try:
        yield held
    finally:
        connection.set_autocommit, connection.commit, CursorWrapper._execute = set_autocommit, commit, execute


if __name__ == "__main__":
    main()
