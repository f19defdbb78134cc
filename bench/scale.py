"""Run many streaming chats and sockets for minutes; check that nothing fails and each notification arrives exactly
once.

    python bench/scale.py --database-url postgres://user:password@127.0.0.1:5432/postgres --redis-url redis://127.0.0.1:6379/9

Starts `manage.py up --web 2` and a second `manage.py worker` on a database that is created on the given server and
dropped at the end. Each chat streams an answer of about eight seconds, pauses, and continues; every second turn of a
session is reviewed. A review saves memories, and every socket of that person is notified. Chats and sockets are
distributed over --people.

Prints a table and, as its last line, one JSON object: `turns`, `errors`, `first_token_p50_ms` and `_p95_ms`,
`notifications` (in the database), `deliveries` (expected: one per notification and socket of that person), how many of
these are `missing` and `repeated`, `sockets_lost`, and `pss_mb`, the proportional set size of all processes after a
quarter, half and all of the time. The exit code is 1 if anything was missing, repeated or lost, or a request failed.
Linux only: it reads /proc."""

import argparse
import asyncio
import json
import random
import secrets
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import websockets
from daybook_server import Daybook
from growth import database
from processes import (
    REPO,
    Server,
    clean_environment,
    free_port,
    product_python,
    server_start,
    server_wait,
    stop_on_signals,
)
from soak import AGENT, AGENTS_FILE, START_SECONDS, delete_queue

CHUNKS, CHUNK_MS = 40, 200
PAUSE_SECONDS = 6.0
SETTLE_SECONDS = 30.0
TURNS_PER_SESSION = 4


@dataclass(slots=True)
class Observed:
    """What clients and sockets saw. `received` has the numbers of notifications by person and socket."""

    turns: int = 0
    errors: list[str] = field(default_factory=list)
    first_tokens: list[float] = field(default_factory=list)
    received: dict[str, dict[int, list[int]]] = field(default_factory=lambda: defaultdict(dict))
    sockets_lost: int = 0


async def chat(number: int, person: str, url: str, key: str, seen: Observed, until: float) -> None:
    """Stream turns until the time is over."""
    rng = random.Random(number)
    headers = {"Authorization": f"Bearer {key}", "X-Daybook-User": person}
    await asyncio.sleep(rng.uniform(0, CHUNKS * CHUNK_MS / 1000))  # not all at once
    async with httpx2.AsyncClient(timeout=60, trust_env=False, headers=headers) as client:
        while time.monotonic() < until:
            messages: list[dict[str, str]] = []
            for turn in range(TURNS_PER_SESSION):
                case = f"{number}-{secrets.token_hex(4)}-{turn}"
                messages.append({"role": "user", "content": f"Please look into case {case} for me."})
                text = await _turn(client, url, messages, seen)
                if text is None or time.monotonic() >= until:
                    break
                messages.append({"role": "assistant", "content": text})
                await asyncio.sleep(rng.uniform(0.5, 1.5) * PAUSE_SECONDS)


async def _turn(client: httpx2.AsyncClient, url: str, messages: list[dict[str, str]], seen: Observed) -> str | None:
    body = {"model": AGENT, "messages": messages, "stream": True}
    began, first, pieces, ended = time.perf_counter(), 0.0, [], False
    try:
        async with client.stream("POST", f"{url}/v1/chat/completions", json=body) as answer:
            if answer.status_code != 200:
                seen.errors.append(f"{answer.status_code} {(await answer.aread())[:200].decode()}")
                return None
            async for line in answer.aiter_lines():
                if not line.startswith("data:"):
                    continue
                ended = line.endswith("[DONE]")
                chunk = {} if ended else json.loads(line[5:])
                if "error" in chunk:
                    seen.errors.append(str(chunk["error"])[:200])
                    return None
                for choice in chunk.get("choices", ()):
                    pieces.append(choice["delta"].get("content") or "")
                    first = first or (time.perf_counter() - began if pieces[-1] else 0.0)
    except httpx2.HTTPError as error:
        seen.errors.append(f"{type(error).__name__} {error}"[:200])
        return None
    if not ended:
        seen.errors.append("a stream without its end")
        return None
    seen.turns += 1
    seen.first_tokens.append(first * 1000)
    return "".join(pieces)


async def listen(number: int, person: str, url: str, key: str, seen: Observed, ready: asyncio.Semaphore) -> None:
    """Record one socket's notifications until cancelled; count the socket as lost if it closes before that."""
    received = seen.received[person][number] = []
    headers = {"Authorization": f"Bearer {key}", "X-Daybook-User": person}
    address = f"{url.replace('http', 'ws', 1)}/ws/notifications/?after=0"
    try:
        async with ready:  # limits concurrent handshakes
            socket = await websockets.connect(address, additional_headers=headers, open_timeout=60, max_queue=None)
        async for message in socket:
            received.append(int(json.loads(message)["id"]))
    except (OSError, TimeoutError, websockets.WebSocketException):
        pass
    seen.sockets_lost += 1


