"""Models of background reviews (ReviewRun) and of consolidation."""

from datetime import datetime

from django.db import models
from django.db.models import Q
from django.utils import timezone

from gateway.models import Session
from memories.ids import uuid7
from memories.models import Book, Owner
from reviews.writes import WritesField


class ReviewRun(models.Model):
    """A background review of a range of a session's messages: its settings when it was scheduled, its lease, and its
    result. Writes of a turn, an app or an import that wait for approval are stored as a review that never executes."""

    class State(models.TextChoices):
        SCHEDULED = "scheduled", "Scheduled"
        RUNNING = "running", "Running"
        AWAITING_APPROVAL = "awaiting_approval", "Waiting"
        SAVED = "saved", "Saved"
        NOTHING_TO_SAVE = "nothing_to_save", "Nothing new"
        TIMED_OUT = "timed_out", "Timed out"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"
        UNDONE = "undone", "Undone"

    class Trigger(models.TextChoices):
        INTERVAL = "interval", "After every few turns"
        IDLE = "idle", "After a pause"
        REQUEST = "request", "On request"
        INGEST = "ingest", "Ingested messages"
        TURN = "turn", "Held in a turn"
        APP = "app", "Held from an app"
        NOTES = "notes", "Held notes"
        IMPORT = "import", "Held from an import"

    WITHOUT_SESSION = (Trigger.APP, Trigger.IMPORT)
    OPEN = (State.SCHEDULED, State.RUNNING)
    UNDECIDED = (*OPEN, State.AWAITING_APPROVAL)
    FAILED = (State.FAILED, State.TIMED_OUT)

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="review_runs")
    book = models.ForeignKey(Book, on_delete=models.CASCADE, related_name="review_runs")
    session = models.ForeignKey(Session, null=True, blank=True, on_delete=models.SET_NULL, related_name="review_runs")
    state = models.CharField(max_length=20, choices=State.choices, default=State.SCHEDULED)
    trigger = models.CharField(max_length=10, choices=Trigger.choices)
    first_seq = models.PositiveIntegerField(help_text="First message to review; some before it are shown as context.")
    last_seq = models.PositiveIntegerField(help_text="Last message of the frozen conversation.")
    frozen_hash = models.CharField(
        "hash of the conversation", max_length=64, blank=True, help_text="Hash of the messages the model was given."
    )
    agent_name = models.CharField(max_length=64)
    settings = models.JSONField(default=dict, help_text="The agent's review settings when it was scheduled.")
    book_epoch = models.PositiveIntegerField()
    attempts = models.PositiveSmallIntegerField(default=0)
    lease_token = models.UUIDField(null=True, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    holder = models.UUIDField(null=True, blank=True, help_text="The process that executes it.")
    not_before = models.DateTimeField(default=timezone.now, help_text="When the next attempt may start.")
    enqueued_at = models.DateTimeField(null=True, blank=True)
    model = models.CharField(max_length=200, blank=True)
    prompt_sha256 = models.CharField("hash of the prompt", max_length=64, blank=True)
    usage = models.JSONField(default=dict)
    steps = models.PositiveSmallIntegerField(default=0)
    dropped_calls = models.JSONField(default=dict, help_text="Number of dropped tool calls by name.")
    writes = WritesField(default=list)
    proposals = models.PositiveSmallIntegerField(default=0, help_text="Writes that wait or waited for a person.")
    change_set = models.UUIDField(null=True, blank=True)
    error = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    rejected_at = models.DateTimeField(
        null=True, blank=True, help_text="When writes were last rejected or expired; they are kept for a while."
    )
    idempotency_key = models.CharField(
        max_length=255, blank=True, help_text="Of the request that ingested the messages."
    )
    request_hash = models.CharField(max_length=64, blank=True, help_text="Keyed hash of that request.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["session"], condition=Q(state="running"), name="review_one_running_per_session"
            ),
            models.UniqueConstraint(
                fields=["owner", "idempotency_key"],
                condition=~Q(idempotency_key=""),
                name="review_idempotency_key_once_per_owner",
            ),
        ]
        indexes = [
            models.Index(fields=["owner", "-id"], name="review_of_owner"),
            models.Index(fields=["owner", "-id"], condition=Q(proposals__gt=0), name="review_with_proposals"),
            models.Index(fields=["owner", "started_at"], name="review_of_day"),
            models.Index(fields=["owner", "book", "-finished_at"], name="review_of_book"),
            models.Index(fields=["not_before"], condition=Q(state="scheduled"), name="review_scheduled"),
            models.Index(fields=["lease_expires_at"], condition=Q(state="running"), name="review_lease"),
            models.Index(fields=["finished_at"], condition=Q(state="awaiting_approval"), name="review_waiting"),
            models.Index(fields=["rejected_at"], condition=Q(rejected_at__isnull=False), name="review_rejected"),
        ]

    @property
    def answered_at(self) -> datetime | None:
        """When its model was done. None if a person decided about its writes since, which moves `finished_at`."""
        return None if self.proposals and self.state != self.State.AWAITING_APPROVAL else self.finished_at

    @property
    def orphaned(self) -> bool:
        """Whether the reviewed session was deleted."""
        return self.session_id is None and self.trigger not in self.WITHOUT_SESSION

    def __str__(self) -> str:
        # Includes the id because the admin log keeps this text after the row is deleted.
        return f"Review of {timezone.localtime(self.created_at):%-d %b %Y, %H:%M}, {self.pk}"


