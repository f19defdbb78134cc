"""Measure the processor time of a turn of `/v1/chat/completions` in the web process, without the HTTP server.

    python bench/turn_cpu.py --turns 400
    python bench/turn_cpu.py --turns 400 --clients 8 --stream --profile
    python bench/turn_cpu.py --turns 400 --clients 8 --threads --conversation 6

The ASGI application runs in this process with its own database; the scripted upstream runs in another process and is
not counted. Every turn is a new stored conversation with a frozen block and a recall over 20 memories, as in
`gateway.py`. With `--conversation` a conversation has so many turns, and each request sends all of it. Processor time
is that of all threads and hardly depends on other load. `--profile` prints the functions that took most of it; it sets
`DAYBOOK_DB_THREADS` to 0, so that it covers all work."""

import argparse
import asyncio
import cProfile
import itertools
import json
import os
import pstats
import secrets
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import uvloop
from daybook_server import INJECTING_MODEL, MEMORIES, agents_file
from own_home import own_home
from processes import upstream_start

Application = Any
_SLICES = 10
_days = itertools.count()


async def run_turn(application: Application, key: str, messages: list[dict[str, str]], *, stream: bool) -> str:
    """Send one request to the application; return the text of its answer. Raises RuntimeError if it fails."""
    body = json.dumps({"model": "assistant", "stream": stream, "messages": messages}).encode()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": "/v1/chat/completions",
        "raw_path": b"/v1/chat/completions",
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8000),
        "headers": [
            (b"host", b"testserver"),
            (b"authorization", b"Bearer " + key.encode()),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ],
    }
    sent = iter([{"type": "http.request", "body": body, "more_body": False}])
    disconnected = asyncio.Event()
    status, answer = 0, b""

    async def receive() -> dict[str, Any]:
        if (message := next(sent, None)) is not None:
            return message
        await disconnected.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status, answer
        status = message.get("status", status)
        answer += message.get("body", b"")

    await application(scope, receive, send)
    if status != 200 or not answer:
        raise RuntimeError(f"a turn was answered with {status}")
    if not stream:
        return str(json.loads(answer)["choices"][0]["message"]["content"])
    events = [json.loads(line[6:]) for line in answer.split(b"\n") if line.startswith(b"data: {")]
    return "".join(event["choices"][0]["delta"].get("content") or "" for event in events if event["choices"])


async def run_turns(
    application: Application, key: str, count: int, clients: int, *, stream: bool, conversation: int = 1
) -> None:
    """Send `count` turns, `clients` at once, in conversations of `conversation` turns."""
    numbers = iter(range(count))

    async def client() -> None:
        messages: list[dict[str, str]] = []
        for _ in numbers:
            if len(messages) >= 2 * conversation:
                messages = []
            messages.append(
                {"role": "user", "content": f"What should I cook on day {next(_days)} before the train to Porto?"}
            )
            answer = await run_turn(application, key, messages, stream=stream)
            messages.append({"role": "assistant", "content": answer})

    await asyncio.gather(*(client() for _ in range(clients)))


async def measure(application: Application, key: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return milliseconds of processor time and of elapsed time per turn, as medians over slices of the run."""
    turn_options = {"stream": options.stream, "conversation": options.conversation}
    await run_turns(application, key, options.warm_up, options.clients, **turn_options)
    profile = cProfile.Profile(time.process_time) if options.profile else None
    each = max(1, options.turns // _SLICES)
    processor, passed = [], []
    if profile:
        profile.enable()
    for _ in range(_SLICES):
        began, began_at = time.process_time(), time.perf_counter()
        await run_turns(application, key, each, options.clients, **turn_options)
        processor.append((time.process_time() - began) / each * 1000)
        passed.append((time.perf_counter() - began_at) / each * 1000)
    if profile:
        profile.disable()
        stats = pstats.Stats(profile)
        stats.sort_stats(options.sort).print_stats(options.lines)
        if options.save:
            stats.dump_stats(options.save)
    return {
        "turns": each * _SLICES,
        "clients": options.clients,
        **turn_options,
        "cpu_ms": round(statistics.median(processor), 3),
        "cpu_ms_least": round(min(processor), 3),
        "ms": round(statistics.median(passed), 3),
    }


def seed(key: str, empty: str) -> None:
    """Create the database, the owner with the key, the agents and the memories. `empty` is a file that caches the
    migrated database for the next run."""
    # Django is set up when this runs.
    from django.contrib.auth.models import User
    from django.core.management import call_command

    from gateway.agents.file import bootstrap_agents
    from gateway.keys import api_key_create
    from memories.models import WriteOrigin
    from memories.services import MemoryFields, Source, book_get_or_create, book_writing, owner_for_user

    here = Path(os.environ["DAYBOOK_HOME"]) / "daybook.sqlite3"
    if empty and Path(empty).exists():
        shutil.copy(empty, here)
    else:
        call_command("migrate", verbosity=0)
        if empty:
            with closing(sqlite3.connect(here)) as made, closing(sqlite3.connect(empty)) as kept:
                made.backup(kept)
    bootstrap_agents()
    owner = owner_for_user(User.objects.create_user("bench"))
    api_key_create(owner=owner, name="bench", plain=key)
    book = book_get_or_create(owner.pk, "main")
    with book_writing(book, Source(actor="system", origin=WriteOrigin.IMPORT)) as writer:
        for category, content in MEMORIES:
            writer.add(MemoryFields(content=content, category=category, target="user"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=400)
    parser.add_argument("--warm-up", type=int, default=60)
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--conversation", type=int, default=1, help="turns per conversation")
    parser.add_argument("--chunks", type=int, default=50, help="content chunks of an answer")
    parser.add_argument("--threads", action="store_true", help="run the database in threads, as a server does")
    parser.add_argument("--database-url", default="", help="an empty PostgreSQL database instead of SQLite")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--sort", default="tottime")
    parser.add_argument("--lines", type=int, default=60)
    parser.add_argument("--save", default="", help="save the profile to this file")
    parser.add_argument("--empty", default="", help="cache the migrated database in this file")
    options = parser.parse_args()
    key = "dbk_" + secrets.token_urlsafe(32)
    with ExitStack() as stack:
        upstream = upstream_start(stack, "--chunks", str(options.chunks))
        agents = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="daybook-agents-"))) / "agents.yaml"
        agents.write_text(agents_file())
        variables = {
            "OPENAI_BASE_URL": upstream.url + "/v1",
            "OPENAI_API_KEY": "x",
            "DAYBOOK_MODEL": INJECTING_MODEL,
            "DAYBOOK_AGENTS": str(agents),
        }
        if options.threads and not options.profile:
            variables["DAYBOOK_DB_THREADS"] = "1"
        if options.database_url:
            variables["DATABASE_URL"] = options.database_url
        stack.enter_context(own_home("turn-cpu", variables))
        seed(key, options.empty)
        from config.asgi import application
        from config.serving.warm import warm_up

        warm_up()
        sys.setswitchinterval(0.001)
        figures = uvloop.run(measure(application, key, options))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
