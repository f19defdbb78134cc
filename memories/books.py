"""The current state of a book, which decides whether a snapshot is fresh or stale."""

from uuid import UUID

from django.utils import timezone

from memories.database.statements import Select, given
from memories.models import Book
from memories.recall.book_views import BookState
from memories.services import book_expiry_note, book_get_or_create

_BY_NAME = Select(lambda: Book.objects.filter(**given(Book, "owner", "name")))


def book_state(owner_id: UUID, name: str) -> BookState:
    """Return the current state of a book, created if missing. Expired memories raise its generation first."""
    book = _BY_NAME.instance(owner=owner_id, name=name) or book_get_or_create(owner_id, name)
    if book.next_expiry_at and book.next_expiry_at <= timezone.now():
        book = book_expiry_note(book)
    return BookState.of(book)


def book_state_to_read(owner_id: UUID, name: str) -> BookState:
    """Return the state of a book for reading. Nothing is written for expired memories, which views leave out anyway,
    but a missing book is created."""
    return existing_book_state(owner_id, name) or BookState.of(book_get_or_create(owner_id, name))


def existing_book_state(owner_id: UUID, name: str) -> BookState | None:
    """Return the state of a book for reading, or None if it does not exist yet."""
    book = _BY_NAME.instance(owner=owner_id, name=name)
    return BookState.of(book) if book else None
