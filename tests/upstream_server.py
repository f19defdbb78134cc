"""A scriptable OpenAI-compatible model server on loopback, over real HTTP.

In a test, `with serving_upstream() as upstream:` runs one in a thread; `upstream.url` is the value for OPENAI_BASE_URL.
As a process, `python -m tests.upstream_server [--port N]` prints its address and serves until it is stopped.
Control both with `UpstreamServer(url)`, or from any language:

| request | effect |
|---|---|
| `POST /script` with a list of steps | appends them; each answers one request, in order |
| `POST /reset` | forgets steps and requests, drops hanging connections |
| `GET /requests` | returns the received requests: `[{number, model, stream, body, authorization, state, sent}]` |

A request's `state` is `answering`, `answered`, `broken_off` (by the server) or `hung_up` (by the client); `sent` counts
chunks. A step with a model (`"model": "small"`) answers only requests for it, and a step with `"contains": "words"`
only requests whose JSON contains them. Without a script the answer is "Hello.". `POST /embeddings` returns equal
vectors.

A step is an object; all keys are optional:

| key | meaning |
|---|---|
| `text` | the answer: a string, or a list of chunks |
| `calls` | tool calls: `[{"name": …, "arguments": {…} or text, "id"?}]` |
| `status`, `error`, `headers` | an error response, e.g. `{"status": 429, "headers": {"Retry-After": "7"}}` |
| `hang` | `before` the answer or in the `middle` (after the text): sends nothing until the client hangs up, or /reset |
| `break_off` | drops the connection `before` the answer or in the `middle` |
| `chunk_seconds` | pause before each chunk |
| `think_seconds` | silence before the answer; in a stream after the first chunk, which has only the role |
| `whole` | answers a streamed request with one JSON document |
| `usage`, `finish_reason`, `model` | as in an OpenAI response |
| `delta` | extra keys for each chunk's delta and the message, e.g. `{"reasoning_content": "Hm."}` |
| `raw` | lines that are sent verbatim instead of chunks (or, not streamed, as the body) |
"""

import argparse
import asyncio
import contextlib
import json
import sys
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

HELLO: dict[str, Any] = {"text": "Hello."}
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


@dataclass(slots=True, kw_only=True)
class ReceivedRequest:
    """A received request and its state."""

    number: int
    model: str
    stream: bool
    body: dict[str, Any]
    authorization: str
    state: str = "answering"
    sent: int = 0


class _ConnectionDropped(Exception):
    pass


