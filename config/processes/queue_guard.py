"""The guard of the queue: django-q2's own, which starts a process again that ended, with locks that outlive it.

A worker that waits for a job holds the lock of the queue meanwhile, and one that notes what is done that of its timer.
A lock of multiprocessing stays taken when its holder is killed: no other worker would ever get a job, or the guard
would wait for it for ever."""

import fcntl
import os
import tempfile
import weakref
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
from multiprocessing.sharedctypes import Value
from multiprocessing.synchronize import Event
from typing import Any
from uuid import uuid4

from django_q.cluster import Sentinel
from django_q.worker import worker


class KernelLock:
    """A lock between processes that the kernel takes back when its holder ends, however that ends. The holder may take
    it several times. Within a process only one thread may use it."""

    def __init__(self) -> None:
        # Locks of lockf belong to a process, so that forks can share the open file.
        with tempfile.TemporaryFile() as file:
            self._file = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._file)
        self._depth = 0

    def acquire(self) -> bool:
        """Wait until it is free, and take it."""
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        self._depth += 1
        return True

    def release(self) -> None:
        """Give it back, when it was given back as often as it was taken."""
        self._depth -= 1
        if not self._depth:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Guard(Sentinel):  # type: ignore[misc]  # django-q2 has no types
    """Starts the processes of the queue and looks after them. Works as long as its process does."""

    def start(self) -> None:
        """Change the locks of both queues, before anybody else knows them, and begin."""
        for queue in (self.task_queue, self.result_queue):
            queue._rlock, queue._wlock = KernelLock(), KernelLock()
            queue.size.count = _shared("i", 0)
        super().start()

    def spawn_worker(self) -> None:
        """Start a worker with a timer of its own."""
        self.spawn_process(worker, self.task_queue, self.result_queue, _shared("f", -1), self.timeout)


def guard_start() -> tuple[ForkProcess, Event]:
    """Start the queue in a process of its own. Returns it, and the event that asks it to end."""
    context = get_context("fork")
    stop, started = context.Event(), context.Event()
    process = context.Process(target=Guard, args=(stop, started, uuid4()))
    process.start()
    return process, stop


def _shared(form: str, value: int) -> Any:
    """Return a number that processes share, with such a lock."""
    lock: Any = KernelLock()  # multiprocessing asks only for its methods
    return Value(form, value, lock=lock)
