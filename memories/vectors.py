"""Vectors of an upstream embedding model (`DAYBOOK_EMBEDDING_MODEL`, off by default): stored beside their memories,
made in the background, and joined to the search's own signals. Their absence never fails a turn."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet

from memories.models import Book, Memory, MemoryVector
from memories.services import book_touch
from search.vectors import Vector


def vectors_of_book(owner_id: UUID, book_id: UUID) -> dict[int, Vector]:
    """Return the vectors (float arrays) of a book's live memories by number; none where no embedding model is
    configured."""
    if not settings.EMBEDDING_MODEL:
        return {}
    rows = MemoryVector.objects.filter(
        owner_id=owner_id,
        book_id=book_id,
        model=settings.EMBEDDING_MODEL,
        memory__deleted_at__isnull=True,
        content_key=F("memory__content_key"),
    )
    return {
        number: np.frombuffer(values, dtype="<f4") for number, values in rows.values_list("memory__number", "values")
    }


def missing_vectors() -> QuerySet[Memory]:
    """Live memories that are not blocked and have no vector of the configured model for their present words."""
    fresh = Q(vector__model=settings.EMBEDDING_MODEL, vector__content_key=F("content_key"))
    return Memory.objects.filter(deleted_at__isnull=True, scan_rule="").exclude(fresh)


@transaction.atomic
def vectors_store(book: Book, vectors: Mapping[UUID, Sequence[float]], keys: Mapping[UUID, str]) -> int:
    """Store vectors by memory, for the words (`keys`: content keys) they were made of; the book's next turns use them.
    Returns how many are new."""
    locked = Book.objects.select_for_update().get(pk=book.pk)
    present = Memory.objects.filter(owner_id=locked.owner_id, book=locked, pk__in=list(vectors)).values_list(
        "pk", flat=True
    )
    rows = [
        MemoryVector(
            memory_id=pk,
            owner_id=locked.owner_id,
            book=locked,
            model=settings.EMBEDDING_MODEL,
            content_key=keys[pk],
            values=np.asarray(vectors[pk], dtype="<f4").tobytes(),
        )
        for pk in present
    ]
    MemoryVector.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["memory"],
        update_fields=["model", "content_key", "values"],
    )
    if rows:
        book_touch(locked, written=False)
    return len(rows)
