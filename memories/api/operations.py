"""Decorators for operations. Those that only use the database are plain functions that run in a database thread; the
API gets an async operation with the same name, parameters and docstring."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from memories.caller import ApiRequest
from memories.database.access import in_read_thread, in_thread
from memories.errors import InvalidRequest

_WHITE_SPACE = b" \t\r\n"
_EMPTY = (b"", b"{}", b"null")
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


def without_fields(
    operation: Callable[Concatenate[ApiRequest, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[ApiRequest, P], Coroutine[Any, Any, T]]:
    """Refuse fields in the body of an operation that has none: a client may take them for filters, as in a deletion."""

    @wraps(operation)
    async def run(request: ApiRequest, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if request.body.translate(None, _WHITE_SPACE) not in _EMPTY:  # not parsed, since it may be large
            raise InvalidRequest("This operation takes no fields in its body.")
        return await operation(request, *args, **kwargs)

    return run
