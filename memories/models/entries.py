"""Memories, and the append-only record of every change to them."""

from datetime import datetime

from django.db import models
from django.db.models import F, Func, Q
from django.utils import timezone

from memories.ids import uuid7
from memories.models.evidence import Evidenced
from memories.models.owners import Book, Owner


class Target(models.TextChoices):
    USER = "user", "About you"
    MEMORY = "memory", "About your work"


class WriteOrigin(models.TextChoices):
    TOOL = "tool", "Agent"
    BACKGROUND_REVIEW = "background_review", "Review"
    CONSOLIDATION = "consolidation", "Consolidated"
    USER = "user", "You"
    ADMIN = "admin", "Admin"
    IMPORT = "import", "Import"
    SYSTEM = "system", "System"


_LIVE, _DELETED = Q(deleted_at__isnull=True), Q(deleted_at__isnull=False)
_QUOTED = Q(evidence_session_id__isnull=False)


def text_order() -> Func:
    """Return the expression that sorts memories by text. It must equal that of the index and contain no parameters, or
    SQLite would not use the index."""
    return Func("content", template="LOWER(SUBSTR(%(expressions)s, 1, 80))", output_field=models.TextField())


class Memory(Evidenced):
    """A short entry of a book. `number` is its public id, unique per owner."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="memories")
    number = models.PositiveBigIntegerField()
    book = models.ForeignKey(Book, on_delete=models.CASCADE, related_name="memories")
    target = models.CharField(max_length=8, choices=Target.choices)
    category = models.CharField(max_length=40, default="general")
    content = models.TextField()
    content_key = models.CharField(max_length=64, editable=False, help_text="Hash of the normalised content.")
    keywords = models.JSONField(default=list, blank=True)
    keywords_for = models.CharField(
        max_length=64, blank=True, editable=False, help_text="Hash of the content that keywords were requested for."
    )
    metadata = models.JSONField(
        default=dict, blank=True, help_text="Strings by key, for programs; never sent to a model."
    )
    write_origin = models.CharField(max_length=20, choices=WriteOrigin.choices)
    pinned = models.BooleanField(default=False)
    expires_at = models.DateTimeField("expires", null=True, blank=True)
    usage_count = models.PositiveIntegerField(default=0)
    last_used_at = models.DateTimeField(null=True, blank=True)
    version = models.PositiveIntegerField(default=1)
    session_id = models.UUIDField(null=True, blank=True)
    run_id = models.UUIDField(null=True, blank=True)
    review_id = models.UUIDField(null=True, blank=True)
    scan_hash = models.CharField(
        max_length=64, blank=True, editable=False, help_text="Hash of the scanned texts and of the rules."
    )
    scan_rule = models.CharField(max_length=64, blank=True, help_text="The rule that keeps it out of answers.")
    scan_reason = models.CharField(max_length=200, blank=True)
    allowed_hash = models.CharField(
        max_length=64, blank=True, help_text="Hash of the text that an administrator allowed."
    )
    content_changed_at = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "memories"
        constraints = [models.UniqueConstraint(fields=["owner", "number"], name="memory_number_once_per_owner")]
        indexes = [
            models.Index(fields=["owner", "book", "number"], condition=_LIVE, name="memory_live"),
            models.Index(fields=["book", "content_key"], name="memory_same_content"),
            models.Index(fields=["owner", "session_id"], name="memory_of_session"),
            models.Index(fields=["owner", "evidence_session_id"], condition=_QUOTED, name="memory_evidence"),
            models.Index(fields=["book", "expires_at"], condition=Q(expires_at__isnull=False), name="memory_expiry"),
            models.Index(fields=["expires_at"], condition=_LIVE & Q(expires_at__isnull=False), name="memory_due"),
            models.Index(fields=["deleted_at"], condition=_DELETED, name="memory_tombstone"),
            # The admin's filters, newest first, which must be fast over a million rows of all owners.
            models.Index(fields=["-id"], condition=Q(pinned=True), name="memory_pinned"),
            models.Index(fields=["-id"], condition=~Q(scan_rule=""), name="memory_scanned_out"),
            models.Index(fields=["target", "-id"], name="memory_by_target"),
            models.Index(fields=["category", "-id"], name="memory_by_category"),
            models.Index(fields=["write_origin", "-id"], name="memory_by_origin"),
            models.Index(fields=["last_used_at"], name="memory_by_last_use"),
            models.Index(fields=["created_at"], name="memory_by_creation"),
            # The orders of the memories page.
            models.Index(
                fields=["owner", "book", "-updated_at", "-number"], condition=_LIVE, name="memory_last_changed"
            ),
            models.Index(
                fields=["owner", "book", "-usage_count", "-number"], condition=_LIVE, name="memory_most_recalled"
            ),
            models.Index(F("owner"), F("book"), text_order(), F("number"), condition=_LIVE, name="memory_by_text"),
            models.Index(
                fields=["owner", "book", "-deleted_at", "-number"], condition=_DELETED, name="memory_last_deleted"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.number}"

    @property
    def blocked(self) -> bool:
        """Whether a scan rule keeps it out of answers, and no administrator allowed this text."""
        return bool(self.scan_rule) and self.allowed_hash != self.scan_hash

    @property
    def expired(self) -> bool:
        """Whether it expired. It is then left out of answers, even before the sweep turns it into a tombstone."""
        return self.expires_at is not None and self.expires_at <= timezone.now()

    @property
    def gone_at(self) -> datetime | None:
        """When it was deleted or, if the sweep has not deleted it yet, when it expired; None if it is live."""
        return self.deleted_at or (self.expires_at if self.expired else None)


class ChangeSet(models.Model):
    """A group of writes, the unit of undo."""

    class Kind(models.TextChoices):
        TOOL = "tool"
        REVIEW = "review"
        APPROVAL = "approval"
        EDIT = "edit"
        UNDO = "undo"
        IMPORT = "import"
        CLEAR = "clear"
        SYSTEM = "system"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="change_sets")
    book = models.ForeignKey(Book, on_delete=models.CASCADE, related_name="change_sets")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    actor = models.CharField(max_length=80, help_text="user:ID, staff:ID, key:ID, model or system.")
    write_origin = models.CharField(max_length=20, choices=WriteOrigin.choices)
    session_id = models.UUIDField(null=True, blank=True)
    run_id = models.UUIDField(null=True, blank=True)
    review_id = models.UUIDField(null=True, blank=True)
    undoes = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="undone_by")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(fields=["owner", "run_id"], name="change_set_of_run"),
            models.Index(fields=["review_id"], condition=Q(review_id__isnull=False), name="change_set_of_review"),
            models.Index(fields=["book", "-created_at"], condition=Q(kind="clear"), name="change_set_clear"),
        ]

    def __str__(self) -> str:
        return f"Change set of {timezone.localtime(self.created_at):%-d %b %Y, %H:%M}"


class Revision(Evidenced):
    """The append-only record of one change to one memory."""

    class Action(models.TextChoices):
        ADD = "add"
        UPDATE = "update"
        DELETE = "delete"
        RESTORE = "restore"
        UNDO = "undo"
        ALLOW = "allow"
        EXPIRE = "expire"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="revisions")
    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="revisions")
    change_set = models.ForeignKey(ChangeSet, on_delete=models.CASCADE, related_name="revisions")
    version = models.PositiveIntegerField()
    action = models.CharField(max_length=8, choices=Action.choices)
    before = models.JSONField(null=True, help_text="The memory before; empty for an add.")
    after = models.JSONField(help_text="The memory after.")
    actor = models.CharField(max_length=80)
    write_origin = models.CharField(max_length=20, choices=WriteOrigin.choices)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["memory", "version"], name="revision_once_per_version")]
        indexes = [
            models.Index(fields=["owner", "change_set"], name="revision_of_change_set"),
            models.Index(fields=["owner", "evidence_session_id"], condition=_QUOTED, name="revision_evidence"),
            # The admin's filters, newest first.
            models.Index(fields=["action", "-id"], name="revision_by_action"),
            models.Index(fields=["write_origin", "-id"], name="revision_by_origin"),
            models.Index(fields=["actor", "-id"], name="revision_by_actor"),
            models.Index(fields=["created_at"], name="revision_by_creation"),
        ]

    def __str__(self) -> str:
        return f"Version {self.version}"


class MemoryVector(models.Model):
    """A memory's vector from an embedding model. During a change of the model, a memory may have one of each."""

    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="vectors")
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="memory_vectors")
    book = models.ForeignKey(Book, on_delete=models.CASCADE, related_name="memory_vectors")
    model = models.CharField(max_length=200)
    content_key = models.CharField(max_length=64, help_text="Hash of the content it was computed from.")
    values = models.BinaryField(help_text="16-bit floats, little endian.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["memory", "model"], name="one_vector_by_model")]
        indexes = [
            models.Index(fields=["owner", "book"], name="vectors_of_book"),
            models.Index(fields=["owner", "model", "content_key"], name="vectors_of_text"),
        ]

    def __str__(self) -> str:
        return self.model
