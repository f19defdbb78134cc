"""A closed-loop load client for `POST …/chat/completions`, cheap enough not to be what is measured.

Each client keeps one connection alive and sends its next request when the last answer is complete. Every request is the
first user turn of a new conversation, with text that no other request has. The client runs in its own process, so it
shares no interpreter lock with the servers: `python bench/load.py --url URL --clients 8 --seconds 2 [--stream]` prints
one JSON object (`Report`).
"""

import argparse
import asyncio
import gc
import json
import re
import secrets
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import count
from typing import cast
from urllib.parse import urlsplit

import httptools
import uvloop

GRACE_SECONDS = 10.0  # for answers that are still open at the end
FIRST_CONTENT = re.compile(rb'"content":\s?"[^"]')
SESSION_HEADER = b"x-daybook-session"

# Typical questions; they share words with the memories of daybook_server.py, so that recall finds something.
QUESTIONS = (
    "What could I cook for dinner tonight with what is left in the fridge?",
    "Please plan a quiet weekend trip by train from my city.",
    "Write a short reply to my manager about the late release.",
    "Which editor settings would you change for my Python project?",
    "Remind me how I like my deployment notes to look.",
    "Suggest a birthday present for my sister, not too expensive.",
    "How should I train for the half marathon in spring?",
    "Explain the difference between a process and a thread, briefly.",
    "What time works for a call with the team in Lisbon?",
    "Draft the agenda of our next planning meeting.",
)


@dataclass(slots=True, kw_only=True)
class Report:
    """Figures of one run: times in milliseconds, `rps` successful answers per second.

    `text` is the content of the first complete answer, to compare servers; `sessions` counts the distinct
    `x-daybook-session` headers, and `last_session` is the last of them.
    """

    clients: int
    stream: bool
    requests: int = 0
    errors: int = 0
    first_error: str = ""
    seconds: float = 0.0
    rps: float = 0.0
    p50_ms: float | None = None
    p95_ms: float | None = None
    ttft_p50_ms: float | None = None
    text: str = ""
    sessions: int = 0
    last_session: str = ""


@dataclass(slots=True)
class Exchange:
    """One request and its answer; times are `time.perf_counter()` seconds."""

    done: "asyncio.Future[None]"
    started: float = 0.0
    first_content: float = 0.0
    finished: float = 0.0
    status: int = 0
    session: bytes = b""
    body: list[bytes] = field(default_factory=list)


