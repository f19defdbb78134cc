"""KernelLock and StopEvent of config.processes.queue_guard. tests/e2e/test_killed_reviews.py kills the queue's
processes."""

import os
import signal
from collections.abc import Callable, Iterator
from multiprocessing.sharedctypes import Value
from types import FrameType
from typing import Any

import pytest

from config.processes.queue_guard import KernelLock, StopEvent
from tests.waiting import eventually


@pytest.fixture
def in_fork() -> Iterator[Callable[[Callable[[], object]], int]]:
    """Return a function that calls another one in a fork, which then stays alive, and returns the fork's process id."""
    pids: list[int] = []

    def begin(work: Callable[[], object]) -> int:
        done, signal_done = os.pipe()
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)  # in case it is not killed
            work()
            os.write(signal_done, b".")
            while True:
                signal.pause()
        pids.append(pid)
        os.close(signal_done)
        assert os.read(done, 1) == b"."
        os.close(done)
        return pid

    yield begin
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _is_free(lock: KernelLock) -> bool:
    return _returns_at_once(lock.acquire)


def _returns_at_once(call: Callable[[], object]) -> bool:
    """Return True if a call in another process returns immediately."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(1)  # kills it while it waits
        try:
            call()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_lock_is_released_when_its_holder_is_killed(in_fork: Callable[[Callable[[], object]], int]) -> None:
    lock = KernelLock()
    holder = in_fork(lock.acquire)
    assert not _is_free(lock)
    os.kill(holder, signal.SIGKILL)
    assert eventually(lambda: _is_free(lock), within=10)


def test_the_lock_is_reentrant() -> None:
    lock = KernelLock()
    untyped: Any = lock
    counted = Value("i", 0, lock=untyped)
    with counted.get_lock():
        counted.value += 1  # acquires it again
        assert not _is_free(lock)
    assert _is_free(lock)


def test_an_event_can_be_set_although_a_process_was_killed_that_waited_for_it() -> None:
    event = StopEvent()
    waiting, say_waiting = os.pipe()

    def interrupted(number: int, frame: FrameType | None) -> None:
        os.write(say_waiting, b".")

    def wait_in_a_fork() -> None:
        signal.signal(signal.SIGALRM, interrupted)
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)  # interrupts the wait, which continues
        event.wait(60)

    pid = os.fork()
    if pid == 0:
        try:
            wait_in_a_fork()
        finally:
            os._exit(0)
    for _ in range(3):
        os.read(waiting, 1)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert _returns_at_once(event.set)
    assert event.wait(0)
