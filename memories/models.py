"""Rows of the memory floor: who, which book, what is remembered, and every change to it.
Sessions, runs and reviews are named by id only: imports go one way. Every owner-bound row carries owner_id itself,
and its indexes begin with it, so no look-up needs a join to be safe."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from memories.ids import uuid7


class Owner(models.Model):
    """Whose conversations and memories these are: a Django user, or an end user of a parent owner's application."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="owner"
    )
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.CASCADE, related_name="end_users")
    namespace = models.CharField(max_length=64, blank=True)
    external_id = models.CharField(max_length=255, blank=True)
    memory_seq = models.PositiveBigIntegerField(default=0, help_text="Number of the newest memory.")
    notification_seq = models.PositiveBigIntegerField(default=0, help_text="Number of the newest notification.")
    time_zone = models.CharField(max_length=64, default="UTC")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["parent", "namespace", "external_id"],
                condition=Q(parent__isnull=False),
                name="owner_end_user_once",
            )
        ]

    def __str__(self) -> str:
        return self.external_id or (self.user.get_username() if self.user else str(self.pk))


class BookLimits(models.Model):
    """What the agents that name a book allow it to hold, in characters; 0 = no limit. Kept by the gateway."""

    name = models.CharField(max_length=64, unique=True)
    user_char_limit = models.PositiveIntegerField()
    memory_char_limit = models.PositiveIntegerField()

    class Meta:
        verbose_name_plural = "book limits"

    def __str__(self) -> str:
        return self.name


class Book(models.Model):
    """One memory scope of one owner."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="books")
    name = models.CharField(max_length=64)
    generation = models.PositiveBigIntegerField(default=1, help_text="Grows with every change of what may be injected.")
    epoch = models.PositiveIntegerField(
        default=1, help_text="Grows when background work of before must not be applied."
    )
    next_expiry_at = models.DateTimeField(null=True, blank=True)
    last_write_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="book_name_once_per_owner")]
        indexes = [
            models.Index(fields=["next_expiry_at"], condition=Q(next_expiry_at__isnull=False), name="book_next_expiry")
        ]

    def __str__(self) -> str:
        return self.name


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


class Memory(models.Model):
    """One short entry of a book. `number` is its public id, small and per owner."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="memories")
    number = models.PositiveBigIntegerField()
    book = models.ForeignKey(Book, on_delete=models.CASCADE, related_name="memories")
    target = models.CharField(max_length=8, choices=Target.choices)
    category = models.CharField(max_length=40, default="general")
    content = models.TextField()
    content_key = models.CharField(max_length=64, editable=False, help_text="Hash of the normalised content.")
    keywords = models.JSONField(default=list, blank=True)
    keywords_for = models.CharField(max_length=64, blank=True, editable=False, help_text="Content they were asked for.")
    write_origin = models.CharField(max_length=20, choices=WriteOrigin.choices)
    pinned = models.BooleanField(default=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    usage_count = models.PositiveIntegerField(default=0)
    last_used_at = models.DateTimeField(null=True, blank=True)
    version = models.PositiveIntegerField(default=1)
    session_id = models.UUIDField(null=True, blank=True)
    run_id = models.UUIDField(null=True, blank=True)
    review_id = models.UUIDField(null=True, blank=True)
    scan_hash = models.CharField(max_length=64, blank=True, editable=False, help_text="What the verdict is of.")
    scan_rule = models.CharField(max_length=64, blank=True, help_text="The rule that keeps it out of answers.")
    scan_reason = models.CharField(max_length=200, blank=True)
    allowed_hash = models.CharField(max_length=64, blank=True, help_text="An administrator allowed exactly this text.")
    content_changed_at = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "memories"
        constraints = [models.UniqueConstraint(fields=["owner", "number"], name="memory_number_once_per_owner")]
        indexes = [
            models.Index(fields=["owner", "book", "number"], condition=Q(deleted_at__isnull=True), name="memory_live"),
            models.Index(fields=["book", "content_key"], name="memory_same_content"),
            models.Index(fields=["owner", "session_id"], name="memory_of_session"),
            models.Index(fields=["book", "expires_at"], condition=Q(expires_at__isnull=False), name="memory_expiry"),
            models.Index(fields=["deleted_at"], condition=Q(deleted_at__isnull=False), name="memory_tombstone"),
        ]

    def __str__(self) -> str:
        return f"{self.number}"

    @property
    def blocked(self) -> bool:
        """A scan rule keeps it out of answers, and nobody allowed exactly this text."""
        return bool(self.scan_rule) and self.allowed_hash != self.scan_hash


class ChangeSet(models.Model):
    """One group of writes that belong together: the unit of undo."""

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
        indexes = [models.Index(fields=["owner", "run_id"], name="change_set_of_run")]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class Revision(models.Model):
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
        indexes = [models.Index(fields=["owner", "change_set"], name="revision_of_change_set")]

    def __str__(self) -> str:
        return f"{self.action} {self.version}"


class ThreadRecord(models.Model):
    """The native provider's record of a completed run: a pointer, not a second copy of the words."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="thread_records")
    session_id = models.UUIDField()
    run_id = models.UUIDField(unique=True)
    cleared_at = models.DateTimeField(null=True, blank=True, help_text="Out of recall; purged like a tombstone.")
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
    """The outbox: what an owner's browsers are told. `seq` is in commit order per owner."""

    class Kind(models.TextChoices):
        REVIEW_SAVED = "review.saved"
        REVIEW_AWAITING_APPROVAL = "review.awaiting_approval"
        REVIEW_UNDONE = "review.undone"
        MEMORY_CHANGED = "memory.changed"
        CONSOLIDATION_FINISHED = "consolidation.finished"
        RESYNC = "resync"

    id = models.BigAutoField(primary_key=True)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="notifications")
    seq = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=32, choices=Kind.choices)
    text = models.TextField(blank=True)
    review_id = models.UUIDField(null=True, blank=True)
    memory_numbers = models.JSONField(default=list)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "seq"], name="notification_seq_once_per_owner")]
        indexes = [models.Index(fields=["created_at"], name="notification_age")]

    def __str__(self) -> str:
        return f"{self.kind} {self.seq}"


