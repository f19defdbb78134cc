"""Vectors of an embedding model (`DAYBOOK_EMBEDDING_MODEL`, off by default). They are computed from the contents of
memories in the background, stored, and used as a further signal of the search. Missing vectors never fail a turn.

After a change of the model, a book is searched by the model that has more vectors, until all memories have one of the
new model; then the old ones are deleted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from memories.models import Book, Memory, MemoryVector
from memories.selectors import count_by, live_condition
from memories.services import book_touch
from search.upstream import Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class BookVectors:
    """The vectors by which a book is searched, and their model ("" if there are none)."""

    model: str = ""
    by_number: Mapping[int, Vector] = field(default_factory=dict)


def vectors_of_book(owner_id: UUID, book_id: UUID) -> BookVectors:
    """Return the vectors of live memories by the model that has the most; none if no embedding model is configured."""
    if not settings.EMBEDDING_MODEL:
        return BookVectors()
    rows = list(_usable(owner_id, [book_id]).values_list("model", "memory__number", "values"))
    counts = Counter(model for model, _, _ in rows)
    if not counts:
        return BookVectors()
    chosen = max(counts, key=lambda model: (counts[model], model == settings.EMBEDDING_MODEL))
    found = {number: np.frombuffer(values, dtype="<f2") for model, number, values in rows if model == chosen}
    return BookVectors(model=chosen, by_number=found)


def count_vectors(owner_id: UUID, books: Sequence[UUID]) -> dict[UUID, int]:
    """Return the number of memories with a vector of the configured model, by book."""
    live = embeddable().filter(live_condition(), owner_id=owner_id, book__in=books)
    rows = _usable(owner_id, books).filter(model=settings.EMBEDDING_MODEL, memory__in=live)
    return count_by(rows, "book")


def _usable(owner_id: UUID, books: Sequence[UUID]) -> "QuerySet[MemoryVector]":
    return MemoryVector.objects.filter(
        owner_id=owner_id, book__in=books, memory__deleted_at__isnull=True, content_key=F("memory__content_key")
    )


def embeddable() -> QuerySet[Memory]:
    """Return the memories that should have a vector: live ones that are not blocked."""
    return Memory.objects.filter(deleted_at__isnull=True, scan_rule="")


def missing_vectors() -> QuerySet[Memory]:
    """Return the memories without a vector of the configured model for their current content."""
    fresh = MemoryVector.objects.filter(
        memory=OuterRef("pk"), model=settings.EMBEDDING_MODEL, content_key=OuterRef("content_key")
    )
    return embeddable().filter(~Exists(fresh))


def known_vectors(owner_id: UUID, keys: Sequence[str]) -> dict[str, bytes]:
    """Return the configured model's packed vectors by content key, from any of the owner's books, so that equal
    contents are embedded only once."""
    rows = MemoryVector.objects.filter(owner_id=owner_id, model=settings.EMBEDDING_MODEL, content_key__in=keys)
    return {key: bytes(values) for key, values in rows.values_list("content_key", "values")}


def packed(vector: Sequence[float]) -> bytes:
    """Return a vector in its stored form, normalised to length 1, so that every value fits a half float."""
    values = np.nan_to_num(np.asarray(vector, dtype=np.float32))
    return bytes((values / max(float(np.linalg.norm(values)), 1e-9)).astype("<f2").tobytes())


@transaction.atomic
def vectors_store(book: Book, vectors: Mapping[UUID, bytes], keys: Mapping[UUID, str]) -> int:
    """Store packed vectors by memory id, with the content keys that they were computed for, and raise the book's
    generation. If none is missing any more, vectors of other models are deleted. Return the number of stored ones."""
    locked = Book.objects.select_for_update(no_key=True).get(pk=book.pk)
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
            values=vectors[pk],
        )
        for pk in present
    ]
    MemoryVector.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["memory", "model"], update_fields=["content_key", "values"]
    )
    if rows and not missing_vectors().filter(owner_id=locked.owner_id, book=locked).exists():
        own = MemoryVector.objects.filter(owner_id=locked.owner_id, book=locked)
        own.exclude(model=settings.EMBEDDING_MODEL).delete()
    if rows:
        book_touch(locked, written=False)
    return len(rows)
