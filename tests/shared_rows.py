"""Rows that all tests of a module begin with, created once.

A test's changes to them are rolled back when it ends, since its transaction is a savepoint inside theirs. Not for
modules with real transactions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db import transaction
from pytest_django.plugin import DjangoDbBlocker

Rows = TypeVar("Rows")


@contextmanager
def shared_rows(blocker: DjangoDbBlocker, make: Callable[[], Rows]) -> Iterator[Rows]:
    """Call `make`, yield what it returns, and roll its rows back when the block ends; for a module fixture."""
    block = transaction.atomic()
    with blocker.unblock():
        block.__enter__()
        rows = make()
    try:
        yield rows
    finally:
        with blocker.unblock():
            transaction.set_rollback(True)
            block.__exit__(None, None, None)
