"""Measure whether one client can block the others: repeat the costliest request of each endpoint while somebody chats.

    python bench/fairness.py [--only NAME…] [--seconds 2]

Starts `manage.py up` against a scripted upstream, with 300 memories and a long session. For each row an attacker in its
own process repeats one request for --seconds; meanwhile a second user chats without a pause, and `/healthz` is
requested every 20 ms. Prints per row the longest stall of `/healthz`, the second user's p99, its multiple of the
undisturbed p99, how late a sleeping thread of this process woke (the machine's own delay: a stall is Daybook's only if
it is much longer), and the attacker's status codes. The last line is one JSON object: `rows` of `{name, stall_ms,
p99_ratio, machine_ms}`, `worst_stall_ms`, `worst_p99_ratio`. The exit code is 1 if a stall is above --stall-limit or a
ratio above --ratio-limit (0: no limit). Everything stays on loopback; it takes at most about rows × (--seconds + 10
s)."""

import argparse
import http.client
import json
import multiprocessing
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from typing import Any
from urllib.parse import urlsplit

from daybook_server import Daybook, agents_file, daybook_start
from fairness_rows import WEBSOCKET, World, rows
from processes import BenchError, stop_on_signals, upstream_start
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

TIMEOUT_SECONDS = 30.0
PROBE_SECONDS = 0.02
MEMORIES = 300
TURNS = 40


@dataclass(slots=True)
class Measured:
    """What the bystanders measured during one row, in seconds."""

    turns: list[float] = field(default_factory=list)
    stalls: list[float] = field(default_factory=list)
    lateness: list[float] = field(default_factory=list)
    failures: int = 0

    @property
    def p99(self) -> float:
        """The 99th percentile of the second user's turns."""
        return statistics.quantiles(self.turns, n=100, method="inclusive")[98] if len(self.turns) > 1 else self.turns[0]


@dataclass(frozen=True, slots=True)
class Bystanders:
    """The second user and the health check."""

    host: str
    port: int
    key: str

    def watch(self, until: threading.Event) -> Measured:
        """Chat and probe until the event is set, then finish the open requests."""
        seen = Measured()
        threads = [
            threading.Thread(target=self._repeat, args=(until, self._chat, seen.turns, seen, 0.0)),
            threading.Thread(target=self._repeat, args=(until, self._probe, seen.stalls, seen, PROBE_SECONDS)),
            threading.Thread(target=_measure_lateness, args=(until, seen.lateness)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return seen

    def _repeat(self, until: threading.Event, step: "object", times: list[float], seen: Measured, pause: float) -> None:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_SECONDS)
        while not until.wait(pause) or not times:
            started = time.perf_counter()
            try:
                status = step(connection)  # type: ignore[operator]
            except (OSError, http.client.HTTPException):
                connection.close()
                status = 0
            times.append(time.perf_counter() - started)
            seen.failures += status != 200
        connection.close()

    def _chat(self, connection: http.client.HTTPConnection) -> int:
        body = {"model": "assistant", "messages": [{"role": "user", "content": "What is for dinner tonight?"}]}
        return _send(connection, "POST", "/v1/chat/completions", json.dumps(body).encode(), self._headers())

    def _probe(self, connection: http.client.HTTPConnection) -> int:
        return _send(connection, "GET", "/healthz", b"", {})

    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "X-Daybook-User": "second user",
        }


def _measure_lateness(until: threading.Event, lateness: list[float]) -> None:
    """Record how much too late a sleeping thread wakes; next to nothing on an idle machine."""
    while not until.is_set() or not lateness:
        began = time.perf_counter()
        until.wait(PROBE_SECONDS)
        lateness.append(max(0.0, time.perf_counter() - began - PROBE_SECONDS))


def _send(connection: http.client.HTTPConnection, method: str, path: str, body: bytes, headers: dict[str, str]) -> int:
    connection.request(method, path, body=body or None, headers=headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def attack(address: str, name: str, world: World, ready: Event, stop: Event, answers: "Queue[dict[int, int]]") -> None:
    """Repeat a row's request until `stop` is set, then put the status codes on the queue. Runs in its own process."""
    ready.set()
    seen: Counter[int] = Counter()
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=TIMEOUT_SECONDS)
    number = 0
    while not stop.is_set():
        number += 1
        if name == WEBSOCKET:
            seen[_open_websocket(address, world, number)] += 1
            continue
        call = rows()[name](world, number)
        login = {"Cookie": world.cookies, "X-CSRFToken": world.csrf, "Referer": f"{address}/"}
        key = {"Authorization": f"Bearer {world.key}"}
        page = name.startswith("page ")
        try:
            seen[_send(connection, call.method, call.path, call.body, call.headers | (login if page else key))] += 1
        except (OSError, http.client.HTTPException):
            connection.close()
            seen[0] += 1
    answers.put(dict(seen))


def _open_websocket(address: str, world: World, number: int) -> int:
    """Open a websocket with an extreme `after`, send unexpected messages, and close it."""
    url = address.replace("http", "ws", 1) + "/ws/notifications/?after=" + "9" * (1, 4_400)[number % 2]
    try:
        with connect(url, additional_headers={"Authorization": f"Bearer {world.key}"}, open_timeout=10) as socket:
            for _ in range(50):
                socket.send("[" * 60_000)
        return 101
    except (OSError, WebSocketException):
        return 0