class ScanDay(models.Model):
    """How often the scan refused a write on one day (UTC), by rule. A number of all owners, without any text."""

    day = models.DateField()
    rule = models.CharField(max_length=64)
    kind = models.CharField(max_length=16, help_text="secret, injection or prompt.")
    number = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["day", "rule"], name="scan_day_once_per_rule")]

    def __str__(self) -> str:
        return f"{self.day} {self.rule}"


# ---- Consolidation: documents of a book, their history, who read them, and leases ------------------------------------


class Artifact(models.Model):
    """One document of a book: MEMORY.md, memory_summary.md or skills/<name>/SKILL.md; read at memory://root/…"""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="artifacts")
    book = models.ForeignKey(Book, on_delete=models.CASCADE, related_name="artifacts")
    path = models.CharField(max_length=120)
    path_key = models.CharField(max_length=120, editable=False, help_text="The path without case: no two may clash.")
    content = models.TextField(blank=True)
    version = models.PositiveIntegerField(default=1)
    write_origin = models.CharField(max_length=20, choices=WriteOrigin.choices)
    kept = models.BooleanField(default=False, help_text="Consolidation no longer names it, but a person edited it.")
    person_lines = models.JSONField(default=list, blank=True, help_text="Lines that a person wrote; they stay.")
    struck_lines = models.JSONField(default=list, blank=True, help_text="Lines that a person took out; they stay out.")
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
    """How often an artifact was read; apart from it, so that reading changes no version and wakes no snapshot."""

    artifact = models.OneToOneField(Artifact, primary_key=True, on_delete=models.CASCADE, related_name="usage")
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="artifact_usages")
    reads = models.PositiveIntegerField(default=0)
    last_read_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.reads} reads"


class Lease(models.Model):
    """A claim that expires: whoever shows its token in time holds the name."""

    name = models.CharField(max_length=120, primary_key=True)
    token = models.UUIDField()
    holder = models.CharField(max_length=255, blank=True)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class ClearCode(models.Model):
    """The one-time code that a person sends back to clear a book; only its hash is kept, the newest counts."""

    book = models.OneToOneField(Book, primary_key=True, on_delete=models.CASCADE, related_name="clear_code")
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="clear_codes")
    sha256 = models.CharField(max_length=64)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"until {self.expires_at:%H:%M}"


class MemoryVector(models.Model):
    """A memory's vector from the configured upstream embedding model, for the words it was made of."""

    memory = models.OneToOneField(Memory, primary_key=True, on_delete=models.CASCADE, related_name="vector")
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="memory_vectors")
    book = models.ForeignKey(Book, on_delete=models.CASCADE, related_name="memory_vectors")
    model = models.CharField(max_length=200)
    content_key = models.CharField(max_length=64, help_text="Hash of the words it was made of.")
    values = models.BinaryField(help_text="32-bit floats, little endian.")

    class Meta:
        indexes = [models.Index(fields=["owner", "book"], name="vector_of_book")]

    def __str__(self) -> str:
        return self.model
