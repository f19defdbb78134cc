"""config.serving.cores: the event loop and the writing thread share a core while that is faster."""

import os
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from config.serving import cores
from config.serving.cores import Cores, watch

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two cores"
)
ALL = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


@pytest.fixture(autouse=True)
def restore_affinity() -> Iterator[None]:
    yield
    for thread in cores._TASKS.iterdir():
        with suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(thread.name), ALL)


@pytest.fixture
def threads() -> Iterator[dict[str, int]]:
    """The ids of a writing thread and of another one."""
    end = threading.Event()
    started = [threading.Thread(target=end.wait, name=name) for name in ("daybook-db_0", "daybook-read_0")]
    for thread in started:
        thread.start()
    yield {thread.name: thread.native_id or 0 for thread in started}
    end.set()
    for thread in started:
        thread.join()


def test_a_busy_event_loop_and_its_writer_get_the_idlest_core(threads: dict[str, int]) -> None:
    idlest = max(ALL)
    chosen_cores = Cores()
    chosen_cores.choose(running=0.5, waiting=0.0, idle={core: 100 if core == idlest else 20 for core in ALL})
    chosen_cores.apply()
    assert os.sched_getaffinity(os.getpid()) == {idlest}
    assert os.sched_getaffinity(threads["daybook-db_0"]) == {idlest}
    assert os.sched_getaffinity(threads["daybook-read_0"]) == ALL


def test_threads_that_wait_for_the_core_are_released_for_a_while(threads: dict[str, int]) -> None:
    chosen_cores = Cores()
    chosen_cores.choose(running=0.5, waiting=0.2, idle={})
    assert chosen_cores.pinned_to is not None
    chosen_cores.choose(running=0.3, waiting=0.5, idle={})
    assert chosen_cores.pinned_to is not None  # the writer and the loop also wait for each other
    chosen_cores.choose(running=0.0, waiting=0.2, idle={})
    assert chosen_cores.pinned_to is not None  # a single burst of another process
    chosen_cores.choose(running=0.0, waiting=0.0, idle={})
    chosen_cores.choose(running=0.3, waiting=0.65, idle={})
    chosen_cores.choose(running=0.3, waiting=0.65, idle={})
    chosen_cores.apply()
    assert {frozenset(os.sched_getaffinity(thread)) for thread in (os.getpid(), *threads.values())} == {frozenset(ALL)}
    busy = [
        chosen_cores.pinned_to
        for _ in range(cores._UNPINNED_ROUNDS)
        if chosen_cores.choose(running=0.5, waiting=0.0, idle={}) is None
    ]
    assert busy == [None] * cores._UNPINNED_ROUNDS
    chosen_cores.choose(running=0.5, waiting=0.0, idle={})
    assert chosen_cores.pinned_to is not None


def test_an_idle_event_loop_is_not_pinned() -> None:
    chosen_cores = Cores()
    chosen_cores.choose(running=0.1, waiting=0.0, idle={})
    assert chosen_cores.pinned_to is None


def test_watch_measures_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "_SECONDS", 0.05)
    monkeypatch.setattr(cores, "_BUSY", 0.0001)
    monkeypatch.setattr(cores, "_CROWDED", 1000.0)
    ended = threading.Event()
    watching = threading.Thread(target=watch, args=[ended])
    watching.start()
    counted = 0
    while len(os.sched_getaffinity(os.getpid())) > 1 and counted < 200_000_000:
        counted += 1
    ended.set()
    watching.join(10)
    assert len(os.sched_getaffinity(os.getpid())) == 1
