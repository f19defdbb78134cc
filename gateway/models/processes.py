"""Rows by which the processes of an installation know of each other."""

from django.db import models
from django.utils import timezone

from memories.ids import uuid7


class Worker(models.Model):
    """A worker process with its heartbeat, which /readyz and the admin read."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    started_at = models.DateTimeField(default=timezone.now)
    beat_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"


class Alert(models.Model):
    """When administrators were last alerted, one row for each kind. `number` is the figure in the alert."""

    kind = models.CharField(max_length=32, primary_key=True)
    told_at = models.DateTimeField()
    number = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return self.kind