class ClearedReview(models.Model):
    """The writes of a review that waited for approval when their book was cleared; undoing the clear restores them."""

    review = models.OneToOneField(ReviewRun, primary_key=True, on_delete=models.CASCADE, related_name="cleared")
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="cleared_reviews")
    change_set = models.UUIDField(help_text="The change set of the clear.")
    writes = WritesField()
    waits_since = models.DateTimeField(null=True, blank=True)
    cleared_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(fields=["owner", "change_set"], name="cleared_review_of_change_set"),
            models.Index(fields=["cleared_at"], name="cleared_review_age"),
        ]

    def __str__(self) -> str:
        return f"cleared {self.review_id}"


_OPEN_STATES = ("scheduled", "running", "paused")
_OPEN = Q(state__in=_OPEN_STATES)


class ConsolidationRun(models.Model):
    """One run of the two phases of consolidation over a book: extraction of past sessions, then synthesis of documents.
    The worker that holds the phase's lease executes it in slices."""

    class State(models.TextChoices):
        SCHEDULED = "scheduled", "Scheduled"
        RUNNING = "running", "Running"
        PAUSED = "paused", "Paused"
        COMPLETED = "completed", "Completed"
        NOTHING_TO_DO = "nothing_to_do", "Nothing new"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    class Phase(models.TextChoices):
        EXTRACTION = "extraction", "Reading sessions"
        SYNTHESIS = "synthesis", "Writing documents"
        DONE = "done", "Done"

    class Trigger(models.TextChoices):
        STARTUP = "startup", "Worker start"
        SCHEDULE = "schedule", "Schedule"
        REQUEST = "request", "On request"

    OPEN = _OPEN_STATES

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="consolidation_runs")
    book = models.ForeignKey(Book, on_delete=models.CASCADE, related_name="consolidation_runs")
    state = models.CharField(max_length=13, choices=State.choices, default=State.SCHEDULED)
    phase = models.CharField(max_length=10, choices=Phase.choices, default=Phase.EXTRACTION)
    trigger = models.CharField(max_length=8, choices=Trigger.choices)
    actor = models.CharField(max_length=80, default="system")
    rebuild = models.BooleanField(default=False, help_text="Requested, so the cool-down is ignored.")
    force = models.BooleanField(default=False, help_text="Write the documents even if nothing changed.")
    book_epoch = models.PositiveIntegerField()
    max_sessions = models.PositiveIntegerField(
        null=True, blank=True, help_text="Its share of the sessions that one start may read; empty: all of them."
    )
    selected = models.BooleanField(default=False, help_text="Its sessions have been selected.")
    sessions_total = models.PositiveIntegerField(default=0)
    sessions_done = models.PositiveIntegerField(default=0)
    sessions_empty = models.PositiveIntegerField(default=0, help_text="Sessions with nothing durable.")
    sessions_failed = models.PositiveIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=0, help_text="Claims since the last progress.")
    failures = models.PositiveSmallIntegerField(default=0, help_text="Failed attempts of the synthesis.")
    requests = models.PositiveIntegerField(default=0)
    tokens = models.PositiveBigIntegerField(default=0)
    redacted = models.PositiveIntegerField(default=0, help_text="Secrets removed from the models' output.")
    dropped = models.PositiveIntegerField(
        default=0, help_text="Lines and skills left out because of the scan or their names."
    )
    ceiling = models.CharField("limit reached", max_length=10, blank=True, help_text="The limit that ended it early.")
    written = models.JSONField(default=list, help_text="Paths of documents written.")
    removed = models.JSONField(default=list)
    kept = models.JSONField(default=list)
    change_set = models.UUIDField(null=True, blank=True)
    prompts = models.JSONField(default=dict, help_text="Hashes of the prompts.")
    error = models.JSONField(null=True, blank=True)
    not_before = models.DateTimeField(default=timezone.now)
    enqueued_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["book"], condition=_OPEN, name="consolidation_one_open_per_book")
        ]
        indexes = [
            models.Index(fields=["owner", "-id"], name="consolidation_of_owner"),
            models.Index(fields=["not_before"], condition=_OPEN, name="consolidation_open"),
        ]

    def __str__(self) -> str:
        return f"{self.state} {self.pk}"