class LoadConnection(asyncio.Protocol):
    """One keep-alive connection; httptools calls the `on_…` methods."""

    def __init__(self, *, stream: bool) -> None:
        self.stream = stream
        self.transport: asyncio.WriteTransport | None = None
        self.parser: httptools.HttpResponseParser | None = None
        self.exchange: Exchange | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.WriteTransport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self.fail(ConnectionError(f"the server hung up: {exc or 'before the end of its answer'}"))

    def send(self, request: bytes) -> Exchange:
        """Write one request; the exchange's `done` resolves when its answer is complete."""
        assert self.transport is not None
        self.parser = httptools.HttpResponseParser(self)
        self.exchange = Exchange(asyncio.get_running_loop().create_future(), started=time.perf_counter())
        self.transport.write(request)
        return self.exchange

    def fail(self, exc: Exception) -> None:
        if self.exchange is not None and not self.exchange.done.done():
            self.exchange.done.set_exception(exc)

    def data_received(self, data: bytes) -> None:
        if self.parser is None:
            return
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as exc:
            self.fail(exc)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.exchange is not None and name.lower() == SESSION_HEADER:
            self.exchange.session = value

    def on_body(self, body: bytes) -> None:
        exchange = self.exchange
        if exchange is None:
            return
        exchange.body.append(body)
        if self.stream and not exchange.first_content and FIRST_CONTENT.search(body):
            exchange.first_content = time.perf_counter()

    def on_message_complete(self) -> None:
        if self.exchange is None or self.parser is None or self.exchange.done.done():
            return
        self.exchange.finished = time.perf_counter()
        self.exchange.status = self.parser.get_status_code()
        if not self.parser.should_keep_alive() and self.transport is not None:
            self.transport.close()
        self.exchange.done.set_result(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to send where. `requests` limits each client, `seconds` the whole run."""

    url: str
    key: str
    model: str
    clients: int
    requests: int
    seconds: float
    stream: bool
    warmup: int = 2

    def bodies(self, client: int) -> Iterator[bytes]:
        """Yield endless requests of one client as bytes, each with different text."""
        parts, run = urlsplit(self.url), secrets.token_hex(4)
        head = (
            f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {self.key}\r\n"
            "Content-Type: application/json\r\nAccept: */*\r\nUser-Agent: bench-load\r\nContent-Length: "
        )
        extra: dict[str, object] = {"model": self.model}
        if self.stream:
            extra |= {"stream": True, "stream_options": {"include_usage": True}}
        for number in count():
            question = QUESTIONS[(client + number) % len(QUESTIONS)]
            content = f"{question} (case {run}-{client}-{number})"
            body = json.dumps(extra | {"messages": [{"role": "user", "content": content}]})
            yield f"{head}{len(body)}\r\n\r\n{body}".encode()


def answer_text(body: bytes, *, stream: bool) -> str:
    """Return the content of one answer. Raises ValueError, KeyError or IndexError if it is malformed."""
    if not stream:
        return str(json.loads(body)["choices"][0]["message"]["content"])
    lines = [line[5:].strip() for line in body.splitlines() if line.startswith(b"data:")]
    if not lines or lines[-1] != b"[DONE]":
        raise ValueError("the stream ended without [DONE]")
    deltas = [event["choices"][0]["delta"] for event in map(json.loads, lines[:-1]) if event["choices"]]
    return "".join(delta.get("content") or "" for delta in deltas)


class LoadRun:
    """Runs all clients of one plan and collects their exchanges."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.exchanges: list[Exchange] = []
        self.report = Report(clients=plan.clients, stream=plan.stream)
        self.deadline = float("inf")

    def error(self, message: str) -> None:
        self.report.errors += 1
        self.report.first_error = self.report.first_error or message[:300]

    async def connect(self) -> LoadConnection:
        parts = urlsplit(self.plan.url)
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: LoadConnection(stream=self.plan.stream), parts.hostname or "127.0.0.1", parts.port or 80
        )
        return connection

    async def warm(self, bodies: Iterator[bytes]) -> LoadConnection:
        """Open one connection and send the warm-up requests."""
        connection = await self.connect()
        for _ in range(self.plan.warmup):
            connection, _ = await self.exchange(connection, next(bodies))
        return connection

    async def client(self, connection: LoadConnection, bodies: Iterator[bytes]) -> None:
        """Send requests until a limit is reached."""
        for _ in range(self.plan.requests):
            if time.perf_counter() >= self.deadline:
                return
            connection, exchange = await self.exchange(connection, next(bodies))
            if exchange is not None:
                self.exchanges.append(exchange)

    async def exchange(self, connection: LoadConnection, request: bytes) -> tuple[LoadConnection, Exchange | None]:
        """Send one request, reconnecting if necessary. Counts a failed exchange and returns None for it."""
        try:
            if connection.transport is None or connection.transport.is_closing():
                connection = await self.connect()
            exchange = connection.send(request)
            await exchange.done
        except (OSError, httptools.HttpParserError) as exc:
            self.error(f"{type(exc).__name__}: {exc}")
            await asyncio.sleep(0.01)  # do not hammer a server that is down
            return connection, None
        body = b"".join(exchange.body)
        if exchange.status != 200:
            self.error(f"status {exchange.status}: {body.decode(errors='replace')}")
            return connection, None
        if self.plan.stream and not (exchange.first_content and body.rstrip().endswith(b"data: [DONE]")):
            self.error(f"incomplete stream: …{body[-150:].decode(errors='replace')}")
            return connection, None
        exchange.body = [body] if not self.exchanges else []  # summary() needs only one
        return connection, exchange

    async def run(self) -> Report:
        """Run all clients and return the report. A request still open after the grace time counts as an error."""
        bodies = [self.plan.bodies(number) for number in range(self.plan.clients)]
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                connections = await asyncio.gather(*map(self.warm, bodies))
        except OSError as exc:  # TimeoutError is one
            self.error(f"could not warm up: {type(exc).__name__}: {exc}")
            return self.report
        started = time.perf_counter()
        self.deadline = started + self.plan.seconds
        tasks = [asyncio.create_task(self.client(*pair)) for pair in zip(connections, bodies, strict=True)]
        done, open_ = await asyncio.wait(tasks, timeout=self.plan.seconds + GRACE_SECONDS)
        for task in open_:
            task.cancel()
            self.error("no answer within the grace time")
        for task in done:
            if (failure := task.exception()) is not None:
                self.error(f"{type(failure).__name__}: {failure}")
        return self.summary(started)

    def summary(self, started: float) -> Report:
        report, done = self.report, self.exchanges
        report.requests = len(done)
        if not done:
            return report
        report.seconds = round(max(exchange.finished for exchange in done) - started, 4)
        report.rps = round(len(done) / report.seconds, 1)
        times = sorted((exchange.finished - exchange.started) * 1000 for exchange in done)
        report.p50_ms = round(statistics.median(times), 3)
        report.p95_ms = round(times[min(len(times) - 1, int(len(times) * 0.95))], 3)
        if self.plan.stream:
            first = [(exchange.first_content - exchange.started) * 1000 for exchange in done]
            report.ttft_p50_ms = round(statistics.median(first), 3)
        try:
            report.text = answer_text(b"".join(done[0].body), stream=self.plan.stream)
        except (ValueError, KeyError, IndexError) as exc:
            self.error(f"not an answer: {type(exc).__name__}: {exc}")
        sessions = {exchange.session for exchange in done if exchange.session}
        report.sessions = len(sessions)
        report.last_session = done[-1].session.decode()
        return report


def main() -> None:
    parser = argparse.ArgumentParser(description="Closed-loop load for an OpenAI-compatible server.")
    parser.add_argument("--url", required=True, help="of …/chat/completions")
    parser.add_argument("--key", default="x")
    parser.add_argument("--model", default="scripted")
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--requests", type=int, default=100_000, help="maximum per client")
    parser.add_argument("--seconds", type=float, default=2.0, help="start no request after this time")
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--warmup", type=int, default=2, help="uncounted requests per client")
    plan = Plan(**vars(parser.parse_args()))
    gc.disable()  # its pauses would count as the server's
    print(json.dumps(asdict(uvloop.run(LoadRun(plan).run()))))


if __name__ == "__main__":
    main()
