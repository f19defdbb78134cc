"""Two transactions that overlap, each in a thread with its own connection to PostgreSQL"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from tests.memories.sqlite_lock import SQLITE
from tests.waiting import eventually

only_postgresql = pytest.mark.skipif(SQLITE, reason="SQLite has one writer at a time, and no locks of rows")
_PATIENCE_SECONDS = 20


def overlap(first: Callable[[], Any], second: Callable[[], Any], *, pause_after: str) -> tuple[Any, Any]:
    """Run `first` until it has executed a statement that contains all words of `pause_after`; then run `second`, and
    continue with `first` as soon as `second` waits for a lock or has ended. Return both results; raise the first error,
    such as that of a deadlock."""
    paused, resumed = threading.Event(), threading.Event()
    backend: list[int] = []

    def pause(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if not paused.is_set() and all(word in sql for word in pause_after.split()):
            paused.set()
            assert resumed.wait(_PATIENCE_SECONDS)
        return result

    def run_first() -> Any:
        try:
            with connection.execute_wrapper(pause):
                return first()
        finally:
            connection.close()

    def run_second() -> Any:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                backend.append(cursor.fetchone()[0])
            return second()
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(run_first)
        eventually(lambda: paused.is_set() or one.done(), within=_PATIENCE_SECONDS)
        assert paused.is_set() or one.exception(), f"no statement contained {pause_after!r}"
        other = pool.submit(run_second)
        try:
            eventually(lambda: other.done() or _waits_for_lock(backend), within=_PATIENCE_SECONDS)
        finally:
            resumed.set()
        return one.result(_PATIENCE_SECONDS), other.result(_PATIENCE_SECONDS)


def _waits_for_lock(backend: list[int]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_locks WHERE pid = ANY(%s) AND NOT granted", [backend])
        return cursor.fetchone() is not None
