"""Measure which costs grow with the data: the start of a turn, a write, a search, and pages, at several sizes.

    python bench/growth.py
    python bench/growth.py --million --limit 3600
    python bench/growth.py --database-url postgres://user:password@127.0.0.1:5432/postgres

Runs the shipped code on its own database: SQLite in a temporary home, or a database that is created on the given
server and dropped at the end. The rows of all other owners (memories with revisions, sessions, runs, messages) are
inserted in bulk; the measured owner writes and searches like any other.

Prints a table and, as its last line, one JSON object: `points`, each with `memories` and `owners` (in the whole
database), `book` (memories of the measured owner's book), and the medians `turn_start_ms` (the opening transaction
and the injection, with a warm snapshot), `add_ms`, `search_ms`, and of pages as the server renders them:
`admin_list_ms` (the memories), `dashboard_ms` (the admin's first page), `session_ms` (the chat page of a session of 200
turns) and `earlier_ms` (the next older turns of that session)."""

import argparse
import asyncio
import json
import secrets
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from own_home import own_home

# (owners, memories of each, memories of the measured book)
SIZES = ((10, 100, 100), (100, 100, 100), (1000, 100, 100), (1000, 100, 1000), (1000, 100, 4000))
PAGES = ("admin_list_ms", "dashboard_ms", "session_ms", "earlier_ms")
MILLION = ((10_000, 100, 100),)
MANY_OWNERS = ((100_000, 10, 100),)
QUICK = ((10, 20, 20), (50, 20, 200))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database-url", default="", help="a PostgreSQL server to create a database on")
    parser.add_argument("--repeats", type=int, default=15, help="measurements per figure")
    parser.add_argument("--limit", type=float, default=170.0, help="start no further size after so many seconds")
    parser.add_argument("--quick", action="store_true", help="two small sizes")
    parser.add_argument("--million", action="store_true", help="one size: 1,000,000 memories of 10,000 owners")
    parser.add_argument("--owners", action="store_true", help="one size: 1,000,000 memories of 100,000 owners")
    options = parser.parse_args()
    with database(options.database_url) as variables, own_home("growth", variables):
        from growth_data import add_owners, migrate

        migrate()
        sizes = QUICK if options.quick else MILLION if options.million else MANY_OWNERS if options.owners else SIZES
        points = measure_sizes(sizes, options.repeats, time.monotonic() + options.limit, add_owners)
    print(json.dumps({"points": points, "database": "postgresql" if options.database_url else "sqlite"}))


@contextmanager
def database(url: str) -> Iterator[dict[str, str]]:
    """Create an empty database and yield the environment variables for it; none without a URL."""
    if not url:
        yield {}
        return
    import psycopg
    from psycopg import sql

    name = f"daybook_growth_{secrets.token_hex(6)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield {"DATABASE_URL": urlunsplit(urlsplit(url)._replace(path=f"/{name}"))}
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def measure_sizes(
    sizes: tuple[tuple[int, int, int], ...], repeats: int, until: float, add_owners: Callable[[int, int], None]
) -> list[dict[str, Any]]:
    """Grow the database step by step; measure and print a line at each size."""
    from growth_data import Subject

    subject = Subject()
    loop = asyncio.new_event_loop()
    columns = ("memories", "owners", "book", "turn_start_ms", "add_ms", "search_ms", *PAGES)
    print(" ".join(f"{column:>13}" for column in columns))
    points: list[dict[str, Any]] = []
    others = 0
    for owners, each, book in sizes:
        if time.monotonic() > until:
            print(f"skipped for lack of time: {owners} owners with {each} memories, a book of {book}")
            continue
        add_owners(owners - 1 - others, each)
        others = owners - 1
        subject.grow(book)
        # An add changes the book's size, so it is measured last; the next grow() counts what it added.
        point: dict[str, Any] = {"memories": subject.memories_in_database(), "owners": owners, "book": book}
        point["turn_start_ms"] = median_ms(repeats, subject.turn_start(loop), subject.turn_end)
        point["search_ms"] = median_ms(repeats, subject.search)
        for name, page in zip(
            PAGES, (subject.admin_list, subject.dashboard, subject.session_page, subject.earlier_turns), strict=True
        ):
            point[name] = median_ms(max(3, repeats // 3), page)
        point["add_ms"] = median_ms(repeats, subject.add)
        points.append(point)
        print(" ".join(f"{point[column]:>13}" for column in columns), flush=True)
    loop.close()
    return points


def median_ms(repeats: int, act: Callable[[], object], after: Callable[[], object] | None = None) -> float:
    """Return the median milliseconds of `act`. The first call only warms up; `after` is not timed."""
    times = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        act()
        times.append((time.perf_counter() - started) * 1000)
        if after is not None:
            after()
    return round(statistics.median(times[1:]), 2)


if __name__ == "__main__":
    main()
