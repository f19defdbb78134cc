"""KernelLock of config.processes.queue_guard; that the queue goes on when any of its processes is killed:
tests/e2e/test_killed_reviews.py"""

import os
import signal
from collections.abc import Callable, Iterator
from multiprocessing.sharedctypes import Value
from typing import Any

import pytest

from config.processes.queue_guard import KernelLock
from tests.waiting import eventually


@pytest.fixture
def forked() -> Iterator[Callable[[Callable[[], object]], int]]:
    """Call something in a fork, which then lives until it is killed; returns its process id."""
    pids: list[int] = []

    def begin(work: Callable[[], object]) -> int:
        done, told = os.pipe()
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)  # should nobody kill it
            work()
            os.write(told, b".")
            while True:
                signal.pause()
        pids.append(pid)
        os.close(told)
        assert os.read(done, 1) == b"."
        os.close(done)
        return pid

    yield begin
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _is_free(lock: KernelLock) -> bool:
    """Whether another process gets it at once."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(1)  # ends it while it waits
        try:
            lock.acquire()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_lock_is_free_again_when_its_holder_is_killed(forked: Callable[[Callable[[], object]], int]) -> None:
    lock = KernelLock()
    holder = forked(lock.acquire)
    assert not _is_free(lock)
    os.kill(holder, signal.SIGKILL)
    assert eventually(lambda: _is_free(lock), within=10)


def test_who_holds_a_lock_may_take_it_again_and_gives_it_back_as_often() -> None:
    lock = KernelLock()
    given: Any = lock
    counted = Value("i", 0, lock=given)
    with counted.get_lock():
        counted.value += 1  # takes it, too
        assert not _is_free(lock)
    assert _is_free(lock)
