"""Sessions, which are conversations of owners with agents."""

from datetime import timedelta

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from gateway.models.agents import Agent
from memories.ids import uuid7
from memories.models import Owner


class UndeletedSessions(models.Manager["Session"]):
    """A manager that excludes deleted sessions, even those that can still be restored."""

    def get_queryset(self) -> "models.QuerySet[Session]":
        return super().get_queryset().filter(deleted_at=None)


class Session(models.Model):
    """A conversation of an owner with an agent. `objects` excludes deleted sessions that can still be restored; joins
    and `with_deleted` do not."""

    class State(models.TextChoices):
        ACTIVE = "active"
        ENDED = "ended"

    id = models.UUIDField("ID", primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="sessions")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="sessions")
    title = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=6, choices=State.choices, default=State.ACTIVE)
    temporary = models.BooleanField(default=False)
    external_id = models.CharField("external ID", max_length=255, null=True, blank=True)  # noqa: DJ001 - NULL is outside its constraint
    parent_id = models.UUIDField(null=True, blank=True, help_text="The session it was forked from.")
    turns = models.PositiveIntegerField(default=0)
    turns_since_memory_review = models.PositiveIntegerField(default=0)
    reviewed_through = models.PositiveIntegerField(
        "last reviewed message", default=0, help_text="Number of the last reviewed message."
    )
    message_seq = models.PositiveIntegerField("newest message", default=0, help_text="Number of the newest message.")
    compaction_epoch = models.PositiveIntegerField(default=0, help_text="Grows with every compaction.")
    history_hash = models.CharField(
        max_length=64, blank=True, help_text="Identifies the conversation so far by its content."
    )
    last_pair = models.CharField(max_length=64, blank=True, help_text="Hash of the latest pair of messages.")
    created_at = models.DateTimeField(default=timezone.now)
    last_active_at = models.DateTimeField(default=timezone.now)
    pinned_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    branch_end = models.UUIDField(
        null=True,
        blank=True,
        editable=False,
        help_text="The last run of the branch to show while the runs of a long one are changed in parts.",
    )
    branch_until = models.DateTimeField(null=True, blank=True, editable=False, help_text="When that lease expires.")
    tags = models.TextField(blank=True, default="", help_text="One per line, each between two line breaks.")
    deleted_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="It can be restored until the sweep deletes it."
    )

    objects = UndeletedSessions()
    with_deleted: "models.Manager[Session]" = models.Manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "external_id"], condition=Q(deleted_at=None), name="session_external_id_once"
            )
        ]
        indexes = [
            models.Index(fields=["deleted_at"], condition=Q(deleted_at__isnull=False), name="session_deleted"),
            models.Index(fields=["last_active_at"], condition=Q(temporary=True), name="session_temporary"),
            models.Index(fields=["branch_until"], condition=Q(branch_until__isnull=False), name="session_branch_lease"),
            models.Index(fields=["owner", "-pinned_at"], condition=Q(pinned_at__isnull=False), name="session_pinned"),
            models.Index(fields=["owner", "-last_active_at"], name="session_recent"),
            models.Index(fields=["owner", "-last_active_at"], condition=~Q(tags=""), name="session_tagged"),
            models.Index(
                fields=["agent", "last_active_at"],
                condition=Q(reviewed_through__lt=F("message_seq")),
                name="session_unreviewed",
            ),
            models.Index(fields=["owner", "agent", "history_hash"], name="session_by_history"),
            models.Index(fields=["owner", "agent", "last_pair"], name="session_by_last_pair"),
        ]

    def __str__(self) -> str:
        return self.title or str(self.pk)

    def touch(self) -> None:
        """Set `last_active_at` to now. It always increases, even if the clock was set back."""
        self.last_active_at = max(timezone.now(), self.last_active_at + timedelta(milliseconds=1))

    @property
    def tag_list(self) -> list[str]:
        """The tags, in the order in which they were given."""
        return [tag for tag in self.tags.split("\n") if tag]
