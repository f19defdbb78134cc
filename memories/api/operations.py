"""Decorators for operations that only use the database: plain functions that run in a database thread. The API gets an
async operation with the same name, parameters and docstring."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from memories.database.access import in_read_thread, in_thread

P = ParamSpec("P")
T = TypeVar("T")


def reading(operation: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Run an operation that only reads in a reading thread, where it never waits for a write."""

    @wraps(operation)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return await in_read_thread(operation, *args, **kwargs)

    return run


def writing(operation: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Run an operation that may write in a writing thread."""

    @wraps(operation)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return await in_thread(operation, *args, **kwargs)

    return run
