"""Can one client stop the others? The costliest request of each endpoint in a loop, while somebody else chats.

    python bench/fairness.py [--only NAME] [--seconds 2]

Starts `manage.py up` against an upstream of its own, with 300 memories and a long session. For each row one attacker,
in a process of its own, repeats one request for --seconds; meanwhile a second user chats without a pause, and
`/healthz` is asked every 20 ms. Prints per row the longest stall of `/healthz`, the second user's p99 and what multiple
of the undisturbed one that is, how late a thread of this process woke that did nothing but sleep (what the machine
itself adds: a stall is Daybook's where it is much longer), and what the attacker was answered; as its last line one
JSON object: `rows` of `{name, stall_ms, p99_ratio, machine_ms}`, `worst_stall_ms`, `worst_p99_ratio`. The exit code is
1 when a stall is above --stall-limit or a ratio above --ratio-limit (both 0: never). Everything stays on loopback; it
ends within about rows × (--seconds + 10 s)."""

import argparse
import http.client
import json
import multiprocessing
import statistics
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from urllib.parse import urlsplit

from daybook_server import Daybook, agents_file, daybook_start
from fairness_rows import WEBSOCKET, World, rows
from processes import BenchError, stop_on_signals, upstream_start
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

PATIENCE_SECONDS = 30.0
PROBE_SECONDS = 0.02
MEMORIES = 300
TURNS = 40


@dataclass(slots=True)
class Seen:
    """What was measured while something went on, in seconds."""

    turns: list[float] = field(default_factory=list)
    stalls: list[float] = field(default_factory=list)
    lateness: list[float] = field(default_factory=list)
    failures: int = 0

    @property
    def p99(self) -> float:
        """The 99th percentile of the second user's turns; of few turns the longest."""
        longest = max(self.turns)
        return statistics.quantiles(self.turns, n=100, method="inclusive")[98] if len(self.turns) > 1 else longest


@dataclass(frozen=True, slots=True)
class Bystanders:
    """The second user and the health check."""

    host: str
    port: int
    key: str

    def watch(self, until: threading.Event) -> Seen:
        """Chat and probe until the event is set, and then finish what is under way."""
        seen = Seen()
        threads = [
            threading.Thread(target=self._repeat, args=(until, self._chat, seen.turns, seen, 0.0)),
            threading.Thread(target=self._repeat, args=(until, self._probe, seen.stalls, seen, PROBE_SECONDS)),
            threading.Thread(target=_sleep, args=(until, seen.lateness)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return seen

    def _repeat(self, until: threading.Event, step: "object", times: list[float], seen: Seen, pause: float) -> None:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE_SECONDS)
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
        return _ask(connection, "POST", "/v1/chat/completions", json.dumps(body).encode(), self._headers())

    def _probe(self, connection: http.client.HTTPConnection) -> int:
        return _ask(connection, "GET", "/healthz", b"", {})

    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "X-Daybook-User": "second user",
        }


def _sleep(until: threading.Event, lateness: list[float]) -> None:
    """Note how much later than asked a sleeper wakes; on an idle machine that is next to nothing."""
    while not until.is_set() or not lateness:
        began = time.perf_counter()
        until.wait(PROBE_SECONDS)
        lateness.append(max(0.0, time.perf_counter() - began - PROBE_SECONDS))


def _ask(connection: http.client.HTTPConnection, method: str, path: str, body: bytes, headers: dict[str, str]) -> int:
    connection.request(method, path, body=body or None, headers=headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def attack(address: str, name: str, world: World, begun: Event, stop: Event, answers: "Queue[dict[int, int]]") -> None:
    """Repeat the request of a row until told to stop; runs in a process of its own."""
    begun.set()
    seen: Counter[int] = Counter()
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE_SECONDS)
    number = 0
    while not stop.is_set():
        number += 1
        if name == WEBSOCKET:
            seen[_socket(address, world, number)] += 1
            continue
        call = rows()[name](world, number)
        login = {"Cookie": world.cookies, "X-CSRFToken": world.csrf, "Referer": f"{address}/"}
        key = {"Authorization": f"Bearer {world.key}"}
        page = name.startswith("page ")
        try:
            seen[_ask(connection, call.method, call.path, call.body, call.headers | (login if page else key))] += 1
        except (OSError, http.client.HTTPException):
            connection.close()
            seen[0] += 1
    answers.put(dict(seen))