class Upstream:
    """The server's state: the script and the received requests."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self.received: list[ReceivedRequest] = []
        self.released = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request per connection."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
            raw = await reader.readexactly(int(headers.get("content-length", "0")))
            method, path, _ = head[0].split(" ", 2)
            await self._answer(method, path, headers, raw, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has disconnected
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        raw: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        body = json.loads(raw) if raw else None
        if path.endswith("/chat/completions"):
            request = ReceivedRequest(
                number=len(self.received) + 1,
                model=str(body.get("model")),
                stream=bool(body.get("stream")),
                body=body,
                authorization=headers.get("authorization", ""),
            )
            self.received.append(request)
            await self._complete(request, self._next_step(request), reader, writer)
        elif path.endswith("/embeddings"):
            number, model = len(self.received) + 1, str(body.get("model"))
            request = ReceivedRequest(
                number=number, model=model, stream=False, body=body, authorization="", state="answered"
            )
            self.received.append(request)
            rows = [{"index": index, "embedding": [0.5] * 8} for index in range(len(body.get("input", ())))]
            await _write_json(writer, 200, {"object": "list", "data": rows})
        elif path.endswith("/models"):
            await _write_json(writer, 200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})
        elif (method, path) == ("GET", "/requests"):
            await _write_json(writer, 200, [asdict(request) for request in self.received])
        elif (method, path) == ("POST", "/script"):
            self.steps.extend(body)
            await _write_json(writer, 200, {"steps": len(self.steps)})
        elif (method, path) == ("POST", "/reset"):
            self.released.set()
            self.released = asyncio.Event()
            self.steps, self.received = [], []
            await _write_json(writer, 200, {})
        else:
            await _write_json(writer, 404, {"error": {"message": "no such path", "type": "invalid_request_error"}})

    def _next_step(self, request: ReceivedRequest) -> dict[str, Any]:
        text = json.dumps(request.body)
        for index, step in enumerate(self.steps):
            if step.get("model", request.model) == request.model and step.get("contains", "") in text:
                return self.steps.pop(index)
        return HELLO

    async def _complete(
        self, request: ReceivedRequest, step: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer unless the client hangs up first. It has nothing more to send, so any end of its stream is a
        hang-up."""
        answering = asyncio.ensure_future(_Answer(request, step, writer, self.released).write())
        hanging_up = asyncio.ensure_future(reader.read(1))
        await asyncio.wait({answering, hanging_up}, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            request.state = "hung_up"
            answering.cancel()
        hanging_up.cancel()
        try:
            await answering
            request.state = "answered"
        except (asyncio.CancelledError, ConnectionError):
            request.state = "hung_up"
        except _ConnectionDropped:
            request.state = "broken_off"
            writer.transport.abort()


@dataclass(slots=True)
class _Answer:
    request: ReceivedRequest
    step: dict[str, Any]
    writer: asyncio.StreamWriter
    released: asyncio.Event
    head: dict[str, Any] = field(default_factory=dict)

    async def write(self) -> None:
        step = self.step
        self.head = {"id": f"up-{self.request.number}", "created": 1_700_000_000, "model": self.request.model}
        await self._maybe_stop("before")
        if step.get("status", 200) != 200:
            error = {"message": step.get("error", "scripted error"), "type": "scripted", "param": None, "code": None}
            await _write_json(self.writer, step["status"], {"error": error}, step.get("headers"))
        elif self.request.stream and not step.get("whole"):
            await self._stream()
        else:
            await asyncio.sleep(step.get("think_seconds", 0))
            await _pause(step)
            body = "".join(step["raw"]) if "raw" in step else json.dumps(self._completion())
            half = len(body) // 2 if "middle" in {step.get("hang"), step.get("break_off")} else len(body)
            await _write(self.writer, 200, body.encode(), cut=half)
            await self._maybe_stop("middle")

    async def _stream(self) -> None:
        start = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
        self.writer.write(f"{start}connection: close\r\n\r\n".encode())
        for line, ends_text in self._lines():
            await _pause(self.step)
            data = f"{line}\n\n".encode()
            self.writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            await self.writer.drain()
            self.request.sent += 1
            if self.request.sent == 1:
                await asyncio.sleep(self.step.get("think_seconds", 0))
            if ends_text:
                await self._maybe_stop("middle")
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def _maybe_stop(self, place: str) -> None:
        if self.step.get("break_off") == place:
            raise _ConnectionDropped
        if self.step.get("hang") == place:
            await self.released.wait()
            raise _ConnectionDropped

    def _lines(self) -> Iterator[tuple[str, bool]]:
        """Yield each line of the stream, and whether it is the last one of the text."""
        if "raw" in self.step:
            for index, line in enumerate(self.step["raw"], start=1):
                yield line, index == len(self.step["raw"])
            return
        texts, extra = _texts(self.step), self.step.get("delta", {})
        yield self._chunk({"role": "assistant", "content": ""}), not texts
        for index, text in enumerate(texts, start=1):
            yield self._chunk({"content": text, **extra}), index == len(texts)
        for index, call in enumerate(_calls(self.step)):
            yield self._chunk({"tool_calls": [{"index": index, **call}]}), False
        yield self._chunk({}, finish=_finish(self.step)), False
        if (self.request.body.get("stream_options") or {}).get("include_usage"):
            usage = {**self.head, "object": "chat.completion.chunk", "choices": [], "usage": _usage(self.step)}
            yield f"data: {json.dumps(usage)}", False
        yield "data: [DONE]", False

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return "data: " + json.dumps({**self.head, "object": "chat.completion.chunk", "choices": [choice]})

    def _completion(self) -> dict[str, Any]:
        message = {"role": "assistant", "content": "".join(_texts(self.step)) or None, **self.step.get("delta", {})}
        if calls := _calls(self.step):
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": _finish(self.step)}
        count = int(self.request.body.get("n") or 1)
        choices = [{**choice, "index": index} for index in range(count)]
        return {**self.head, "object": "chat.completion", "choices": choices, "usage": _usage(self.step)}


def _texts(step: dict[str, Any]) -> list[str]:
    text = step.get("text", [])
    return [text] if isinstance(text, str) else list(text)


def _calls(step: dict[str, Any]) -> list[dict[str, Any]]:
    calls = []
    for index, call in enumerate(step.get("calls", ())):
        arguments = call.get("arguments", {})
        function = {
            "name": call["name"],
            "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
        }
        calls.append({"id": call.get("id", f"call_{index}"), "type": "function", "function": function})
    return calls


def _finish(step: dict[str, Any]) -> str:
    return str(step.get("finish_reason") or ("tool_calls" if step.get("calls") else "stop"))


def _usage(step: dict[str, Any]) -> dict[str, Any]:
    return dict(step.get("usage", USAGE))


async def _pause(step: dict[str, Any]) -> None:
    if seconds := step.get("chunk_seconds"):
        await asyncio.sleep(seconds)


async def _write_json(
    writer: asyncio.StreamWriter, status: int, data: Any, headers: dict[str, str] | None = None
) -> None:
    await _write(writer, status, json.dumps(data).encode(), headers)


async def _write(
    writer: asyncio.StreamWriter,
    status: int,
    body: bytes,
    headers: dict[str, str] | None = None,
    cut: int | None = None,
) -> None:
    extra = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    writer.write(
        f"HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        f"connection: close\r\n{extra}\r\n".encode()
        + body[:cut]
    )
    await writer.drain()


@dataclass(frozen=True, slots=True)
class UpstreamServer:
    """Controls a running server. `url` ends with /v1."""

    url: str

    def script(self, *steps: dict[str, Any] | str) -> None:
        """Append steps; a plain string is a step that answers with it."""
        self._call("POST", "/script", [{"text": step} if isinstance(step, str) else step for step in steps])

    def requests(self, model: str = "") -> list[dict[str, Any]]:
        """Return the received requests (for a model), oldest first."""
        return [row for row in self._call("GET", "/requests") if not model or row["model"] == model]

    def last(self) -> dict[str, Any]:
        """Return the newest request."""
        return dict(self.requests()[-1])

    def reset(self) -> None:
        """Forget everything and drop hanging connections."""
        self._call("POST", "/reset", [])

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url.removesuffix("/v1") + path, data=data, method=method)
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.load(response)


