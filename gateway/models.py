"""Rows of the gateway: agents, keys, sessions, runs and messages.
Messages are append-only; a turn is executed by a run, which is a lease with a token; sessions count user turns."""

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from memories.ids import uuid7
from memories.models import Owner


class Agent(models.Model):
    """A named configuration. `settings` holds what gateway.agents.AgentSettings describes and checks."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.SlugField(max_length=64, unique=True)
    book = models.CharField(max_length=64, default="main", help_text="Agents that name the same book share memories.")
    settings = models.JSONField(default=dict)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name


class Configuration(models.Model):
    """The other sections of the agents file (memories, model_roles, prices, upstreams), one row each."""

    section = models.CharField(max_length=32, primary_key=True)
    value = models.JSONField(default=dict)
    updated_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.section


class LearnedChange(models.Model):
    """What a refusal of a model server taught: a change of requests to one model that made the server take them."""

    upstream = models.CharField(max_length=64)
    model = models.CharField(max_length=300)
    kind = models.CharField(max_length=6, help_text="As in gateway.upstream.changes, like the next three.")
    parameter = models.CharField(max_length=200)
    value = models.CharField(max_length=100, default="null", help_text="As JSON.")
    condition = models.CharField(max_length=5, blank=True)
    words = models.CharField(max_length=400, help_text="What the server said.")
    learned_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["upstream", "model", "kind", "parameter", "value", "condition"], name="learned_change_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.upstream}, {self.model}: {self.kind} {self.parameter}"


class ApiKey(models.Model):
    """A key of one owner. Only the hash of its 256 random bits is kept."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12, help_text="The first characters, to tell keys apart.")
    sha256 = models.CharField(max_length=64, unique=True, editable=False)
    read_only = models.BooleanField(default=False, help_text="May read, but not write or chat.")
    trusted = models.BooleanField(default=False, help_text="May name end users with X-Daybook-User.")
    agents = models.JSONField(default=list, blank=True, help_text="Names of the agents it may use; empty: all.")
    requests_per_minute = models.PositiveIntegerField(default=0, help_text="0 = no limit.")
    end_user_seen = models.CharField(max_length=64, blank=True, editable=False, help_text="Hash of an end user's id.")
    end_users_mixed_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When an untrusted key was first seen with two end users."
    )
    expires_at = models.DateTimeField(null=True, blank=True, help_text="From then on it is refused; empty: never.")
    previous_sha256 = models.CharField(max_length=64, blank=True, editable=False, db_index=True)
    previous_until = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="How long what the key was before its rotation is taken."
    )
    created_at = models.DateTimeField(default=timezone.now)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "API key"
        verbose_name_plural = "API keys"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class Session(models.Model):
    """One conversation of an owner with an agent."""

    class State(models.TextChoices):
        ACTIVE = "active"
        ENDED = "ended"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="sessions")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="sessions")
    title = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=6, choices=State.choices, default=State.ACTIVE)
    temporary = models.BooleanField(default=False)
    external_id = models.CharField(max_length=255, null=True, blank=True)  # noqa: DJ001 - NULL is outside its constraint
    parent_id = models.UUIDField(null=True, blank=True, help_text="The session it was forked from.")
    turns = models.PositiveIntegerField(default=0)
    turns_since_memory_review = models.PositiveIntegerField(default=0)
    reviewed_through = models.PositiveIntegerField(default=0, help_text="Number of the last reviewed message.")
    message_seq = models.PositiveIntegerField(default=0, help_text="Number of the newest message.")
    compaction_epoch = models.PositiveIntegerField(default=0, help_text="Grows with every compaction.")
    history_hash = models.CharField(
        max_length=64, blank=True, help_text="What identifies the conversation so far by content."
    )
    last_pair = models.CharField(max_length=64, blank=True, help_text="Hash of the latest pair of messages.")
    created_at = models.DateTimeField(default=timezone.now)
    last_active_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "external_id"], name="session_external_id_once_per_owner"),
        ]
        indexes = [
            models.Index(fields=["owner", "-last_active_at"], name="session_recent"),
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


class Run(models.Model):
    """The execution of one turn. Open runs are leases: a crashed process does not block the session for ever."""

    class State(models.TextChoices):
        RUNNING = "running"
        COMPLETED = "completed"
        FAILED = "failed"
        STOPPED = "stopped"
        AWAITING_CLIENT_TOOLS = "awaiting_client_tools"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="runs")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="runs")
    turn = models.PositiveIntegerField(help_text="Number of the turn in its session; a regeneration keeps it.")
    state = models.CharField(max_length=24, choices=State.choices, default=State.RUNNING)
    counted = models.BooleanField(default=True, help_text="A regeneration is no new user turn.")
    temporary = models.BooleanField(default=False, help_text="Read nothing of memory, and leaves nothing in it.")
    superseded = models.BooleanField(default=False, help_text="Edited, regenerated, or closed too late.")
    lease_token = models.UUIDField(null=True, default=uuid7)
    lease_expires_at = models.DateTimeField(null=True)
    holder = models.UUIDField(null=True, help_text="The process that executes it.")
    stop_requested = models.BooleanField(default=False)
    history_hash_before = models.CharField(max_length=64, blank=True)
    history_hash_after = models.CharField(max_length=64, blank=True)
    user_key = models.CharField(max_length=64, blank=True, help_text="Hash of the canonical user message.")
    idempotency_key = models.CharField(max_length=255, blank=True)
    request_id = models.CharField(max_length=64)
    model = models.CharField(max_length=200, blank=True)
    text = models.TextField(blank=True, help_text="What was said so far, flushed while it is said.")
    usage = models.JSONField(default=dict)
    recalled = models.JSONField(default=list)
    usage_counted = models.BooleanField(default=False, help_text="What it recalled was added to the usage counters.")
    trace = models.JSONField(default=dict, help_text="What recall and the model steps did, without content.")
    injected = models.JSONField(
        null=True, blank=True, editable=False, help_text="What it was given from memory, while it waits for its client."
    )
    responses = models.JSONField(
        null=True, blank=True, editable=False, help_text="What /v1/responses keeps of its requests, by part of the run."
    )
    error = models.JSONField(null=True, blank=True)
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session"], condition=Q(state="running"), name="run_one_open_per_session"),
        ]
        indexes = [
            models.Index(fields=["owner", "session", "-id"], name="run_of_session"),
            models.Index(fields=["owner", "history_hash_before", "user_key", "-id"], name="run_by_history_before"),
            models.Index(fields=["lease_expires_at"], condition=Q(state="running"), name="run_open_lease"),
            models.Index(
                fields=["lease_expires_at"], condition=Q(state="awaiting_client_tools"), name="run_awaiting_lease"
            ),
            models.Index(
                fields=["id"], condition=Q(state="completed", usage_counted=False), name="run_usage_uncounted"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.turn} {self.state}"


class Message(models.Model):
    """One message of a transcript. Never changed; whether it still counts is a fact of its run."""

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
    parts = models.JSONField(null=True, blank=True, help_text="Content parts, where the message is more than text.")
    tool_calls = models.JSONField(null=True, blank=True)
    tool_call_id = models.CharField(max_length=128, blank=True)
    kept = models.JSONField(
        null=True, blank=True, editable=False, help_text="What its server wants to be sent again: reasoning, ids."
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "seq"], name="message_seq_once_per_session")]
        indexes = [models.Index(fields=["owner", "session", "seq"], name="message_of_session")]

    def __str__(self) -> str:
        return f"{self.role} {self.seq}"


class Compaction(models.Model):
    """A summary that stands for the messages of a session up to a number; the messages stay."""

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


class Worker(models.Model):
    """A worker command that is alive, or was: /readyz and the admin read its heartbeat."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    started_at = models.DateTimeField(default=timezone.now)
    beat_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"
