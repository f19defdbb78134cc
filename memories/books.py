"""A book as it is now: the state that makes a snapshot fresh or stale."""

from uuid import UUID

from django.utils import timezone

from memories.book_views import BookState
from memories.models import Book
from memories.services import book_expiry_note, book_get_or_create
from memories.statements import Select, given

_BY_NAME = Select(lambda: Book.objects.filter(**given(Book, "owner", "name")))


def book_state(owner_id: UUID, name: str) -> BookState:
    """Return the book as it is now. An expiry that has passed raises its generation first: an expiry is an event."""
    book = _book(owner_id, name)
    if book.next_expiry_at and book.next_expiry_at <= timezone.now():
        book = book_expiry_note(book)
    return BookState.of(book)


def book_state_to_read(owner_id: UUID, name: str) -> BookState:
    """Return the state of a book that is only read. What has expired is left out by its view, so nothing is written; a
    book that does not exist yet is made."""
    return BookState.of(_book(owner_id, name))


def book_state_if_made(owner_id: UUID, name: str) -> BookState | None:
    """Return the state of a book that is only read; None for one that does not exist yet."""
    book = _BY_NAME.instance(owner=owner_id, name=name)
    return BookState.of(book) if book else None


def _book(owner_id: UUID, name: str) -> Book:
    return _BY_NAME.instance(owner=owner_id, name=name) or book_get_or_create(owner_id, name)
