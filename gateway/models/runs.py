"""Runs and messages. Messages are append-only. A turn is executed by a run, which is a lease with a token."""

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone

from gateway.attachments.references import PartsDecoder, PartsEncoder
from gateway.models.sessions import Session
from gateway.recalled import RecalledDecoder, RecalledEncoder
from gateway.tool_calls import valid_calls
from memories.ids import uuid7
from memories.models import Owner


class Run(models.Model):
    """The execution of one turn. An open run is a lease, so a crashed process does not block its session forever."""

    class State(models.TextChoices):
        RUNNING = "running"
        COMPLETED = "completed"
        FAILED = "failed"
        STOPPED = "stopped"
        AWAITING_CLIENT_TOOLS = "awaiting_client_tools"

    id = models.UUIDField("ID", primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="runs")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="runs")
    turn = models.PositiveIntegerField(help_text="Number of the turn in its session; a regeneration keeps it.")
    state = models.CharField(max_length=24, choices=State.choices, default=State.RUNNING)
    counted = models.BooleanField(default=True, help_text="Whether it counts as a user turn; a regeneration does not.")
    temporary = models.BooleanField(default=False, help_text="Reads no memory and saves none.")
    superseded = models.BooleanField(
        default=False, help_text="Not on the current branch, or finished after its lease was lost."
    )
    follows = models.UUIDField(
        null=True, blank=True, help_text="The previous run on its branch; empty for the first one."
    )
    lease_token = models.UUIDField(null=True, default=uuid7)
    lease_expires_at = models.DateTimeField(null=True)
    holder = models.UUIDField(null=True, help_text="The process that executes it.")
    stop_requested = models.BooleanField(default=False)
    history_hash_before = models.CharField(max_length=64, blank=True)
    history_hash_after = models.CharField(max_length=64, blank=True)
    user_key = models.CharField(max_length=64, blank=True, help_text="Hash of the canonical user message.")
    idempotency_key = models.CharField(max_length=255, blank=True)
    request_id = models.CharField("request ID", max_length=64)
    model = models.CharField(max_length=200, blank=True)
    text = models.TextField(blank=True, help_text="The answer so far; saved repeatedly while it is streamed.")
    reasoning = models.TextField(blank=True, help_text="The model's reasoning, cut to a maximum length.")
    usage = models.JSONField(default=dict)
    recalled = models.JSONField(default=list, encoder=RecalledEncoder, decoder=RecalledDecoder)
    usage_counted = models.BooleanField(
        default=False, help_text="Its recalled memories were added to the usage counters."
    )
    trace = models.JSONField(default=dict, help_text="What recall and the model steps did, without content.")
    injected = models.JSONField(
        null=True,
        blank=True,
        editable=False,
        help_text="The injected memory, stored while the run waits for its client.",
    )
    responses = models.JSONField(
        null=True, blank=True, editable=False, help_text="Data of /v1/responses about its requests, by part of the run."
    )
    error = models.JSONField(null=True, blank=True)
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session"], condition=Q(state="running"), name="run_one_open_per_session")
        ]
        indexes = [
            models.Index(fields=["owner", "session", "-id"], name="run_of_session"),
            models.Index(fields=["owner", "history_hash_before", "user_key", "-id"], name="run_by_history_before"),
            models.Index(fields=["session", "follows"], condition=Q(superseded=True), name="run_other_versions"),
            models.Index(fields=["lease_expires_at"], condition=Q(state="running"), name="run_open_lease"),
            models.Index(
                fields=["lease_expires_at"], condition=Q(state="awaiting_client_tools"), name="run_awaiting_lease"
            ),
            models.Index(
                fields=["session"], condition=Q(state="awaiting_client_tools"), name="run_awaiting_of_session"
            ),
            models.Index(
                fields=["id"], condition=Q(state="completed", usage_counted=False), name="run_usage_uncounted"
            ),
        ]

    def __str__(self) -> str:
        return f"Turn {self.turn}"


class Message(models.Model):
    """A message of a transcript. It never changes; its run determines whether it belongs to the conversation."""

    class Role(models.TextChoices):
        USER = "user"
        ASSISTANT = "assistant"
        TOOL = "tool"

    class Kind(models.TextChoices):
        CHAT = "chat"
        COMMAND = "command"
        HISTORY = "history"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="messages")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="messages")
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.CASCADE, related_name="messages")
    seq = models.PositiveIntegerField()
    role = models.CharField(max_length=9, choices=Role.choices)
    kind = models.CharField(max_length=7, choices=Kind.choices, default=Kind.CHAT)
    text = models.TextField(blank=True)
    parts = models.JSONField(
        null=True,
        blank=True,
        encoder=PartsEncoder,
        decoder=PartsDecoder,
        help_text="Content parts, if the message is more than text; attachments are references to their bytes.",
    )
    tool_calls = models.JSONField(null=True, blank=True)
    tool_call_id = models.CharField(max_length=128, blank=True)
    participant = models.CharField(  # noqa: DJ001 - nullable, since SQLite then adds the column without a copy
        max_length=64, null=True, blank=True, help_text="Who wrote a user message of a group chat, if not the person."
    )
    kept = models.JSONField(
        null=True, blank=True, editable=False, help_text="Data that the model server expects back: reasoning, ids."
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "seq"], name="message_seq_once_per_session")]
        indexes = [models.Index(fields=["owner", "session", "seq"], name="message_of_session")]

    def __str__(self) -> str:
        return f"{self.role} {self.seq}"

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The valid tool calls of the message."""
        return valid_calls(self.tool_calls)


HAS_PARTS = models.Case(models.When(parts__isnull=True, then=False), default=True, output_field=models.BooleanField())
"""Whether a message has content parts, to annotate. As a selected value, IS NOT NULL makes SQLite read the whole parts;
as a condition it reads only their type."""


class Compaction(models.Model):
    """A summary that replaces the messages of a session up to `seq` = `up_to` in requests. The messages remain."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="compactions")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="compactions")
    up_to = models.PositiveIntegerField()
    summary = models.TextField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["owner", "session", "-id"], name="compaction_of_session")]

    def __str__(self) -> str:
        return f"up to {self.up_to}"


class InstructionHashes(models.Model):
    """Hashes of what a client told the model around a session's conversation, in system messages and definitions of
    tools, as memories.evidence.instructions makes them. A row adds the sentences that the earlier ones lack; an empty
    one means that later ones were left out. A fork has copies of its parent's rows, and goes on with their salt."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="instruction_hashes")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="instruction_hashes")
    salt = models.UUIDField()
    hashes = models.BinaryField()

    def __str__(self) -> str:
        return str(self.pk)
