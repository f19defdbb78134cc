"""The event loop and the thread that writes share a core while that pays, and no longer."""

import os
import threading
from collections.abc import Iterator

import pytest

from config.serving import cores
from config.serving.cores import Cores, watch

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="there is one core only"
)
ALL = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


@pytest.fixture(autouse=True)
def every_core_afterwards() -> Iterator[None]:
    yield
    for thread in cores._TASKS.iterdir():
        os.sched_setaffinity(int(thread.name), ALL)


@pytest.fixture
def threads() -> Iterator[dict[str, int]]:
    """The ids of a thread that writes and of another one."""
    end = threading.Event()
    made = [threading.Thread(target=end.wait, name=name) for name in ("daybook-db_0", "daybook-read_0")]
    for thread in made:
        thread.start()
    yield {thread.name: thread.native_id or 0 for thread in made}
    end.set()
    for thread in made:
        thread.join()


def test_a_busy_loop_and_its_writer_get_the_idlest_core(threads: dict[str, int]) -> None:
    idlest = max(ALL)
    found = Cores()
    found.choose(running=0.5, waiting=0.0, idle={core: 100 if core == idlest else 20 for core in ALL})
    found.apply()
    assert os.sched_getaffinity(os.getpid()) == {idlest}
    assert os.sched_getaffinity(threads["daybook-db_0"]) == {idlest}
    assert os.sched_getaffinity(threads["daybook-read_0"]) == ALL


def test_who_has_to_wait_for_the_core_is_let_go_for_a_while(threads: dict[str, int]) -> None:
    found = Cores()
    found.choose(running=0.5, waiting=0.2, idle={})
    assert found.pinned_to is not None
    found.choose(running=0.3, waiting=0.5, idle={})
    assert found.pinned_to is not None  # the writer and the loop wait for each other, too
    found.choose(running=0.0, waiting=0.2, idle={})
    assert found.pinned_to is not None  # for once: somebody else had a burst
    found.choose(running=0.0, waiting=0.0, idle={})
    found.choose(running=0.3, waiting=0.65, idle={})
    found.choose(running=0.3, waiting=0.65, idle={})
    found.apply()
    assert {frozenset(os.sched_getaffinity(one)) for one in (os.getpid(), *threads.values())} == {frozenset(ALL)}
    busy = [
        found.pinned_to
        for _ in range(cores._UNPINNED_ROUNDS)
        if found.choose(running=0.5, waiting=0.0, idle={}) is None
    ]
    assert busy == [None] * cores._UNPINNED_ROUNDS
    found.choose(running=0.5, waiting=0.0, idle={})
    assert found.pinned_to is not None


def test_an_idle_loop_stays_where_it_is() -> None:
    found = Cores()
    found.choose(running=0.1, waiting=0.0, idle={})
    assert found.pinned_to is None


def test_the_watch_measures_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
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
