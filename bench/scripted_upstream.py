"""A very fast OpenAI-compatible upstream on loopback that always gives the same answer.

The benchmarks measure gateways against it, so it must cost next to nothing itself: one asyncio protocol on the
httptools parser, no framework. `python bench/scripted_upstream.py --port 0` prints its port as its first line and
serves until SIGTERM or SIGINT.

Paths: `GET /v1/models`, `POST /v1/chat/completions` (with and without `stream`), `POST /v1/completions` and
`POST /v1/embeddings` (one fixed answer each), and `GET /stats` (see `Stats`). It supports keep-alive, but not HTTP
pipelining.
"""

import argparse
import asyncio
import itertools
import json
import signal
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import cast

import httptools
import uvloop

CREATED = 1_700_000_000
EMBEDDINGS = b'{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]}]}'
WORDS = ("Every", "evening", "the", "harbour", "lamps", "are", "lit", "before", "the", "boats", "return")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """How the upstream behaves. Delays are in milliseconds; a stream has `chunks` content chunks."""

    chunks: int = 50
    first_token_ms: float = 0.0
    chunk_ms: float = 0.0
    slow_model: str = ""
    slow_ms: float = 0.0

    def words(self) -> list[str]:
        """Return the answer, one word with its leading space per content chunk."""
        words = list(itertools.islice(itertools.cycle(WORDS), self.chunks))
        return [word if i == 0 else f" {word}" for i, word in enumerate(words)]


@dataclass(slots=True)
class ModelStats:
    """Completion requests for one model name.

    `memory_blocks` counts `<memories>` tags in all request bodies, `with_memories` the requests with at least one.
    """

    completions: int = 0
    streams: int = 0
    request_bytes: int = 0
    with_memories: int = 0
    memory_blocks: int = 0

    def count(self, body: bytearray, *, stream: bool) -> None:
        """Record one completion request."""
        blocks = body.count(b"<memories>")
        self.completions += 1
        self.streams += stream
        self.request_bytes += len(body)
        self.with_memories += blocks > 0
        self.memory_blocks += blocks


@dataclass(slots=True)
class Stats:
    """Requests since the start; `abandoned` counts answers whose client hung up before the end."""

    abandoned: int = 0
    models: dict[str, ModelStats] = field(default_factory=dict)


