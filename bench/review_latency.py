"""Measure whether background reviews slow a conversation down: the same conversation with reviews off and on.

    python bench/review_latency.py

Runs the real server (`manage.py up`, web process and worker) against the scripted upstream, which answers turns quickly
and reviews slowly, so that they overlap. Conversations alternate (off, on, on, off, …); each starts when the reviews of
the previous one have ended, so no review runs during a conversation without reviews.

Prints a table and, as its last line, one JSON object: `ratio_turn_p50` and `ratio_first_token_p50` (on / off, medians
of all turns), `turns` (measured per kind), and the setup. The exit code is 1 if a ratio is above `--limit` or reviews
are missing."""

import argparse
import http.client
import json
import random
import statistics
import sys
import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from daybook_server import Daybook, daybook_start
from processes import BenchError, busy_cores, server_json, stop_on_signals, upstream_start

REVIEWER = "scripted-reviewer"
OPEN_STATES = {"scheduled", "running"}
SETTLE_TIMEOUT_SECONDS = 30.0
NOISY_CORES = 0.25


@dataclass(frozen=True, slots=True)
class Turn:
    """Times of one turn in milliseconds: until the first token, and until it was stored."""

    first_token: float
    whole: float


def agents_file(interval: int) -> str:
    """Return two agents that differ only in their reviews; JSON is valid YAML."""
    common = {
        "model": "scripted-talker",
        "instructions": "You are a helpful assistant. Be brief and kind.",
        "tools": [{"type": "memory"}],
        "inject_memories": True,
        "memory_review_model": REVIEWER,
        "memory_review_verbose": True,
    }
    agents = {"off": common, "on": common | {"memory_review_interval": interval}}
    return json.dumps({"agents": agents}, indent=2)


class ChatClient:
    """A client that keeps its connection and reads streams as they arrive."""

    def __init__(self, daybook: Daybook) -> None:
        parts = urlsplit(daybook.server.url)
        self.connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=60)
        self.headers = {"Authorization": f"Bearer {daybook.key}", "Content-Type": "application/json"}

    def turn(self, session: str, content: str) -> Turn:
        """Send a message and read the answer to its end."""
        body = json.dumps({"content": content, "stream": True})
        began = time.perf_counter()
        self.connection.request("POST", f"/api/sessions/{session}/turns", body, self.headers)
        answer = self.connection.getresponse()
        if answer.status != 200:
            raise BenchError(f"a turn was answered with {answer.status}: {answer.read(300)!r}")
        first = 0.0
        event = b""
        while line := answer.readline():
            if line.startswith(b"event:"):
                event = line[6:].strip()
                if event == b"delta" and not first:
                    first = time.perf_counter()
                if event == b"error":
                    raise BenchError(f"a turn failed: {answer.readline()[:300]!r}")
                if event == b"done":
                    whole = time.perf_counter()
        if event != b"done" or not first:
            raise BenchError("a turn ended without its last event")
        return Turn((first - began) * 1000, (whole - began) * 1000)


def run_conversation(daybook: Daybook, client: ChatClient, agent: str, turns: int) -> list[Turn]:
    """Run a new session of so many turns."""
    session = str(daybook.call("POST", "/api/sessions", {"agent": agent})["id"])
    return [client.turn(session, f"What about the harbour lamps, part {number}?") for number in range(turns)]


def wait_for_reviews(daybook: Daybook) -> None:
    """Wait until no review is open."""
    deadline = time.monotonic() + SETTLE_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        counts = {state: daybook.call("GET", f"/api/reviews?state={state}&limit=1")["data"] for state in OPEN_STATES}
        if not any(counts.values()):
            return
        threading.Event().wait(0.05)
    raise BenchError(f"reviews were still open after {SETTLE_TIMEOUT_SECONDS:.0f} s")


def measure(daybook: Daybook, options: argparse.Namespace) -> dict[str, list[Turn]]:
    """Run pairs of conversations in alternating order; return the turns by agent."""
    client, found = ChatClient(daybook), defaultdict(list)
    for agent in ("off", "on"):
        run_conversation(daybook, client, agent, 3)  # warm up
    wait_for_reviews(daybook)
    deadline = time.monotonic() + options.seconds
    for pair in range(options.pairs):
        for agent in ("off", "on") if pair % 2 == 0 else ("on", "off"):
            found[agent] += run_conversation(daybook, client, agent, options.turns)
            wait_for_reviews(daybook)
        if time.monotonic() > deadline:
            print(f"stopped after {pair + 1} pairs to stay within {options.seconds:.0f} s", file=sys.stderr)
            break
    return found


