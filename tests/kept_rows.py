"""Rows that all tests of a module begin with, made once: what a test does to them is rolled back when it ends, since
its transaction is a savepoint in that of the rows. Not for modules with real transactions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db import transaction
from pytest_django.plugin import DjangoDbBlocker

Made = TypeVar("Made")


@contextmanager
def kept(blocker: DjangoDbBlocker, make: Callable[[], Made]) -> Iterator[Made]:
    """What `make` made of rows, which are there until the block ends; for a fixture of a module."""
    block = transaction.atomic()
    with blocker.unblock():
        block.__enter__()
        made = make()
    try:
        yield made
    finally:
        with blocker.unblock():
            transaction.set_rollback(True)
            block.__exit__(None, None, None)