async def load(
    servers: list[Server], url: str, key: str, options: argparse.Namespace, stored_notifications: Any
) -> dict[str, Any]:
    """Run all chats and sockets; return the figures."""
    seen, people = Observed(), [f"person-{number}" for number in range(options.people)]
    opening = asyncio.Semaphore(50)
    sockets = [
        asyncio.create_task(listen(number, people[number % len(people)], url, key, seen, opening))
        for number in range(options.sockets)
    ]
    until = time.monotonic() + options.seconds
    chats = [
        asyncio.create_task(chat(number, people[number % len(people)], url, key, seen, until))
        for number in range(options.chats)
    ]
    pss = []
    for share in (0.25, 0.5, 1.0):
        await asyncio.sleep(max(0.0, until - options.seconds * (1 - share) - time.monotonic()))
        pss.append(sum(map(_pss, _process_tree([server.process.pid for server in servers]))))
    await asyncio.gather(*chats)
    await asyncio.sleep(SETTLE_SECONDS)  # for reviews of the last turns and their notifications
    sent = await asyncio.to_thread(stored_notifications)
    for task in sockets:
        task.cancel()
    await asyncio.gather(*sockets, return_exceptions=True)
    missing = repeated = expected = 0
    for person in people:
        for received in seen.received[person].values():
            expected += len(sent.get(person, ()))
            missing += len(sent.get(person, set()) - set(received))
            repeated += len(received) - len(set(received))
    first = sorted(seen.first_tokens) or [0.0]
    return {
        "turns": seen.turns,
        "errors": len(seen.errors),
        "first_errors": seen.errors[:3],
        "first_token_p50_ms": round(statistics.median(first), 1),
        "first_token_p95_ms": round(first[len(first) * 95 // 100], 1),
        "notifications": sum(map(len, sent.values())),
        "deliveries": expected,
        "missing": missing,
        "repeated": repeated,
        "sockets_lost": seen.sockets_lost,
        "pss_mb": [round(value / 1024) for value in pss],
    }


def _process_tree(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        children = Path(f"/proc/{pid}/task/{pid}/children")
        found += [
            pid,
            *_process_tree([int(child) for child in children.read_text().split()] if children.exists() else []),
        ]
    return found


def _pss(pid: int) -> int:
    """Return the proportional set size of a process in kB, 0 for one that has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def stored_notifications(url: str) -> dict[str, set[int]]:
    """Return the numbers of all notifications in the database by person."""
    import psycopg

    query = "SELECT o.external_id, n.seq FROM memories_notification n JOIN memories_owner o ON o.id = n.owner_id"
    found: dict[str, set[int]] = defaultdict(set)
    with psycopg.connect(url) as connection:
        for person, number in connection.execute(query):
            found[person].add(number)
    return dict(found)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Start all processes, run the load, and return the figures."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="daybook-scale-")))
        variables = stack.enter_context(database(options.database_url))
        stack.callback(delete_queue, options.redis_url)
        delete_queue(options.redis_url)
        upstream_port = free_port()
        command = [product_python(), str(REPO / "bench" / "soak_upstream.py"), "--port", str(upstream_port)]
        command += ["--chunks", str(CHUNKS), "--chunk-ms", str(CHUNK_MS)]
        env = clean_environment()
        upstream = server_start(stack, "upstream", command, port=upstream_port, log=folder / "upstream.log", env=env)
        server_wait(upstream, "/v1/models", seconds=START_SECONDS)
        (folder / "agents.yaml").write_text(AGENTS_FILE)
        port = free_port()
        env = clean_environment(
            DAYBOOK_HOME=str(folder / "home"),
            DAYBOOK_PORT=str(port),
            DAYBOOK_AGENTS=str(folder / "agents.yaml"),
            DAYBOOK_SECRET_KEY=secrets.token_urlsafe(32),
            DAYBOOK_MODEL="scripted",
            OPENAI_BASE_URL=f"{upstream.url}/v1",
            OPENAI_API_KEY="none",
            REDIS_URL=options.redis_url,
            **variables,
        )
        manage = [product_python(), str(REPO / "manage.py")]
        up = [*manage, "up", "--web", str(options.web)]
        server = server_start(stack, "up", up, port=port, log=folder / "up.log", env=env)
        server_wait(server, "/readyz", seconds=START_SECONDS)
        worker = server_start(stack, "worker", [*manage, "worker"], port=0, log=folder / "worker.log", env=env)
        key = Daybook(server=server, key="", home=folder / "home", env=env).trusted_key()
        found = asyncio.run(
            load([server, worker], server.url, key, options, lambda: stored_notifications(variables["DATABASE_URL"]))
        )
        logs = "".join((folder / name).read_text() for name in ("up.log", "worker.log"))
        return {**found, "logged_errors": logs.count(" ERROR "), "seconds": options.seconds, "web": options.web}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database-url", required=True, help="a PostgreSQL server to create a database on")
    parser.add_argument("--redis-url", required=True, help="a Redis database that nothing else uses")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--chats", type=int, default=200)
    parser.add_argument("--sockets", type=int, default=1000)
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--web", type=int, default=2, help="web processes")
    stop_on_signals()
    found = run(parser.parse_args())
    for name, value in found.items():
        print(f"{name:>20}  {value}")
    print(json.dumps(found))
    bad = found["errors"] + found["missing"] + found["repeated"] + found["sockets_lost"]
    return 1 if bad or not found["turns"] else 0


if __name__ == "__main__":
    sys.exit(main())
