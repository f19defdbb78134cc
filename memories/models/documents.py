"""Documents of a book with their history and usage, leases, and codes for clearing a book."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from memories.ids import uuid7
from memories.models.entries import ChangeSet, WriteOrigin
from memories.models.owners import Book, Owner


class Artifact(models.Model):
    """A document of a book: MEMORY.md, memory_summary.md or skills/<name>/SKILL.md, with URIs under memory://root/."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="artifacts")
    book = models.ForeignKey(Book, on_delete=models.CASCADE, related_name="artifacts")
    path = models.CharField(max_length=120)
    path_key = models.CharField(
        max_length=120, editable=False, help_text="The case-folded path, which is unique in a book."
    )
    content = models.TextField(blank=True)
    version = models.PositiveIntegerField(default=1)
    write_origin = models.CharField(max_length=20, choices=WriteOrigin.choices)
    kept = models.BooleanField(
        default=False, help_text="Consolidation dropped it, but it stays because a person edited it."
    )
    person_lines = models.JSONField(
        default=list, blank=True, help_text="Lines that a person wrote; consolidation keeps them."
    )
    struck_lines = models.JSONField(
        default=list, blank=True, help_text="Lines that a person removed; consolidation leaves them out."
    )
    scan_hash = models.CharField(max_length=64, blank=True, editable=False)
    scan_rule = models.CharField(max_length=64, blank=True, help_text="The rule that keeps it out of answers.")
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["book", "path_key"], name="artifact_path_once_per_book")]
        indexes = [
            models.Index(fields=["owner", "book", "path"], name="artifact_of_book"),
            models.Index(fields=["deleted_at"], condition=Q(deleted_at__isnull=False), name="artifact_tombstone"),
        ]

    def __str__(self) -> str:
        return self.path


class ArtifactRevision(models.Model):
    """The append-only record of one change to one artifact; it belongs to a change set, the unit of undo."""

    class Action(models.TextChoices):
        WRITE = "write"
        REMOVE = "remove"
        UNDO = "undo"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="artifact_revisions")
    artifact = models.ForeignKey(Artifact, on_delete=models.CASCADE, related_name="revisions")
    change_set = models.ForeignKey(ChangeSet, on_delete=models.CASCADE, related_name="artifact_revisions")
    version = models.PositiveIntegerField()
    action = models.CharField(max_length=8, choices=Action.choices)
    before = models.JSONField(null=True, help_text="The artifact before; empty for a new one.")
    after = models.JSONField(help_text="The artifact after.")
    actor = models.CharField(max_length=80)
    write_origin = models.CharField(max_length=20, choices=WriteOrigin.choices)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["artifact", "version"], name="artifact_revision_once")]
        indexes = [models.Index(fields=["owner", "change_set"], name="artifact_rev_of_change_set")]

    def __str__(self) -> str:
        return f"{self.action} {self.version}"


class ArtifactUsage(models.Model):
    """How often an artifact was read. A separate row, so that reading affects neither versions nor snapshots."""

    artifact = models.OneToOneField(Artifact, primary_key=True, on_delete=models.CASCADE, related_name="usage")
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="artifact_usages")
    reads = models.PositiveIntegerField(default=0)
    last_read_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.reads} reads"


class Lease(models.Model):
    """A named claim that expires. Until then it belongs to the process with the token."""

    name = models.CharField(max_length=120, primary_key=True)
    token = models.UUIDField()
    holder = models.CharField(max_length=255, blank=True)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class ClearCode(models.Model):
    """The one-time code that confirms clearing a book. Only the newest one is valid, and only its hash is stored."""

    book = models.OneToOneField(Book, primary_key=True, on_delete=models.CASCADE, related_name="clear_code")
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="clear_codes")
    sha256 = models.CharField(max_length=64)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"until {self.expires_at:%H:%M}"
