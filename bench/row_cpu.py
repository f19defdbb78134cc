"""Measure how much processor time the costliest requests take: the rows of fairness.py, one at a time, in this process.

    python bench/row_cpu.py --only "10,000" embeddings --requests 6

The ASGI application runs here with its database threads, as in a server; the scripted upstream runs in another process.
Prints per row (except pages, which need a login) medians in milliseconds: the processor time of all threads, of the
event loop's longest step, and of the writing thread; and the status codes. The last line is one JSON object. Processor
time hardly depends on other load."""

import argparse
import asyncio
import gc
import json
import secrets
import statistics
import threading
import time
from collections import Counter
from typing import Any

from fairness import build_world, unlimited_agents_file
from fairness_rows import World, rows
from turn_cpu import application_started, send_request

Application = Any
_WRITER_THREAD_PREFIX = "daybook-db"
_steps: list[float] = []


async def call(application: Application, key: str, method: str, path: str, body: object = None) -> dict[str, Any]:
    """Send a request and return the JSON of its response."""
    data = b"" if body is None else json.dumps(body).encode()
    _, answer = await send_request(application, key, method, path, data, {"content-type": "application/json"})
    return dict(json.loads(answer))


def writer_cpu_seconds() -> float:
    """Return the processor time so far of the writing threads."""
    writing = [thread for thread in threading.enumerate() if thread.name.startswith(_WRITER_THREAD_PREFIX)]
    return sum(time.clock_gettime(time.pthread_getcpuclockid(thread.ident or 0)) for thread in writing)


async def measure(application: Application, world: World, only: list[str], requests: int) -> list[dict[str, Any]]:
    """Measure the selected rows; return the figures of each."""
    found = []
    for name, row in rows().items():
        if not any(part in name for part in only) or name.startswith("page ") or name == "forget":
            continue
        taken, answers = [], Counter[int]()
        for number in range(requests + 1):
            sent = row(world, number)
            gc.collect()
            await asyncio.sleep(0.05)  # let the previous request finish
            began, wrote = time.process_time(), writer_cpu_seconds()
            _steps.clear()
            status, _ = await send_request(application, world.key, sent.method, sent.path, sent.body, sent.headers)
            taken.append((time.process_time() - began, max(_steps, default=0.0), writer_cpu_seconds() - wrote))
            answers[status] += 1
        medians = [round(statistics.median(of) * 1000, 1) for of in zip(*taken[1:], strict=True)]
        figures = {"name": name, **dict(zip(("cpu_ms", "step_ms", "write_ms"), medians, strict=True))}
        print(f"{name:52}", *(f"{value:8}" for value in medians), dict(answers), flush=True)
        found.append(figures)
    return found


def record_loop_steps() -> None:
    """Make the event loop append the thread time of each of its steps to `_steps`."""
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        _steps.append(time.thread_time() - began)

    asyncio.Handle._run = timed  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[""], help="rows whose name contains one of these")
    parser.add_argument("--requests", type=int, default=6, help="requests per row")
    given = parser.parse_args()
    key = "dbk_" + secrets.token_urlsafe(32)
    variables = {"DAYBOOK_DB_THREADS": "1"}
    with application_started(key, unlimited_agents_file(), chunks=5, variables=variables) as application:
        from config.serving import collector

        collector.resume(collect=True)
        record_loop_steps()
        with asyncio.Runner() as runner:
            world = build_world(lambda *request: runner.run(call(application, key, *request)), key)
            found = runner.run(measure(application, world, given.only, given.requests))
    print(json.dumps({"rows": found}))


if __name__ == "__main__":
    main()
