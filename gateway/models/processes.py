"""State that the processes of an installation share."""

from django.db import models
from django.utils import timezone

from memories.ids import uuid7


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
