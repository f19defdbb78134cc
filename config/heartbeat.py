"""The heartbeat of workers, in gateway.Worker rows that only this module writes. /readyz and `doctor` read them. A
worker that stops normally deletes its row; the row of a killed one becomes stale."""

import os
import socket
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from gateway.models import Worker
from memories.clocks import long_ago

KEPT = timedelta(days=1)


def stale_after() -> timedelta:
    """Return the silence after which a worker counts as gone: 15 s, or four intervals between sweeps if that is
    longer."""
    return timedelta(seconds=max(15.0, 4 * settings.SWEEP_SECONDS))


def beat(worker_id: UUID) -> None:
    """Record that this process works under that id. Rows of workers that are long gone are deleted."""
    now = timezone.now()
    if not Worker.objects.filter(pk=worker_id).update(beat_at=now):
        Worker.objects.create(pk=worker_id, host=socket.gethostname(), pid=os.getpid(), started_at=now, beat_at=now)
    Worker.objects.filter(beat_at__lt=now - KEPT).delete()


def end(worker_id: UUID) -> None:
    """Delete the row of a worker that stops normally."""
    Worker.objects.filter(pk=worker_id).delete()


def forget_dead() -> None:
    """Delete rows of workers on this machine whose process is gone, so that a start after a crash does not mistake an
    old heartbeat for a new one. A row that is deleted by mistake is written again by the next beat."""
    for worker in Worker.objects.filter(host=socket.gethostname()):
        try:
            os.kill(worker.pid, 0)
        except ProcessLookupError:
            worker.delete()
        except PermissionError:
            continue  # it is alive, but of another user


def alive() -> bool:
    """Return True if any worker has a recent heartbeat."""
    return Worker.objects.exclude(long_ago("beat_at", timezone.now(), age=stale_after())).exists()
