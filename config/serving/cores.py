"""Keeps two threads of a web process on one core while that pays: that of the event loop and the one that writes. They
take turns with the interpreter, and between cores a turn costs more than most of what is done in it
(docs/decisions/0057). Where others want that core as well, the two are let go for a while. All other threads run
wherever there is room."""

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_WRITERS = "daybook-db"  # how the threads of memories.database.access that write are called
_SECONDS = 0.5
# Parts of the time: how much the event loop must compute to be kept, and wait for its core, twice as long as it
# computes, to be let go. That twice in a row: whoever wakes for a moment beside somebody else's burst waits as well.
_BUSY, _CROWDED = 0.2, 0.1
_REST = 60
_TASKS, _MACHINE = Path("/proc/self/task"), Path("/proc/stat")


def keep_on_one_core() -> None:
    """Watch this process from now on, with a thread of its own. Does nothing where there is one core, or no Linux."""
    if _MACHINE.exists() and hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > 1:
        threading.Thread(target=watch, args=[threading.Event()], name="daybook-cores", daemon=True).start()


class Cores:
    """Which core the two threads are kept on; None: any that the process may use."""

    def __init__(self) -> None:
        self.allowed = frozenset(os.sched_getaffinity(0))
        self.kept_on: int | None = None
        self._rest = 0
        self._was_crowded = False

    def choose(self, computed: float, waited: float, idle: Mapping[int, int]) -> None:
        """Decide anew after a while: of which parts the event loop computed and waited for its core, and for how many
        ticks each core had nothing to do."""
        is_crowded = waited > max(_CROWDED, 2 * computed)
        if self.kept_on is not None and is_crowded and self._was_crowded:
            self.kept_on, self._rest = None, _REST
        elif self._rest:
            self._rest -= 1
        elif self.kept_on is None and computed > _BUSY:
            self.kept_on = max(self.allowed, key=lambda core: idle.get(core, 0))
        self._was_crowded = is_crowded

    def apply(self) -> None:
        """Tell the kernel, for every thread there is: a new one has the cores of the thread that made it."""
        kept = self.allowed if self.kept_on is None else {self.kept_on}
        two = {each.native_id for each in threading.enumerate() if each.name.startswith(_WRITERS)}
        two.add(os.getpid())  # the main thread; its `native_id` is that of before a fork
        for thread in (int(task.name) for task in _TASKS.iterdir()):
            with suppress(ProcessLookupError):  # it has ended
                os.sched_setaffinity(thread, kept if thread in two else self.allowed)


def watch(ended: threading.Event) -> None:
    """Decide twice a second, until the event is set."""
    cores = Cores()
    with suppress(OSError, ValueError):  # a kernel that does not count this; nothing is kept then
        before, idle_before = _loop_times(), _idle_ticks()
        while not ended.wait(_SECONDS):
            times, idle = _loop_times(), _idle_ticks()
            passed = {core: ticks - idle_before.get(core, 0) for core, ticks in idle.items()}
            cores.choose((times[0] - before[0]) / _SECONDS, (times[1] - before[1]) / _SECONDS, passed)
            cores.apply()
            before, idle_before = times, idle


def _loop_times() -> tuple[float, float]:
    """Return for how many seconds the main thread computed so far, and waited for a core."""
    said = (_TASKS / str(os.getpid()) / "schedstat").read_text().split()
    return int(said[0]) / 1e9, int(said[1]) / 1e9


def _idle_ticks() -> dict[int, int]:
    """Return how many ticks each core had nothing to do so far."""
    lines = [line.split() for line in _MACHINE.read_text().splitlines() if line.startswith("cpu")]
    return {int(name[3:]): int(ticks[3]) for name, *ticks in lines if name != "cpu"}
