"""gateway.worker_loop: one event loop for all jobs of a queue worker."""

import asyncio
import multiprocessing
from multiprocessing.connection import Connection

import pytest

from gateway import worker_loop
from reviews import tasks


async def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_all_jobs_of_a_worker_share_one_loop_reviews_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_loop, "_runner", None)
    used = [worker_loop.run_async(_loop())]
    monkeypatch.setattr(tasks, "execute", lambda run_id, runner: used.append(runner.get_loop()))
    tasks.review_execute("01a1f8aa-80e2-7392-995f-1fe475d0fa65")
    assert used[0] is used[1] is worker_loop.run_async(_loop())


def test_the_connections_of_the_loop_are_closed_when_a_forked_worker_ends() -> None:
    told, tells = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_work, args=(tells,))
    child.start()
    assert told.poll(20)
    assert told.recv() == "closed"
    child.join(20)
    assert child.exitcode == 0


def _work(tells: Connection) -> None:
    async def disconnect() -> None:
        tells.send("closed")

    worker_loop._runner = None
    worker_loop.disconnect = disconnect
    worker_loop.run_async(_loop())
