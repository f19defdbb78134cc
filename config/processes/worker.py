"""The worker process: the queue (config.processes.queue_guard) and the loop of sweeps with the heartbeat. django-q2's
own schedules run only every 30 s, and it waits forever for running tasks; this does not."""

import logging
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connections
from django_q.conf import Conf
from django_q.signals import post_spawn

from config.processes.database_wait import DatabaseWait
from config.processes.forking import STOPS, SignalInbox, forks_die_with_parent, is_stop
from config.processes.queue_guard import StopEvent, guard_start
from gateway import heartbeat
from gateway.attachments.sweep import attachments_sweep
from gateway.jobs import worker_starts
from gateway.sweep import accounts_sweep, runs_sweep, sessions_sweep
from gateway.upstream.cache import upstream_cache
from gateway.webhooks.delivery import webhooks_sweep
from memories.database.access import become_worker, disconnect
from memories.forgetting import forgetting_sweep
from memories.ids import uuid7
from memories.messaging.invalidation import watch
from memories.sweep import memories_sweep, wal_sweep
from reviews.alerts import alerts_sweep
from reviews.consolidation import runs as consolidation_runs
from reviews.consolidation.triggers import consolidation_sweep
from reviews.sweep import reviews_sweep

logger = logging.getLogger("daybook.worker")
sweep_logger = logging.getLogger("daybook.sweep")
TASK_GRACE_SECONDS = 3.0

Sweep = Callable[[], None]
SWEEPS: tuple[Sweep, ...] = (
    runs_sweep,
    webhooks_sweep,
    reviews_sweep,
    consolidation_sweep,
    memories_sweep,
    forgetting_sweep,
    sessions_sweep,
    attachments_sweep,
    accounts_sweep,
    alerts_sweep,
    wal_sweep,
)
"""Run every few seconds, in this order. Sweeps clean up (lost jobs, expired leases, old rows); they are idempotent and
safe in several workers at once."""


class SweepLoop:
    """Runs the sweeps and the heartbeat in a thread, every settings.SWEEP_SECONDS. An error in one sweep is logged and
    does not stop the others; the next round tries all of them again. While the database cannot be used, none runs."""

    def __init__(self, sweeps: Sequence[Sweep]) -> None:
        self.worker_id = uuid7()
        self._sweeps = sweeps
        self._wait = DatabaseWait("The worker")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="daybook-sweeps", daemon=True)

    def start(self) -> None:
        watch()
        self._thread.start()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self, within: float) -> None:
        """Stop after the current sweep. Waits up to `within` seconds for it."""
        self._stopping.set()
        self._thread.join(within)

    def round(self) -> None:
        """Send a heartbeat and call each sweep once."""
        try:
            heartbeat.beat(self.worker_id)
            self._wait.over()
        except Exception as error:  # a defect of the heartbeat must not stop the sweeps
            if isinstance(error, DatabaseError) and self._wait.because(error):
                return
            sweep_logger.exception("The heartbeat failed; it is tried again in %s s", settings.SWEEP_SECONDS)
        for step in self._sweeps:
            if self._stopping.is_set():
                return
            self._guarded(step)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                close_old_connections()  # replaces one that failed in the last round
                self._guarded(self.round)
                self._stopping.wait(settings.SWEEP_SECONDS)
            self._guarded(self._end)
        finally:
            connections.close_all()

    def _guarded(self, step: Sweep) -> None:
        try:
            step()
        except Exception as error:  # the other sweeps must run, and the next round retries this one
            if isinstance(error, DatabaseError) and not self._wait.check():
                return
            sweep_logger.exception("%s failed; it is tried again in %s s", step.__name__, settings.SWEEP_SECONDS)

    def _end(self) -> None:
        consolidation_runs.leases_leave()  # the queue has stopped before
        heartbeat.end(self.worker_id)


def run_worker(processes: int | None = None, *, prepared: bool = False) -> int:
    """Work until a stop signal, with this many processes (default: DAYBOOK_WORKERS), as soon as the database can be
    used; `prepared` means that it can. Returns the exit code: 1 if the queue or the sweeps ended unexpectedly."""
    if processes is not None:
        Conf.WORKERS = Conf.QUEUE_LIMIT = processes
    forks_die_with_parent()
    become_worker()
    inbox = SignalInbox(*STOPS)
    if not prepared and not DatabaseWait("The worker").until_usable(lambda seconds: is_stop(inbox.wait(seconds))):
        return 0
    worker_starts()
    consolidation_runs.leases_share()
    upstream_cache.sync()  # before the fork, so that the queue's processes inherit it
    disconnect()
    post_spawn.connect(lambda **_: watch(), weak=False)  # in each process that executes jobs
    guard, stop = guard_start()
    sweeps = SweepLoop(SWEEPS)
    sweeps.start()  # a thread, so only after the fork
    try:
        return _watch(guard, inbox, sweeps)
    finally:
        _stop_queue(guard, stop)
        sweeps.stop(within=1.0)


def _watch(guard: ForkProcess, inbox: SignalInbox, sweeps: SweepLoop) -> int:
    while True:
        wait([inbox.fileno(), guard.sentinel], timeout=1.0)
        if is_stop(inbox.wait(0)):
            return 0
        if not guard.is_alive():
            logger.error("The queue ended unexpectedly (exit code %s).", guard.exitcode)
            return 1
        if not sweeps.is_alive():
            logger.error("The loop of sweeps ended unexpectedly.")
            return 1


def _stop_queue(guard: ForkProcess, stop: StopEvent) -> None:
    """Give running tasks TASK_GRACE_SECONDS, then kill the queue: their leases expire, and sweeps reschedule them."""
    if guard.is_alive():
        stop.set()
        guard.join(TASK_GRACE_SECONDS)
    if guard.is_alive():
        logger.warning("A task still ran after %s s and was cut off.", TASK_GRACE_SECONDS)
        guard.kill()  # its processes end with it
        guard.join()
