"""The heartbeat of workers: the only writer of gateway.Worker rows. /readyz and `doctor` read it.
A worker that stops in order takes its row away; the row of one that was killed goes stale."""

import os
import socket
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from gateway.models import Worker

KEPT = timedelta(days=1)


def stale_after() -> timedelta:
    """Return the silence after which a worker counts as gone: 15 s, or four sweeps where those are rarer."""
    return timedelta(seconds=max(15.0, 4 * settings.SWEEP_SECONDS))


def beat(worker_id: UUID) -> None:
    """Note that this process works under that id, now. Rows of workers that ended long ago are deleted."""
    now = timezone.now()
    if not Worker.objects.filter(pk=worker_id).update(beat_at=now):
        Worker.objects.create(pk=worker_id, host=socket.gethostname(), pid=os.getpid(), started_at=now, beat_at=now)
    Worker.objects.filter(beat_at__lt=now - KEPT).delete()


def end(worker_id: UUID) -> None:
    """Delete the row of a worker that stops in order."""
    Worker.objects.filter(pk=worker_id).delete()


def forget_dead() -> None:
    """Delete the rows of workers of this machine whose process is gone, so that a start after a crash
    does not take an old heartbeat for a new one. A row deleted by mistake comes back with the next beat."""
    for worker in Worker.objects.filter(host=socket.gethostname()):
        try:
            os.kill(worker.pid, 0)
        except ProcessLookupError:
            worker.delete()
        except PermissionError:
            continue  # another user's process; it lives


def alive() -> bool:
    """Return True if any worker was heard lately."""
    return Worker.objects.filter(beat_at__gte=timezone.now() - stale_after()).exists()