def median(turns: list[Turn], name: str) -> float:
    return statistics.median(getattr(turn, name) for turn in turns)


def confidence_interval(found: dict[str, list[Turn]], name: str, draws: int = 400) -> tuple[float, float]:
    """Return the bootstrapped 95 % confidence interval of the ratio on / off."""
    rng = random.Random(1)
    values = {agent: [getattr(turn, name) for turn in turns] for agent, turns in found.items()}
    ratios = sorted(
        statistics.median(rng.choices(values["on"], k=len(values["on"])))
        / statistics.median(rng.choices(values["off"], k=len(values["off"])))
        for _ in range(draws)
    )
    return ratios[int(draws * 0.025)], ratios[int(draws * 0.975)]


def report(
    found: dict[str, list[Turn]], options: argparse.Namespace, busy: float | None, review_requests: int
) -> dict[str, Any]:
    """Print the table; return the figures for the JSON line."""
    print(f"{'reviews':<8} {'turns':>6} {'turn p50':>10} {'first token p50':>16}   (ms)")
    for agent in ("off", "on"):
        turns = found[agent]
        print(f"{agent:<8} {len(turns):>6} {median(turns, 'whole'):>10.2f} {median(turns, 'first_token'):>16.2f}")
    ratios = {}
    for key, name in (("ratio_turn_p50", "whole"), ("ratio_first_token_p50", "first_token")):
        low, high = confidence_interval(found, name)
        ratios[key] = round(median(found["on"], name) / median(found["off"], name), 4)
        print(f"{key}: {ratios[key]:.4f} (95 % of redraws {low:.3f} to {high:.3f})")
    if busy is not None and busy > NOISY_CORES:
        print(f"NOISY: others kept {busy} cores busy before the start")
    return ratios | {
        "turns": len(found["on"]),
        "turn_p50_ms": {agent: round(median(turns, "whole"), 2) for agent, turns in found.items()},
        "first_token_p50_ms": {agent: round(median(turns, "first_token"), 2) for agent, turns in found.items()},
        "review_requests": review_requests,
        "setup": {
            "interval": options.interval,
            "review_ms": options.review_ms,
            "first_token_ms": options.first_token_ms,
            "chunk_ms": options.chunk_ms,
            "chunks": options.chunks,
            "busy_cores_before": busy,
        },
    }


def problems(figures: dict[str, Any], *, due: int, limit: float) -> list[str]:
    """Return the reasons why the benchmark failed; empty if it passed. `due` is the expected number of reviews."""
    found = [
        f"{name} is {figures[name]:.4f}, the limit is {limit:g}"
        for name in ("ratio_turn_p50", "ratio_first_token_p50")
        if not figures[name] <= limit
    ]
    if figures["review_requests"] < due:
        found.append(f"only {figures['review_requests']} reviews called their model, {due} were due")
    return found


def run_benchmark(options: argparse.Namespace) -> int:
    busy = busy_cores(0.5)
    with ExitStack() as stack:
        flags = ["--first-token-ms", options.first_token_ms, "--chunk-ms", options.chunk_ms, "--chunks", options.chunks]
        flags += ["--slow-model", REVIEWER, "--slow-ms", options.review_ms]
        upstream = upstream_start(stack, *map(str, flags))
        daybook = daybook_start(stack, upstream, server=options.server, agents=agents_file(options.interval))
        found = measure(daybook, options)
        review_requests = server_json(upstream, "/stats")["models"].get(REVIEWER, {}).get("completions", 0)
    due = len(found["on"]) // options.turns * (options.turns // options.interval)
    figures = report(found, options, busy, review_requests)
    failed = problems(figures, due=due, limit=options.limit)
    for problem in failed:
        print(f"PROBLEM: {problem}")
    print(json.dumps(figures))
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20, help="conversations per kind")
    parser.add_argument("--turns", type=int, default=10, help="turns per conversation")
    parser.add_argument("--interval", type=int, default=3, help="turns between reviews")
    parser.add_argument("--review-ms", type=float, default=600, help="the upstream's delay for a review")
    parser.add_argument("--first-token-ms", type=float, default=30)
    parser.add_argument("--chunk-ms", type=float, default=2)
    parser.add_argument("--chunks", type=int, default=30)
    parser.add_argument("--limit", type=float, default=1.05, help="largest ratio, on / off, that passes")
    parser.add_argument("--seconds", type=float, default=200, help="start no pair after so many seconds")
    parser.add_argument("--server", choices=["daphne", "uvicorn"], default="", help="DAYBOOK_SERVER")
    stop_on_signals()
    try:
        return run_benchmark(parser.parse_args())
    except BenchError as error:
        print(f"review_latency.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