def unlimited_agents_file(upstream: str = "default") -> str:
    """Return the agents file without memory budgets, so that only the input limits bound what is stored. The second
    user's agent uses `upstream`."""
    agents = json.loads(agents_file())
    for agent in agents["agents"].values():
        agent |= {"user_char_limit": 0, "memory_char_limit": 0}
    agents["agents"]["assistant"]["upstream"] = upstream
    return json.dumps(agents)


def build_world(call: Callable[..., dict[str, Any]], key: str, *login: str) -> World:
    """Create what the rows name: memories, one of them with a long history, and a long session with a review. `call`
    sends a request of the key's owner and returns the JSON of its response."""
    for number in range(MEMORIES):
        content = f"Likes place number {number} by the sea"
        memory = call("POST", "/api/memories", {"content": content, "target": "memory"})["id"]
    for number in range(50):
        call("PATCH", f"/api/memories/{memory}", {"content": f"version {number} " + "word " * 700})
    session = call("POST", "/api/sessions", {"agent": "plain"})["id"]
    for number in range(TURNS):
        turn = call("POST", f"/api/sessions/{session}/turns", {"content": f"Tell me about case {number}."})["id"]
    review = call("POST", f"/api/sessions/{session}/review")["id"]
    revisions = call("GET", f"/api/memories/{memory}/revisions")["data"]
    return World(key, session, turn, memory, review, revisions[0]["change_set"], *login)


def measure(bystanders: Bystanders, seconds: float) -> Measured:
    """Measure the bystanders for so many seconds."""
    until = threading.Event()
    timer = threading.Timer(seconds, until.set)
    timer.start()
    return bystanders.watch(until)


def measure_row(
    daybook: Daybook, bystanders: Bystanders, name: str, world: World, seconds: float
) -> tuple[Measured, dict[int, int]]:
    """Measure the bystanders while one row is repeated; also return the attacker's responses by status."""
    context = multiprocessing.get_context("spawn")
    ready, stop, answers = context.Event(), context.Event(), context.Queue()
    arguments = (daybook.server.url, name, world, ready, stop, answers)
    attacker = context.Process(target=attack, args=arguments, daemon=True)
    attacker.start()
    try:
        # On a busy machine starting a process takes longer than a short row.
        if not ready.wait(TIMEOUT_SECONDS):
            raise BenchError(f"{name}: the attacker did not start")
        seen = measure(bystanders, seconds)
        stop.set()
        return seen, answers.get(timeout=TIMEOUT_SECONDS + 10)
    finally:
        attacker.join(5)
        attacker.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[""], help="only rows whose name contains one of these")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of each row")
    parser.add_argument("--stall-limit", type=float, default=0.0, help="milliseconds; 0: no limit")
    parser.add_argument("--ratio-limit", type=float, default=0.0, help="0: no limit")
    given = parser.parse_args()
    stop_on_signals()
    names = [name for name in (*rows(), WEBSOCKET) if any(part in name for part in given.only)]
    # These destroy the attacker's data or login, so they come last.
    names.sort(key=lambda name: name in {"forget", "page logout"})
    if not names:
        raise BenchError(f"no row's name contains {given.only!r}")
    results, baselines = [], []
    with ExitStack() as stack:
        # The second user does not wait while the attacker's upstream reads megabytes.
        upstream, other = (upstream_start(stack, "--chunks", "5") for _ in range(2))
        settings = {"DAYBOOK_UPSTREAM_OTHER_URL": other.url + "/v1", "DAYBOOK_UPSTREAM_OTHER_KEY": "x"}
        daybook = daybook_start(stack, upstream, agents=unlimited_agents_file("other"), settings=settings)
        parts = urlsplit(daybook.server.url)
        bystanders = Bystanders(str(parts.hostname), int(parts.port or 80), daybook.trusted_key())
        world = build_world(daybook.call, daybook.key, *daybook.login())
        measure(bystanders, 1.0)
        print(f"{'row':52} {'stall ms':>9} {'p99 ms':>8} {'× alone':>8} {'machine':>8}  answers")
        for index, name in enumerate(names):
            if index % 8 == 0:
                baselines.append(measure(bystanders, given.seconds))
            seen, answers = measure_row(daybook, bystanders, name, world, given.seconds)
            alone = statistics.median(baseline.p99 for baseline in baselines)
            stall, ratio = max(seen.stalls) * 1000, seen.p99 / alone
            machine = max(seen.lateness) * 1000
            row = {"name": name, "stall_ms": round(stall, 1), "p99_ratio": round(ratio, 2)}
            results.append(row | {"machine_ms": round(machine, 1), "failures": seen.failures})
            print(f"{name:52} {stall:9.1f} {seen.p99 * 1000:8.1f} {ratio:8.2f} {machine:8.1f}  {answers}", flush=True)
    worst_stall = max(row["stall_ms"] for row in results)
    worst_ratio = max(row["p99_ratio"] for row in results)
    alone = Measured([t for b in baselines for t in b.turns], [s for b in baselines for s in b.stalls])
    summary = {
        "rows": results,
        "worst_stall_ms": worst_stall,
        "worst_p99_ratio": worst_ratio,
        "alone_p99_ms": round(alone.p99 * 1000, 1),
        "alone_stall_ms": round(max(alone.stalls) * 1000, 1),
    }
    print(json.dumps(summary))
    over_stall = bool(given.stall_limit) and worst_stall > given.stall_limit
    return int(over_stall or (bool(given.ratio_limit) and worst_ratio > given.ratio_limit))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"fairness: {error}")
