"""Queries of reviews and consolidation runs, and of the turns that reviews read."""

from collections.abc import Collection, Sequence
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import OuterRef, Q, QuerySet, Subquery

from gateway.agents.model_choice import review_target
from gateway.models import Message
from memories.caller import UNLIMITED, KeyLimits
from memories.errors import NotFound
from memories.history.provenance import Turns
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


def turns_read(owner_id: UUID, reviews: Sequence[ReviewRun]) -> dict[UUID, Turns]:
    """Return the turns in the message range of each of the owner's reviews, by review id. One query."""
    ranges = [Q(session=r.session_id, seq__gte=r.first_seq, seq__lte=r.last_seq) for r in reviews if r.session_id]
    if not ranges:
        return {}
    messages = Message.objects.filter(Q(*ranges, _connector=Q.OR), owner_id=owner_id, role=Message.Role.USER)
    rows = list(messages.exclude(run=None).order_by("seq").values_list("session_id", "seq", "run__turn", "run_id"))
    turns = {}
    for review in reviews:
        read = [
            (turn, run_id)
            for session_id, seq, turn, run_id in rows
            if session_id == review.session_id and review.first_seq <= seq <= review.last_seq
        ]
        if read:
            turns[review.pk] = Turns(first=read[0][0], last=read[-1][0], run_id=read[0][1])
    return turns


def last_turn_read(review: ReviewRun) -> UUID | None:
    """Return the run of the last turn that a review read, under which its writes are shown. One query."""
    messages = Message.objects.filter(owner_id=review.owner_id, session=review.session_id, seq__lte=review.last_seq)
    return messages.exclude(run=None).order_by("-seq").values_list("run_id", flat=True).first()


def turns_of(owner_id: UUID, review_ids: Collection[UUID]) -> dict[UUID, Turns]:
    """Return the turns that reviews read, by review id, for memories.history.provenance. Two queries."""
    rows = ReviewRun.objects.filter(owner_id=owner_id, pk__in=review_ids)
    return turns_read(owner_id, list(rows.only("session_id", "first_seq", "last_seq")))
