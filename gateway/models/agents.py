"""Agents, the other sections of the agents file, and what the processes of an installation share: changes learned from
refusals of model servers, workers, alerts."""

from django.db import models
from django.utils import timezone

from memories.ids import uuid7


class Agent(models.Model):
    """A named configuration. gateway.agents.settings.AgentSettings describes and validates `settings`."""

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
    """A section of the agents file other than `agents`: memories, model_roles, prices or upstreams."""

    section = models.CharField(max_length=32, primary_key=True)
    value = models.JSONField(default=dict)
    updated_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.section


class LearnedChange(models.Model):
    """A change to the requests for one model, learned from a refusal, that made its server accept them."""

    upstream = models.CharField(max_length=64)
    model = models.CharField(max_length=300)
    kind = models.CharField(max_length=6, help_text="See gateway.upstream.changes, also for the next three fields.")
    parameter = models.CharField(max_length=200)
    value = models.CharField(max_length=100, default="null", help_text="As JSON.")
    condition = models.CharField(max_length=5, blank=True)
    words = models.CharField("server's message", max_length=400, help_text="The server's error message.")
    learned_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["upstream", "model", "kind", "parameter", "value", "condition"], name="learned_change_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.upstream}, {self.model}: {self.kind} {self.parameter}"


class Worker(models.Model):
    """A worker process and its heartbeat, which /readyz and the admin read."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField("process ID")
    started_at = models.DateTimeField("started", default=timezone.now)
    beat_at = models.DateTimeField("last heartbeat", default=timezone.now)

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"


class Alert(models.Model):
    """The last alert of one kind to administrators. `number` is the figure in it."""

    kind = models.CharField(max_length=32, primary_key=True)
    told_at = models.DateTimeField()
    number = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return self.kind
