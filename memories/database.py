"""The database threads: how async code reaches the ORM, in one hop.

`sync_to_async` would run each request in a thread of its own, with a new connection each time. These threads live as
long as the process and keep their connections; Django checks their health. With DB_THREADS=0 (tests) the same
functions run inline, so that they see the connection of the test's own transaction.
A spare thread is kept for what must not wait behind a long query: leases of open runs, and closing them at shutdown."""

import asyncio
import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.db import close_old_connections
from django.db.models import Model, QuerySet

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=Model)
_pool: ThreadPoolExecutor | None = None
_spare: ThreadPoolExecutor | None = None


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous function that uses the ORM in a database thread, with the caller's context variables."""
    return await _run_in(_threads, functools.partial(function, *args, **kwargs))


async def in_spare_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same in the thread that requests do not use."""
    return await _run_in(_spare_thread, functools.partial(function, *args, **kwargs))


async def _run_in(pool: Callable[[], ThreadPoolExecutor], function: Callable[[], T]) -> T:
    loop = asyncio.get_running_loop()
    if not settings.DB_THREADS:
        # Django refuses the ORM where a loop is running; for the length of this call there is none.
        asyncio._set_running_loop(None)
        try:
            return function()
        finally:
            asyncio._set_running_loop(loop)
    call = functools.partial(_with_healthy_connections, contextvars.copy_context(), function)
    return await loop.run_in_executor(pool(), call)


def only_row(rows: "QuerySet[M]") -> M | None:
    """The row of a look-up that finds at most one. `first()` would add an ordering, which costs a third more than the
    look-up itself: on the way of every turn that shows."""
    return next(iter(rows), None)


def _threads() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max_workers=settings.DB_THREADS, thread_name_prefix="daybook-db")
    return _pool


def _spare_thread() -> ThreadPoolExecutor:
    global _spare
    if _spare is None:
        _spare = ThreadPoolExecutor(max_workers=1, thread_name_prefix="daybook-db-spare")
    return _spare


def _with_healthy_connections(context: contextvars.Context, function: Callable[[], T]) -> T:
    close_old_connections()  # drops what is over its age or failed; a healthy connection is kept
    return context.run(function)
