"""The numbers by which everybody sees that a book changed: its generation, raised with every change of what may be
injected, and its epoch, raised when all that was before is cleared or forgotten."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db.models import F

from memories.models import Book


def books_lock(book_ids: Collection[UUID]) -> None:
    """Lock the rows of books for the rest of the transaction, in the one order that everybody keeps."""
    list(Book.objects.select_for_update().filter(pk__in=book_ids).order_by("pk").values_list("pk"))


def generations_raise(book_ids: Collection[UUID], *, epoch: bool = False, **values: Any) -> None:
    """Raise the generation of locked books, and their epoch; `values` are further columns. No revision is written:
    for changes that are not of one memory."""
    if epoch:
        values["epoch"] = F("epoch") + 1
    Book.objects.filter(pk__in=book_ids).update(generation=F("generation") + 1, **values)
