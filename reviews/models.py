"""Rows of the reviews floor: one ReviewRun per background reflection over a frozen stretch of a conversation."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from gateway.models import Session
from memories.ids import uuid7
from memories.models import Book, Owner


class ReviewRun(models.Model):
    """A review: its frozen range of messages, its settings as they were, its claim, and what came of it."""

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
        REQUEST = "request", "Asked for"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="review_runs")
    book = models.ForeignKey(Book, on_delete=models.CASCADE, related_name="review_runs")
    session = models.ForeignKey(Session, null=True, blank=True, on_delete=models.SET_NULL, related_name="review_runs")
    state = models.CharField(max_length=20, choices=State.choices, default=State.SCHEDULED)
    trigger = models.CharField(max_length=10, choices=Trigger.choices)
    first_seq = models.PositiveIntegerField(help_text="First message to review; some before it are shown as context.")
    last_seq = models.PositiveIntegerField(help_text="Last message of the frozen conversation.")
    frozen_hash = models.CharField(max_length=64, blank=True, help_text="Hash of the messages the model was given.")
    agent_name = models.CharField(max_length=64)
    settings = models.JSONField(default=dict, help_text="The agent's review settings when it was scheduled.")
    book_epoch = models.PositiveIntegerField()
    attempts = models.PositiveSmallIntegerField(default=0)
    lease_token = models.UUIDField(null=True, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    not_before = models.DateTimeField(default=timezone.now, help_text="When the next attempt may start.")
    enqueued_at = models.DateTimeField(null=True, blank=True)
    model = models.CharField(max_length=200, blank=True)
    prompt_sha256 = models.CharField(max_length=64, blank=True)
    usage = models.JSONField(default=dict)
    steps = models.PositiveSmallIntegerField(default=0)
    dropped_calls = models.JSONField(default=dict, help_text="Names of dropped tool calls and how often.")
    writes = models.JSONField(default=list)
    change_set = models.UUIDField(null=True, blank=True)
    error = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["session"], condition=Q(state="running"), name="review_one_running_per_session"
            ),
        ]
        indexes = [
            models.Index(fields=["owner", "-id"], name="review_of_owner"),
            models.Index(fields=["owner", "started_at"], name="review_of_day"),
            models.Index(fields=["owner", "book", "-finished_at"], name="review_of_book"),
            models.Index(fields=["not_before"], condition=Q(state="scheduled"), name="review_scheduled"),
            models.Index(fields=["lease_expires_at"], condition=Q(state="running"), name="review_lease"),
            models.Index(fields=["finished_at"], condition=Q(state="awaiting_approval"), name="review_waiting"),
        ]

    def __str__(self) -> str:
        return f"{self.state} {self.pk}"