class Extraction(models.Model):
    """The notes extracted from one session: a raw memory block and a short synopsis, both empty for "nothing durable".
    The row is also a run's unit of work: `state` is that of the latest attempt, the texts are those of the last
    successful one."""

    class State(models.TextChoices):
        QUEUED = "queued", "Waiting"
        EXTRACTED = "extracted", "Extracted"
        EMPTY = "empty", "Nothing durable"
        FAILED = "failed", "Failed"
        PASSED = "passed", "Skipped"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="extractions")
    book = models.ForeignKey(Book, on_delete=models.CASCADE, related_name="extractions")
    session = models.OneToOneField(Session, on_delete=models.CASCADE, related_name="extraction")
    run = models.ForeignKey(
        ConsolidationRun, null=True, blank=True, on_delete=models.SET_NULL, related_name="extractions"
    )
    state = models.CharField(max_length=9, choices=State.choices, default=State.PASSED)
    raw_memory = models.TextField(blank=True)
    synopsis = models.TextField(blank=True)
    through_seq = models.PositiveIntegerField(
        "last message read", default=0, help_text="Last message that was processed."
    )
    floor_seq = models.PositiveIntegerField(
        "messages never read again", default=0, help_text="Messages up to here are never read again."
    )
    attempts = models.PositiveSmallIntegerField(default=0)
    not_before = models.DateTimeField(default=timezone.now)
    model = models.CharField(max_length=200, blank=True)
    usage = models.JSONField(default=dict)
    redacted = models.PositiveIntegerField(default=0)
    error = models.JSONField(null=True, blank=True)
    before_clear = models.JSONField(null=True, blank=True, help_text="What an undo of the clear restores.")
    cleared_at = models.DateTimeField(null=True, blank=True)
    cleared_by = models.UUIDField(null=True, blank=True, help_text="The change set of the clear.")
    said_at = models.DateTimeField(default=timezone.now, help_text="When the session was last active.")
    extracted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["owner", "book", "-said_at"], name="extraction_of_book"),
            models.Index(fields=["run", "state"], name="extraction_of_run"),
        ]

    def __str__(self) -> str:
        return f"{self.state} {self.session_id}"


class ConsolidationState(models.Model):
    """The state of a book's documents: how many changes its extractions had, and how many of those are synthesized."""

    book = models.OneToOneField(Book, primary_key=True, on_delete=models.CASCADE, related_name="consolidation")
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="consolidation_states")
    changes = models.PositiveBigIntegerField(default=0)
    synthesized = models.PositiveBigIntegerField(default=0)
    artifact_versions = models.JSONField(default=dict, help_text="Versions of the documents after the last synthesis.")
    from_notes = models.BooleanField(
        default=False, help_text="Something was forgotten: the next synthesis reads notes and people's lines only."
    )
    last_synthesis_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.synthesized} of {self.changes}"


class ConsolidationDay(models.Model):
    """An owner's usage of consolidation on one day (UTC)."""

    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="consolidation_days")
    day = models.DateField()
    requests = models.PositiveIntegerField(default=0)
    tokens = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "day"], name="consolidation_day_once")]

    def __str__(self) -> str:
        return f"{self.day}"
