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
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import uvloop
from daybook_server import INJECTING_MODEL, MEMORIES, agents_file
from load import answer_text
from own_home import own_home
from processes import upstream_start

Application = Any
_SLICES = 10
_days = itertools.count()


async def send_request(
    application: Application, key: str, method: str, path: str, body: bytes, headers: Mapping[str, str]
) -> tuple[int, bytes]:
    """Send one request to the application; return the status and body of the response."""
    place, _, query = path.partition("?")
    named = {"host": "testserver", "authorization": f"Bearer {key}", **headers, "content-length": str(len(body))}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "root_path": "",
        "method": method, "path": unquote(place), "raw_path": place.encode(), "query_string": query.encode(),
        "client": ("127.0.0.1", 50000), "server": ("127.0.0.1", 8000),
        "headers": [(name.lower().encode(), value.encode()) for name, value in named.items()],
    }  # fmt: skip
    sent = iter([{"type": "http.request", "body": body, "more_body": False}])
    status, answer = 0, b""

    async def receive() -> dict[str, Any]:
        if (message := next(sent, None)) is None:
            await asyncio.Event().wait()
        return message or {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status, answer
        status = message.get("status", status)
        answer += message.get("body", b"")

    await application(scope, receive, send)
    return status, answer


async def run_turn(application: Application, key: str, messages: list[dict[str, str]], *, stream: bool) -> str:
    """Send a conversation; return the text of the answer. Raises RuntimeError if it fails."""
    body = json.dumps({"model": "assistant", "stream": stream, "messages": messages}).encode()
    status, answer = await send_request(
        application, key, "POST", "/v1/chat/completions", body, {"content-type": "application/json"}
    )
    if status != 200 or not answer:
        raise RuntimeError(f"a turn was answered with {status}")
    return answer_text(answer, stream=stream)


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


@contextmanager
def application_started(
    key: str, agents: str, *, chunks: int, variables: Mapping[str, str], empty: str = ""
) -> Iterator[Application]:
    """Yield Daybook's application, warm and with a new database, beside a scripted upstream in another process.
    `agents` is the text of the agents file, `empty` as for `seed`."""
    with ExitStack() as stack:
        upstream = upstream_start(stack, "--chunks", str(chunks))
        file = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="daybook-agents-"))) / "agents.yaml"
        file.write_text(agents)
        defaults = {
            "OPENAI_BASE_URL": upstream.url + "/v1",
            "OPENAI_API_KEY": "x",
            "DAYBOOK_MODEL": INJECTING_MODEL,
            "DAYBOOK_AGENTS": str(file),
        }
        stack.enter_context(own_home("cpu", defaults | dict(variables)))
        seed(key, empty)
        from config.asgi import application
        from config.serving.warm import warm_up

        warm_up()
        sys.setswitchinterval(0.001)
        yield application


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
    variables = {}
    if options.threads and not options.profile:
        variables["DAYBOOK_DB_THREADS"] = "1"
    if options.database_url:
        variables["DATABASE_URL"] = options.database_url
    started = application_started(key, agents_file(), chunks=options.chunks, variables=variables, empty=options.empty)
    with started as application:
        figures = uvloop.run(measure(application, key, options))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
