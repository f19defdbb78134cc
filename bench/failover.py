"""Measure what a client sees, what is stored, and how long it takes when a model server fails, with and without a
second server as fallback.

    python bench/failover.py

Runs the real server (`manage.py up`) against scripted model servers, one of which is killed while it answers. A server
may be silent for 2 seconds (`DAYBOOK_UPSTREAM_FIRST_BYTE_SECONDS`), a run may take 8 (`DAYBOOK_RUN_SECONDS`). Also
times a model step without any failure, with and without the retry and fallback code, alternating in one process.

Prints a table and, as its last line, one JSON object: `rows: [{fault, fallback, streamed, client, stored,
attempts, seconds}]` and `step_us: {bare, watched, added}` (medians)."""

import argparse
import asyncio
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Thread
from typing import Any

from daybook_server import Daybook, daybook_start
from processes import (
    REPO,
    BenchError,
    Server,
    clean_environment,
    free_port,
    process_stop,
    product_python,
    stop_on_signals,
)

SILENT_SECONDS, RUN_SECONDS = 2, 8
CHUNKS, STEPS = 50, 400
MEMORY_CALL = {"calls": [{"name": "add_memory", "arguments": {"content": "Is vegetarian.", "target": "user"}}]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A way to fail: the first server follows `steps`, one per request, and then answers "Hello."."""

    name: str
    steps: tuple[dict[str, Any], ...] = ()
    upstream: str = "first"


FAULTS = (
    Fault(name="none"),
    Fault(name="refuses the connection", upstream="nobody"),
    Fault(name="is killed between two steps", upstream="dying"),
    Fault(name="hangs", steps=({"hang": "before"},) * 9),
    Fault(name="429", steps=({"status": 429},) * 9),
    Fault(name="429, Retry-After: 1, then well", steps=({"status": 429, "headers": {"Retry-After": "1"}},)),
    Fault(name="429, Retry-After: 60", steps=({"status": 429, "headers": {"Retry-After": "60"}},) * 9),
    Fault(name="503", steps=({"status": 503},) * 9),
    Fault(name="503 once", steps=({"status": 503},)),
    Fault(name="401", steps=({"status": 401},) * 9),
    Fault(name="400", steps=({"status": 400},) * 9),
    Fault(name="breaks off before a word", steps=({"break_off": "before"},) * 9),
    Fault(name="breaks off in mid-answer", steps=({"text": ["Half ", "of it"], "break_off": "middle"},) * 9),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A fault and how the client meets it. Each case has its own agent and model, so that none trips another's circuit
    breaker."""

    fault: Fault
    fallback: bool
    streamed: bool

    @property
    def agent(self) -> str:
        """The name of the case's agent and of its model."""
        return f"case-{FAULTS.index(self.fault)}-{int(self.fallback)}-{int(self.streamed)}"

    def settings(self) -> dict[str, Any]:
        """Return the settings of the case's agent."""
        upstreams = [self.fault.upstream, "second"] if self.fallback else self.fault.upstream
        return {"model": self.agent, "upstream": upstreams, "tools": [{"type": "memory"}]}


CASES = [
    Case(fault=fault, fallback=fallback, streamed=streamed)
    for fault in FAULTS
    for fallback in (True, False)
    for streamed in (False, True)
]


def model_server(stack: ExitStack, port: int = 0) -> tuple[Server, int]:
    """Start the tests' scriptable model server; return it and its port. The stack stops it."""
    port = port or free_port()
    process = subprocess.Popen(
        [product_python(), "-m", "tests.upstream_server", "--port", str(port)],
        cwd=REPO,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    stack.callback(process_stop, process)
    assert process.stdout is not None
    if not process.stdout.readline().startswith("http"):
        raise BenchError("the tests' model server cannot start")
    return Server(name="upstream", url=f"http://127.0.0.1:{port}", process=process), port


def script(server: Server, steps: list[dict[str, Any]]) -> None:
    """Tell a model server what to do with its next requests."""
    body = json.dumps(steps).encode()
    urllib.request.urlopen(urllib.request.Request(f"{server.url}/script", body, method="POST"), timeout=10).close()


def kill_at_second_step(server: Server, model: str) -> None:
    """Kill a model server as soon as it has received a second request for the model."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with urllib.request.urlopen(f"{server.url}/requests", timeout=10) as answer:
            if sum(request["model"] == model for request in json.load(answer)) == 2:
                server.process.kill()
                return
    raise BenchError("the second step was never requested")


def client_result(daybook: Daybook, case: Case) -> str:
    """Send one message; describe what the client receives."""
    request = urllib.request.Request(
        f"{daybook.server.url}/v1/chat/completions",
        json.dumps(
            {"model": case.agent, "messages": [{"role": "user", "content": case.agent}], "stream": case.streamed}
        ).encode(),
        headers={"Authorization": f"Bearer {daybook.key}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            body = answer.read().decode()
    except urllib.error.HTTPError as refused:
        after = refused.headers.get("Retry-After")
        code = json.load(refused)["error"]["code"]
        return f"{refused.code} {code}" + (f", Retry-After: {after}" if after else "")
    if not case.streamed:
        return f'"{json.loads(body)["choices"][0]["message"]["content"]}"'
    chunks = [json.loads(line[6:]) for line in body.split("\n") if line.startswith("data: {")]
    errors = [chunk["error"]["code"] for chunk in chunks if "error" in chunk]
    texts = [choice["delta"].get("content") or "" for chunk in chunks for choice in chunk.get("choices", ())]
    return f'"{"".join(texts)}"' + "".join(f", then {code}" for code in errors)


def stored_result(daybook: Daybook, case: Case) -> tuple[str, str]:
    """Return the stored state and text of the run, and the upstreams that its trace says were asked."""
    with sqlite3.connect(f"file:{next((daybook.home / 'var').glob('*.sqlite3'))}?mode=ro", uri=True) as database:
        (state, text, trace), *_ = database.execute(
            "SELECT run.state, run.text, run.trace FROM gateway_run AS run JOIN gateway_session AS session"
            " ON session.id = run.session_id JOIN gateway_agent AS agent ON agent.id = session.agent_id"
            " WHERE agent.name = ?",
            [case.agent],
        ).fetchall()
        notes = database.execute(
            "SELECT COUNT(*) FROM gateway_message AS message JOIN gateway_session AS session ON session.id ="
            " message.session_id JOIN gateway_agent AS agent ON agent.id = session.agent_id"
            " WHERE agent.name = ? AND message.role = 'tool'",
            [case.agent],
        ).fetchone()[0]
    attempts = [
        f"{entry['upstream']}: {entry['fault'] or 'answered'}" for entry in json.loads(trace).get("attempts", ())
    ]
    counted = [f"{count}× {attempt}" if count > 1 else attempt for attempt, count in Counter(attempts).items()]
    return f'{state}, "{text}"' + (f", {notes} tool result" if notes else ""), "; ".join(counted)


def run_case(stack: ExitStack, daybook: Daybook, case: Case, first: Server, dying_port: int) -> dict[str, Any]:
    """Run one case and return its row of the table."""
    if case.fault.upstream == "dying":
        dying, _ = model_server(stack, dying_port)
        script(dying, [MEMORY_CALL, {"hang": "before"}])
        Thread(target=kill_at_second_step, args=(dying, case.agent), daemon=True).start()
    else:
        script(first, [step | {"model": case.agent} for step in case.fault.steps])
    started = time.perf_counter()
    seen = client_result(daybook, case)
    seconds = time.perf_counter() - started
    in_database, attempts = stored_result(daybook, case)
    return {
        "fault": case.fault.name,
        "fallback": case.fallback,
        "streamed": case.streamed,
        "client": seen,
        "stored": in_database,
        "attempts": attempts,
        "seconds": round(seconds, 2),
    }


def step_times(steps: int) -> dict[str, float]:
    """Return median microseconds of a streamed step of CHUNKS chunks, without and with the retry and fallback code."""
    os.environ.update(clean_environment(DJANGO_SETTINGS_MODULE="config.settings", OPENAI_API_KEY="x"))
    sys.path.insert(0, str(REPO))
    # The settings are configured by the environment that was just set.
    import django
    import httpx2
    import openai

    django.setup()
    from gateway.upstream import ModelRequest, OpenAIModel, ResilientModel, wire

    delta = {"choices": [{"index": 0, "delta": {"content": "word "}, "finish_reason": None}]}
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in [delta] * CHUNKS + [end]) + "data: [DONE]\n\n"
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, content=body.encode()))
    wire.http_client = lambda: openai.DefaultAsyncHttpxClient(transport=transport)  # type: ignore[assignment]
    bare = OpenAIModel()
    models = {"bare": bare, "watched": ResilientModel(bare)}
    taken: dict[str, list[float]] = {name: [] for name in models}
    request = ModelRequest(upstream="default", model="m", messages=({"role": "user", "content": "Hi"},))

    async def measure() -> None:
        for number in range(steps):
            for name in sorted(models, reverse=bool(number % 2)):
                started = time.perf_counter()
                async for _ in models[name].stream(request):
                    pass
                taken[name].append((time.perf_counter() - started) * 1e6)
        await bare.close()

    asyncio.run(measure())
    medians = {name: round(statistics.median(times[10:]), 1) for name, times in taken.items()}
    added = statistics.median(watched - bare for bare, watched in zip(taken["bare"], taken["watched"], strict=True))
    return medians | {"added": round(added, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS, help="steps to time")
    parser.add_argument("--only", default="", help="only faults whose name contains this")
    options = parser.parse_args()
    stop_on_signals()
    with ExitStack() as stack:
        first, _ = model_server(stack)
        second, _ = model_server(stack)
        dying_port = free_port()
        ports = {"second": second.url, "dying": f"http://127.0.0.1:{dying_port}"}
        ports |= {"first": first.url, "nobody": f"http://127.0.0.1:{free_port()}"}
        settings = {f"DAYBOOK_UPSTREAM_{name.upper()}_URL": f"{url}/v1" for name, url in ports.items()}
        settings |= {
            "DAYBOOK_UPSTREAM_FIRST_BYTE_SECONDS": str(SILENT_SECONDS),
            "DAYBOOK_RUN_SECONDS": str(RUN_SECONDS),
        }
        agents = json.dumps({"agents": {case.agent: case.settings() for case in CASES}})
        daybook = daybook_start(stack, second, memories=0, agents=agents, settings=settings)
        cases = [case for case in CASES if options.only in case.fault.name]
        rows = [run_case(stack, daybook, case, first, dying_port) for case in cases]
    figures = {"rows": rows, "step_us": step_times(options.steps)}
    print("| the first server | fallback | answer | the client sees | stored | asked | s |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        how = ("yes" if row["fallback"] else "no", "streamed" if row["streamed"] else "whole")
        cells = (row["fault"], *how, row["client"], row["stored"], row["attempts"], f"{row['seconds']:.2f}")
        print("| " + " | ".join(cell.replace("\n", " ") for cell in cells) + " |")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
