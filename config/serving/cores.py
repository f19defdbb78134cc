"""Pins two threads of a web process to one core while that pays: the event loop and the database thread that writes.
They hold the GIL alternately, and handing it over between cores costs more than most of the work done with it
(docs/decisions/0057). If other processes need that core, the threads are unpinned for a while. All other threads run on
any core."""

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_WRITERS = "daybook-db"  # the names of the writing threads of memories.database.access begin like this
_SECONDS = 0.5
# As shares of the time: the threads are pinned when the event loop runs for more than _BUSY, and unpinned when it waits
# for its core for more than _CROWDED and twice its running time. That must happen twice in a row, since a thread that
# wakes during another process's short burst waits as well.
_BUSY, _CROWDED = 0.2, 0.1
_UNPINNED_ROUNDS = 60
_TASKS, _STAT = Path("/proc/self/task"), Path("/proc/stat")


def keep_on_one_core() -> None:
    """Start a thread that pins and unpins the threads of this process. Does nothing without Linux and several cores."""
    if _STAT.exists() and hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > 1:
        threading.Thread(target=watch, args=[threading.Event()], name="daybook-cores", daemon=True).start()


class Cores:
    """The core that the two threads are pinned to; None for any core that the process may use."""

    def __init__(self) -> None:
        self.allowed = frozenset(os.sched_getaffinity(0))
        self.pinned_to: int | None = None
        self._rounds_left = 0
        self._was_crowded = False

    def choose(self, running: float, waiting: float, idle: Mapping[int, int]) -> None:
        """Decide after a round. `running` and `waiting` are the shares of it in which the event loop ran and waited for
        its core; `idle` has the idle ticks of each core."""
        is_crowded = waiting > max(_CROWDED, 2 * running)
        if self.pinned_to is not None and is_crowded and self._was_crowded:
            self.pinned_to, self._rounds_left = None, _UNPINNED_ROUNDS
        elif self._rounds_left:
            self._rounds_left -= 1
        elif self.pinned_to is None and running > _BUSY:
            self.pinned_to = max(self.allowed, key=lambda core: idle.get(core, 0))
        self._was_crowded = is_crowded

    def apply(self) -> None:
        """Set the affinity of all threads, since a new one inherits that of the thread that created it."""
        pinned = self.allowed if self.pinned_to is None else {self.pinned_to}
        two = {thread.native_id for thread in threading.enumerate() if thread.name.startswith(_WRITERS)}
        two.add(os.getpid())  # the main thread, whose `native_id` is outdated after a fork
        for thread_id in (int(task.name) for task in _TASKS.iterdir()):
            with suppress(ProcessLookupError):  # it has ended
                os.sched_setaffinity(thread_id, pinned if thread_id in two else self.allowed)


def watch(stopped: threading.Event) -> None:
    """Decide twice a second, until the event is set."""
    cores = Cores()
    with suppress(OSError, ValueError):  # a kernel without these counters; nothing is pinned then
        before, idle_before = _loop_times(), _idle_ticks()
        while not stopped.wait(_SECONDS):
            times, idle = _loop_times(), _idle_ticks()
            idle_since = {core: ticks - idle_before.get(core, 0) for core, ticks in idle.items()}
            cores.choose((times[0] - before[0]) / _SECONDS, (times[1] - before[1]) / _SECONDS, idle_since)
            cores.apply()
            before, idle_before = times, idle


def _loop_times() -> tuple[float, float]:
    """Return for how many seconds the main thread has run, and waited for a core."""
    fields = (_TASKS / str(os.getpid()) / "schedstat").read_text().split()
    return int(fields[0]) / 1e9, int(fields[1]) / 1e9


def _idle_ticks() -> dict[int, int]:
    """Return the idle ticks of each core so far."""
    lines = [line.split() for line in _STAT.read_text().splitlines() if line.startswith("cpu")]
    return {int(name[3:]): int(ticks[3]) for name, *ticks in lines if name != "cpu"}