class Upstream:
    """State shared by all connections: the script, its words as JSON, the counters."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.stats = Stats()
        self.ids = itertools.count(1)
        self.words = [json.dumps(word).encode() for word in script.words()]
        self.text = json.dumps("".join(script.words())).encode()


class UpstreamProtocol(asyncio.Protocol):
    """One client connection; httptools calls the `on_…` methods."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.script = upstream.script
        self.loop = asyncio.get_running_loop()
        self.parser = httptools.HttpRequestParser(self)
        self.transport: asyncio.WriteTransport | None = None
        self.timer: asyncio.Handle | None = None  # for the next event of an answer in progress
        self.path = b""
        self.body = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.WriteTransport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.upstream.stats.abandoned += 1
        self.timer = self.transport = None

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as exc:
            self.answer(400, error_body(f"broken HTTP: {exc}"))
            self.close()

    def on_message_begin(self) -> None:
        self.path, self.body = b"", bytearray()

    def on_url(self, url: bytes) -> None:
        self.path += url

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        method, path = self.parser.get_method(), self.path.partition(b"?")[0].rstrip(b"/")
        if (method, path) == (b"POST", b"/v1/chat/completions"):
            self.completion()
        elif (method, path) == (b"POST", b"/v1/completions"):
            self.answer(200, b'{"object":"text_completion","choices":[{"index":0,"text":%s}]}' % self.upstream.text)
        elif (method, path) == (b"POST", b"/v1/embeddings"):
            self.answer(200, EMBEDDINGS)
        elif (method, path) == (b"GET", b"/v1/models"):
            row = {"id": "scripted", "object": "model", "created": CREATED, "owned_by": "bench"}
            self.answer(200, json.dumps({"object": "list", "data": [row]}).encode())
        elif (method, path) == (b"GET", b"/stats"):
            self.answer(200, json.dumps(asdict(self.upstream.stats)).encode())
        else:
            self.answer(404, error_body("no such path"))

    def completion(self) -> None:
        """Answer one chat completion after the script's delays."""
        try:
            request = json.loads(self.body)
            model, stream = str(request.get("model", "scripted")), bool(request.get("stream"))
            usage = stream and bool((request.get("stream_options") or {}).get("include_usage"))
        except (ValueError, AttributeError):
            self.answer(400, error_body("the body is not a JSON object"))
            return
        self.upstream.stats.models.setdefault(model, ModelStats()).count(self.body, stream=stream)
        delay = self.script.first_token_ms
        if self.script.slow_model and model == self.script.slow_model:
            delay += self.script.slow_ms
        if stream:
            self.stream_start(model, usage=usage, delay=delay / 1000)
        elif delay:
            self.timer = self.loop.call_later(delay / 1000, self.send_answer, model)
        else:
            self.send_answer(model)

    def usage(self) -> bytes:
        prompt = max(1, len(self.body) // 4)
        done = len(self.upstream.words)
        return b'{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}' % (
            prompt,
            done,
            prompt + done,
        )

    def send_answer(self, model: str) -> None:
        """Write the answer in one piece."""
        self.timer = None
        self.answer(
            200,
            b'{"id":"chatcmpl-%d","object":"chat.completion","created":%d,"model":%s,"choices":[{"index":0,'
            b'"message":{"role":"assistant","content":%s},"logprobs":null,"finish_reason":"stop"}],"usage":%s}'
            % (
                next(self.upstream.ids),
                CREATED,
                json.dumps(model).encode(),
                self.upstream.text,
                self.usage(),
            ),
        )

    def stream_start(self, model: str, *, usage: bool, delay: float) -> None:
        """Send the response headers at once, then one event per loop step, so that events are sent one by one."""
        self.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )
        head = b'{"id":"chatcmpl-%d","object":"chat.completion.chunk","created":%d,"model":%s,' % (
            next(self.upstream.ids),
            CREATED,
            json.dumps(model).encode(),
        )
        events = iter(self.events(head, usage=usage))
        self.timer = self.loop.call_later(delay, self.stream_step, events, 0)

    def events(self, head: bytes, *, usage: bool) -> list[bytes]:
        """Return all events of one stream, each framed for SSE and chunked transfer."""
        nothing = b',"usage":null}' if usage else b"}"
        choice = b'"choices":[{"index":0,"delta":{%s},"finish_reason":%s}]'
        payloads = [head + choice % (b'"role":"assistant","content":""', b"null") + nothing]
        payloads += [head + choice % (b'"content":' + word, b"null") + nothing for word in self.upstream.words]
        payloads.append(head + choice % (b"", b'"stop"') + nothing)
        if usage:
            payloads.append(head + b'"choices":[],"usage":' + self.usage() + b"}")
        payloads.append(b"[DONE]")
        # 8 = len("data: ") + len("\n\n")
        return [b"%x\r\ndata: %s\n\n\r\n" % (len(payload) + 8, payload) for payload in payloads]

    def stream_step(self, events: Iterator[bytes], number: int) -> None:
        event = next(events, None)
        if event is None:
            self.timer = None
            self.write(b"0\r\n\r\n")
            self.close_unless_keep_alive()
            return
        self.write(event)
        # Event 0 is the role; pause only between the content events 1, 2, …, chunks.
        paused = self.script.chunk_ms and 1 <= number < len(self.upstream.words)
        if paused:
            self.timer = self.loop.call_later(self.script.chunk_ms / 1000, self.stream_step, events, number + 1)
        else:
            self.timer = self.loop.call_soon(self.stream_step, events, number + 1)

    def answer(self, status: int, body: bytes) -> None:
        self.write(
            b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
            % (status, b"OK" if status == 200 else b"Error", len(body), body)
        )
        self.close_unless_keep_alive()

    def close_unless_keep_alive(self) -> None:
        """Close the connection unless the client keeps it alive."""
        if not self.parser.should_keep_alive():
            self.close()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)


def error_body(message: str) -> bytes:
    """Return an error in the format of the OpenAI API."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return json.dumps({"error": error}).encode()


async def serve(
    script: Script, *, port: int, host: str = "127.0.0.1", protocol: type[UpstreamProtocol] = UpstreamProtocol
) -> None:
    """Listen, print the port, and serve until SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    upstream, stop = Upstream(script), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = await loop.create_server(lambda: protocol(upstream), host, port, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stop.wait()
    server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="A scripted OpenAI-compatible upstream on loopback.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free port; the first line of output names it")
    parser.add_argument("--chunks", type=int, default=50, help="content chunks (words) of an answer")
    parser.add_argument("--first-token-ms", type=float, default=0.0, help="pause before the first content")
    parser.add_argument("--chunk-ms", type=float, default=0.0, help="pause between content chunks")
    parser.add_argument("--slow-model", default="", metavar="NAME", help="delay answers of this model")
    parser.add_argument("--slow-ms", type=float, default=0.0, metavar="N", help="by so many milliseconds")
    args = parser.parse_args()
    script = Script(
        chunks=args.chunks,
        first_token_ms=args.first_token_ms,
        chunk_ms=args.chunk_ms,
        slow_model=args.slow_model,
        slow_ms=args.slow_ms,
    )
    uvloop.run(serve(script, host=args.host, port=args.port))


if __name__ == "__main__":
    main()
