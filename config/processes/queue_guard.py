"""The guard of the queue: django-q2's, which restarts processes that ended, but with locks that survive a kill.

A worker holds the lock of the queue while it waits for a job, and the lock of its timer while it records progress. A
multiprocessing lock stays taken when its holder is killed, so no other worker would ever get a job, or the guard would
wait forever."""

import fcntl
import os
import select
import tempfile
import weakref
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
from multiprocessing.sharedctypes import Value
from typing import Any
from uuid import uuid4

from django_q.cluster import Sentinel
from django_q.worker import worker


class KernelLock:
    """A reentrant lock between processes that the kernel releases when its holder ends, even if it is killed. Only one
    thread of a process may use it."""

    def __init__(self) -> None:
        # lockf locks belong to a process, so that forks can share the open file.
        with tempfile.TemporaryFile() as file:
            self._file = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._file)
        self._depth = 0

    def acquire(self) -> bool:
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        self._depth += 1
        return True

    def release(self) -> None:
        """Undo one `acquire`. The last one frees the lock."""
        self._depth -= 1
        if not self._depth:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class StopEvent:
    """An event between processes. `set` of multiprocessing's own waits until each waiting process has woken, so it
    never returns if one of them was killed."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()

    def set(self) -> None:
        os.write(self._writer, b".")

    def is_set(self) -> bool:
        return self.wait(0)

    def wait(self, timeout: float | None = None) -> bool:
        """Return True as soon as it is set, or False after `timeout` seconds."""
        return bool(select.select([self._reader], [], [], timeout)[0])


class Guard(Sentinel):  # type: ignore[misc]  # django-q2 has no types
    """Starts and supervises the processes of the queue. The constructor returns when the queue has ended."""

    def start(self) -> None:
        """Replace the locks of both queues, before they are shared, and start."""
        for queue in (self.task_queue, self.result_queue):
            queue._rlock, queue._wlock = KernelLock(), KernelLock()
            queue.size.count = _shared("i", 0)
        super().start()

    def spawn_worker(self) -> None:
        """Start a worker with its own timer."""
        self.spawn_process(worker, self.task_queue, self.result_queue, _shared("f", -1), self.timeout)


def guard_start() -> tuple[ForkProcess, StopEvent]:
    """Start the queue in its own process. Returns the process, and the event that stops it."""
    context = get_context("fork")
    stop, started = StopEvent(), StopEvent()
    process = context.Process(target=Guard, args=(stop, started, uuid4()))
    process.start()
    return process, stop


def _shared(typecode: str, value: int) -> Any:
    """Return a number that processes share, with a KernelLock."""
    lock: Any = KernelLock()  # multiprocessing only uses its methods
    return Value(typecode, value, lock=lock)
