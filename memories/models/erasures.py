"""Forgettings in progress, and what the caches of every process have to drop."""

from datetime import datetime, timedelta
from uuid import uuid4

from django.db import models
from django.db.models import Q
from django.utils import timezone

LEASE_SECONDS = 60


def lease_end() -> datetime:
    """Return the end of a lease that is taken or extended now."""
    return timezone.now() + timedelta(seconds=LEASE_SECONDS)


class Erasure(models.Model):
    """A forgetting: the request, so that any process can finish it, and the number of rows erased so far. There is no
    foreign key, since the owner may be deleted before it is finished. The id grants access to the numbers, so it is
    random. After a forgetting has finished, only the numbers are kept, for a day."""

    class Scope(models.TextChoices):
        MEMORIES = "memories", "All memory data of one book or of all books"
        OWNER = "owner", "The owner and all their data"
        ACCOUNT = "account", "The owner, all their data and the account"

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    owner_id = models.UUIDField(null=True)
    scope = models.CharField(max_length=8, choices=Scope.choices)
    book = models.CharField(max_length=64, blank=True, help_text="Name of the book; empty: all books.")
    actor = models.CharField(max_length=255, blank=True, help_text="Name of the account that requested it.")
    actor_id = models.CharField(max_length=80, blank=True)
    stopped = models.BooleanField(default=False, help_text="Earlier background work can no longer write.")
    erased = models.JSONField(default=dict, help_text="Number of erased rows by kind.")
    leased_until = models.DateTimeField(default=lease_end, help_text="Until then a process is working on it.")
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["leased_until"], condition=Q(finished_at__isnull=True), name="erasure_open"),
            models.Index(fields=["finished_at"], name="erasure_age"),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.pk}"

    @property
    def gone(self) -> int:
        """The number of rows erased so far."""
        return sum(self.erased.values())


class Invalidation(models.Model):
    """A message to every process that an owner, a book (or a part of it) or a session was forgotten, which was deleted
    or only ended. Append-only, and kept for a day. There are no foreign keys, since the rows may have been deleted."""

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

    @property
    def words_are_gone(self) -> bool:
        """Whether the data was deleted from the database too, unlike for a session that only ended."""
        return self.kind != self.Kind.SESSION_ENDED
