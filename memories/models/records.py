"""Records of runs, notifications for browsers, and the scan's progress and counters."""

from uuid import UUID

from django.db import models
from django.db.models import Q
from django.utils import timezone

from memories.ids import uuid7
from memories.models.owners import Owner


class ThreadRecord(models.Model):
    """The native provider's record of a completed run: a reference, not a copy of the text."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="thread_records")
    session_id = models.UUIDField()
    run_id = models.UUIDField(unique=True)
    cleared_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was removed from recall; later purged like a tombstone."
    )
    cleared_by = models.UUIDField(null=True, blank=True, help_text="The change set of the clear.")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(fields=["owner", "session_id", "id"], name="thread_record_of_session"),
            models.Index(fields=["cleared_at"], condition=Q(cleared_at__isnull=False), name="thread_record_cleared"),
        ]

    def __str__(self) -> str:
        return f"threads/{self.session_id}/{self.run_id}"


class Notification(models.Model):
    """An entry of the outbox for an owner's browsers. Per owner, `seq` follows the order of commits."""

    class Kind(models.TextChoices):
        REVIEW_SAVED = "review.saved"
        REVIEW_AWAITING_APPROVAL = "review.awaiting_approval"
        REVIEW_UNDONE = "review.undone"
        MEMORY_CHANGED = "memory.changed"
        CONSOLIDATION_FINISHED = "consolidation.finished"
        RESYNC = "resync"

    id = models.BigAutoField(primary_key=True)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="notifications")
    seq = models.PositiveBigIntegerField("number")
    kind = models.CharField(max_length=32, choices=Kind.choices)
    book = models.CharField(max_length=64, blank=True, help_text="Name of the book it is about; empty: none.")
    text = models.TextField(blank=True)
    review_id = models.UUIDField("review", null=True, blank=True)
    memory_numbers = models.JSONField("memories", default=list)
    created_at = models.DateTimeField("created", default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "seq"], name="notification_seq_once_per_owner")]
        indexes = [models.Index(fields=["created_at"], name="notification_age")]

    def __str__(self) -> str:
        return f"{self.kind} {self.seq}"


class ScanRenewal(models.Model):
    """The progress of scanning stored texts again under a new version of the scan's rules."""

    rules = models.CharField(max_length=64)
    texts = models.CharField(max_length=64, help_text="The model whose rows contain the texts.")
    reached = models.UUIDField(default=UUID(int=0), help_text="The last row that was scanned.")
    over = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rules", "texts"], name="scan_renewal_once_per_rules")]

    def __str__(self) -> str:
        return f"{self.texts} {self.rules}"


class ScanDay(models.Model):
    """How often the scan refused a write on one day (UTC), by rule, over all owners."""

    day = models.DateField()
    rule = models.CharField(max_length=64)
    kind = models.CharField(max_length=16, help_text="secret, injection or prompt.")
    number = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["day", "rule"], name="scan_day_once_per_rule")]

    def __str__(self) -> str:
        return f"{self.day} {self.rule}"
