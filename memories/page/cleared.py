"""The last `/memory clear` of a book, while it can still be undone."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.utils import timezone

from memories.models import Book, ChangeSet, Revision
from memories.viewers import Viewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """A clear that was not undone: how many memories it deleted, when, and until which day they can be restored."""

    change_set: UUID
    memories: int
    when: str
    until: str

    @property
    def words(self) -> str:
        """`27 memories were deleted by /memory clear on 22 Nov, 14:03.`"""
        were = "memory was" if self.memories == 1 else "memories were"
        return f"{self.memories:,} {were} deleted by /memory clear on {self.when}."


def last_clear(book: Book, viewer: Viewer) -> Cleared | None:
    """Return the newest clear of the book that is not undone and not too old for it, or None; two queries."""
    days = timedelta(days=settings.UNDO_DAYS)
    recent = ChangeSet.objects.filter(
        owner_id=book.owner_id, book=book, kind=ChangeSet.Kind.CLEAR, created_at__gt=timezone.now() - days
    )
    undos = ChangeSet.objects.filter(undoes=OuterRef("pk"))
    # An undo that was undone itself leaves the clear as it was.
    clear = recent.filter(~Exists(undos.filter(~Exists(undos)))).order_by("-created_at").first()
    if clear is None:
        return None
    return Cleared(
        change_set=clear.pk,
        memories=Revision.objects.filter(owner_id=book.owner_id, change_set=clear).count(),
        when=viewer.minute(clear.created_at),
        until=viewer.day(clear.created_at + days),
    )