def _socket(address: str, world: World, number: int) -> int:
    """Open a websocket with an odd `after`, send what nobody asked for, and leave."""
    url = address.replace("http", "ws", 1) + "/ws/notifications/?after=" + "9" * (1, 4_400)[number % 2]
    try:
        with connect(url, additional_headers={"Authorization": f"Bearer {world.key}"}, open_timeout=10) as socket:
            for _ in range(50):
                socket.send("[" * 60_000)
        return 101
    except (OSError, WebSocketException):
        return 0


def agents_of_fairness() -> str:
    """The benchmark's agents, without budgets: what is stored is bounded by the rules for input alone."""
    agents = json.loads(agents_file())
    for agent in agents["agents"].values():
        agent |= {"user_char_limit": 0, "memory_char_limit": 0}
    return json.dumps(agents)


def build_world(daybook: Daybook) -> World:
    """Give the attacker something to ask for: memories with history, a long session, a review, a login."""
    added: dict[str, object] = {}
    for number in range(MEMORIES):
        added = daybook.call(
            "POST", "/api/memories", {"content": f"Likes place number {number} by the sea", "target": "memory"}
        )
    memory = str(added["id"])
    for number in range(50):
        daybook.call("PATCH", f"/api/memories/{memory}", {"content": f"version {number} " + "word " * 700})
    session = str(daybook.call("POST", "/api/sessions", {"agent": "plain"})["id"])
    turn = ""
    for number in range(TURNS):
        answer = daybook.call("POST", f"/api/sessions/{session}/turns", {"content": f"Tell me about case {number}."})
        turn = str(answer["id"])
    review = str(daybook.call("POST", f"/api/sessions/{session}/review")["id"])
    revisions = daybook.call("GET", f"/api/memories/{memory}/revisions")["data"]
    assert isinstance(revisions, list)
    cookies, csrf = daybook.login()
    return World(daybook.key, session, turn, memory, review, str(revisions[0]["change_set"]), cookies, csrf)


def measure(bystanders: Bystanders, seconds: float) -> Seen:
    """What the bystanders see in so many seconds."""
    until = threading.Event()
    timer = threading.Timer(seconds, until.set)
    timer.start()
    return bystanders.watch(until)


def measure_row(
    daybook: Daybook, bystanders: Bystanders, name: str, world: World, seconds: float
) -> tuple[Seen, dict[int, int]]:
    """The same while one row is repeated; what the attacker was answered, by status."""
    context = multiprocessing.get_context("spawn")
    begun, stop, answers = context.Event(), context.Event(), context.Queue()
    told = (daybook.server.url, name, world, begun, stop, answers)
    attacker = context.Process(target=attack, args=told, daemon=True)
    attacker.start()
    try:
        # To start a process takes longer than a short row on a busy machine.
        if not begun.wait(PATIENCE_SECONDS):
            raise BenchError(f"{name}: the attacker did not start")
        seen = measure(bystanders, seconds)
        stop.set()
        return seen, answers.get(timeout=PATIENCE_SECONDS + 10)
    finally:
        attacker.join(5)
        attacker.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of each row")
    parser.add_argument("--stall-limit", type=float, default=0.0, help="milliseconds; 0: no limit")
    parser.add_argument("--ratio-limit", type=float, default=0.0, help="0: no limit")
    given = parser.parse_args()
    stop_on_signals()
    names = [name for name in (*rows(), WEBSOCKET) if given.only in name]
    # What empties the attacker's book comes last, so that the other rows have something to look at.
    names.sort(key=lambda name: name in {"forget", "page logout"})
    if not names:
        raise BenchError(f"no row is called {given.only!r}")
    results, baselines = [], []
    with ExitStack() as stack:
        daybook = daybook_start(stack, upstream_start(stack, "--chunks", "5"), agents=agents_of_fairness())
        parts = urlsplit(daybook.server.url)
        bystanders = Bystanders(str(parts.hostname), int(parts.port or 80), daybook.trusted_key())
        world = build_world(daybook)
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
    alone = Seen([t for b in baselines for t in b.turns], [s for b in baselines for s in b.stalls])
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
