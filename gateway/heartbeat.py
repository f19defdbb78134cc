"""The heartbeat of workers, in rows of gateway.Worker that only this module writes. A worker that stops normally
deletes its row; the row of a killed worker becomes stale."""

import os
import socket
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from gateway.models import Worker
from memories.clocks import long_ago

RETENTION = timedelta(days=1)


def stale_after() -> timedelta:
    """Return how long after its last heartbeat a worker counts as dead: 15 s, or four sweep intervals if that is
    longer."""
    return timedelta(seconds=max(15.0, 4 * settings.SWEEP_SECONDS))


def beat(worker_id: UUID) -> None:
    """Record a heartbeat of this process under the id, and delete the rows of workers that died long ago."""
    now = timezone.now()
    if not Worker.objects.filter(pk=worker_id).update(beat_at=now):
        Worker.objects.create(pk=worker_id, host=socket.gethostname(), pid=os.getpid(), started_at=now, beat_at=now)
    Worker.objects.filter(beat_at__lt=now - RETENTION).delete()


def end(worker_id: UUID) -> None:
    """Delete the row of a worker that stops normally."""
    Worker.objects.filter(pk=worker_id).delete()


def forget_dead() -> None:
    """Delete the rows of this machine's workers whose process has ended, so that a start after a crash does not mistake
    an old heartbeat for a new one. The next beat restores a row that was deleted by mistake."""
    for worker in Worker.objects.filter(host=socket.gethostname()):
        try:
            os.kill(worker.pid, 0)
        except ProcessLookupError:
            worker.delete()
        except PermissionError:
            continue  # it is alive, but belongs to another user


def alive_workers() -> "QuerySet[Worker]":
    """Return the workers with a recent heartbeat."""
    return Worker.objects.exclude(long_ago("beat_at", timezone.now(), age=stale_after()))


def alive() -> bool:
    """Return True if any worker has a recent heartbeat."""
    return alive_workers().exists()
