"""Queries of reviews and consolidation runs."""

from collections.abc import Sequence
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery

from gateway.agents.model_choice import review_target
from memories.caller import UNLIMITED, KeyLimits
from memories.errors import NotFound
from memories.models import Book
from reviews.models import ConsolidationRun, ReviewRun

Row = TypeVar("Row", ReviewRun, ConsolidationRun)


def review_get(owner_id: UUID, review_id: UUID | None, *, limits: KeyLimits = UNLIMITED) -> ReviewRun:
    """Return the owner's review, with its book. Raises NotFound."""
    rows = ReviewRun.objects.filter(owner_id=owner_id)
    return _get(limits.filter(rows, book="book__name", agent="agent_name"), review_id, "review")


def consolidation_get(owner_id: UUID, run_id: UUID | None, *, limits: KeyLimits = UNLIMITED) -> ConsolidationRun:
    """Return the owner's consolidation run, with its book. Raises NotFound."""
    rows = ConsolidationRun.objects.filter(owner_id=owner_id)
    return _get(limits.filter(rows, book="book__name"), run_id, "consolidation")


def _get(rows: "QuerySet[Row]", key: UUID | None, noun: str) -> Row:
    row = rows.select_related("book").filter(pk=key).first() if key else None
    if row is None:
        raise NotFound(f"There is no such {noun}.")
    return row


def newest_by_book(books: Sequence[Book], rows: "QuerySet[Any]", order: str) -> dict[UUID, Any]:
    """Return the first of the rows in this order for each book, by the book's id. One query."""
    first = rows.filter(book=OuterRef("pk")).order_by(order).values("pk")[:1]
    found = Book.objects.filter(pk__in=[book.pk for book in books]).annotate(first_row=Subquery(first))
    return {row.book_id: row for row in rows.model._default_manager.filter(pk__in=found.values("first_row"))}


def review_model(review: ReviewRun) -> str:
    """Return the name of the model that a review uses."""
    return review_target(review.settings).model
