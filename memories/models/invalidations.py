"""What the caches of every process have to drop."""

from django.db import models
from django.utils import timezone


class Invalidation(models.Model):
    """One forgetting, for every process, by ids alone: the owner, and the book or session. Append-only, and kept for a
    day. Owner, book and session may be gone already, so none of them is a foreign key."""

    class Kind(models.TextChoices):
        OWNER = "owner"
        BOOK = "book"
        SESSION = "session"
        SESSION_ENDED = "session_ended"

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    owner_id = models.UUIDField()
    book_id = models.UUIDField(null=True, blank=True)
    session_id = models.UUIDField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["created_at"], name="invalidation_age")]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"