async def _serve(
    host: str, port: int, ready: "asyncio.Future[str] | None" = None, make: type[Upstream] = Upstream
) -> None:
    upstream = make()
    server = await asyncio.start_server(upstream.serve, host, port)
    address = f"http://{host}:{server.sockets[0].getsockname()[1]}/v1"
    if ready is None:
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()
    else:
        ready.set_result(address)
    async with server:
        await server.serve_forever()


@contextmanager
def serving_upstream(make: type[Upstream] = Upstream) -> Iterator[UpstreamServer]:
    """Run a server in a thread of this process, with its own event loop."""
    loop = asyncio.new_event_loop()
    ready: asyncio.Future[str] = loop.create_future()
    started = threading.Event()
    ready.add_done_callback(lambda _: started.set())
    serving = loop.create_task(_serve("127.0.0.1", 0, ready, make))

    def run() -> None:
        asyncio.set_event_loop(loop)
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(serving)
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()

    thread = threading.Thread(target=run, name="scripted upstream", daemon=True)
    thread.start()
    if not started.wait(10):
        raise AssertionError("The scripted upstream did not start.")
    try:
        yield UpstreamServer(ready.result())
    finally:
        loop.call_soon_threadsafe(serving.cancel)
        thread.join(10)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A scriptable OpenAI-compatible model server on loopback.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free port; the first line of output says which")
    options = parser.parse_args(arguments)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(options.host, options.port))


if __name__ == "__main__":
    main()
