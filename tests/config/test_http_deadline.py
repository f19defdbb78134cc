"""Slow clients and oversized request heads: uvicorn's protocol with our limits, on a real socket."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from uvicorn import Config
from uvicorn.server import ServerState

from config.serving import http_deadline
from config.serving.http_deadline import HEAD_BYTES, DeadlineProtocol
from tests.config.raw_server import TEST_SECONDS, Address, raw_server, read_to_end, wait_until_closed
from tests.waiting import eventually_async


async def answer_immediately(scope: Any, receive: Any, send: Any) -> None:
    body, more = b"", scope["path"] == "/read"
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    # Send the names of the request headers and the size of the body back, for tests of trailers and upgrades.
    names = b" ".join(name for name, _ in scope["headers"])
    headers = [(b"content-length", b"2"), (b"x-head", names), (b"x-size", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b"no"})


@pytest_asyncio.fixture
async def address() -> AsyncIterator[Address]:
    async with raw_server(answer_immediately) as server_address:
        yield server_address


async def exchange(address: Address, *pieces: bytes) -> bytes:
    """Send these pieces; return everything received until the server closes the connection."""
    reader, writer = await asyncio.open_connection(*address)
    for piece in pieces:
        writer.write(piece)
    try:
        async with asyncio.timeout(TEST_SECONDS):
            return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize("beginning", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow:"])
async def test_a_request_head_that_does_not_arrive_closes_the_connection(
    address: Address, beginning: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_deadline, "HEAD_SECONDS", 0.2)
    assert await exchange(address, beginning) == b""


@pytest.mark.parametrize("end", [b"", b"\r\n"], ids=["unfinished", "complete"])
async def test_a_too_large_request_head_is_refused(address: Address, end: bytes) -> None:
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 1000) for number in range(HEAD_BYTES // 1000 + 2))
    answer = await exchange(address, b"GET / HTTP/1.1\r\nHost: x\r\n" + lines + end)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"head of this request is too large" in answer


async def test_a_body_sent_together_with_the_head_does_not_count_as_head(address: Address) -> None:
    head = b"POST /read HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (3 * HEAD_BYTES)
    assert (await exchange(address, head + b"x" * (3 * HEAD_BYTES))).startswith(b"HTTP/1.1 401 ")


async def test_the_rest_of_an_unread_body_is_not_awaited(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_deadline, "REST_SECONDS", 0.2)
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    assert (await exchange(address, head, b"x" * 1000)).startswith(b"HTTP/1.1 401 ")


async def test_one_connection_serves_several_requests(address: Address) -> None:
    request = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    answers = await exchange(address, request, request, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answers.count(b"HTTP/1.1 401 ") == 3


UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
CLOSING = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
WITH_UPGRADE = {
    "length": (b"Content-Length: %d\r\n\r\n" % len(CLOSING), CLOSING),
    "chunked": (b"Transfer-Encoding: chunked\r\n\r\n", b"%x\r\n%s\r\n0\r\n\r\n" % (len(CLOSING), CLOSING)),
}


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("kind", WITH_UPGRADE)
async def test_a_request_to_upgrade_to_http_2_is_answered_with_its_body(
    address: Address, kind: str, apart: bool
) -> None:
    end, body = WITH_UPGRADE[kind]
    head = b"POST /read HTTP/1.1\r\nHost: x\r\n" + UPGRADE + end
    reader, writer = await asyncio.open_connection(*address)
    for piece in (head[:50], head[50:], body) if apart else (head + body,):
        writer.write(piece)
        await asyncio.sleep(0.05)
    writer.write(CLOSING)
    answers = await reader.read()
    writer.close()
    assert answers.count(b"HTTP/1.1 401 ") == 2  # what the body holds is no request
    assert b"x-size: %d\r\n" % len(CLOSING) in answers
    assert b"x-head: host connection http2-settings " in answers


@pytest.mark.parametrize(
    ("connection", "size"), [(b"Upgrade\r\nConnection: keep-alive", 9), (b"close, Upgrade", 9), (b"Upgrade", 100_000)]
)
async def test_a_request_to_upgrade_is_read_as_one_without(address: Address, connection: bytes, size: int) -> None:
    head = b"POST /read HTTP/1.1\r\nHost: x\r\nConnection: %s\r\nContent-Length: %d\r\n" % (connection, size)
    for upgrade in (b"", b"Upgrade: h2c\r\n"):
        answers = await exchange(address, head + upgrade + b"\r\n" + b"x" * size + CLOSING)
        assert answers.count(b"HTTP/1.1 401 ") == answers.count(b"HTTP/1.1 ") == (1 if b"close" in connection else 2)
        assert b"x-size: %d\r\n" % size in answers


async def test_many_requests_to_upgrade_in_one_read_are_all_answered(address: Address) -> None:
    request = b"GET / HTTP/1.1\r\nHost: x\r\n" + UPGRADE + b"\r\n"
    answers = await exchange(address, request * 500 + CLOSING)
    assert answers.count(b"HTTP/1.1 401 ") == 501


ENDLESS = {
    "many trailers": (b"0\r\n", b"X-T: %s\r\n" % (b"y" * 1000)),
    "one trailer": (b"0\r\nX-T: ", b"y" * 1000),
    "a chunk extension": (b"5;a=", b"y" * 1000),
}


@pytest.mark.parametrize("path", [b"/", b"/read"])
@pytest.mark.parametrize("kind", ENDLESS)
async def test_trailers_and_chunk_extensions_are_limited_like_the_head(
    address: Address, path: bytes, kind: str
) -> None:
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n" % path
    begin, more = ENDLESS[kind]
    reader, writer = await asyncio.open_connection(*address)
    writer.write(head + begin + more * (20 * HEAD_BYTES // len(more)))
    assert await wait_until_closed(reader)
    writer.close()


async def test_trailers_are_not_headers(address: Address) -> None:
    head = b"POST /read HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = await exchange(address, head, b"3\r\nabc\r\n0\r\nAuthorization: Bearer x\r\n\r\n")
    assert b"x-head: host connection transfer-encoding\r\n" in answer


async def test_the_connections_that_have_waited_longest_are_closed_first(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_deadline, "MAX_WAITING", 3)
    idle = [await asyncio.open_connection(*address) for _ in range(4)]
    assert await wait_until_closed(idle[0][0])
    request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert (await exchange(address, request)).startswith(b"HTTP/1.1 401 ")
    idle[3][1].write(request)
    assert (await idle[3][0].read()).startswith(b"HTTP/1.1 401 ")
    for _, writer in idle:
        writer.close()


async def test_a_connection_being_answered_does_not_count_as_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_deadline, "MAX_WAITING", 2)
    requested, released = asyncio.Event(), asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        requested.set()
        await released.wait()
        await answer_immediately(scope, receive, send)

    async with raw_server(slow) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await requested.wait()
        idle = [await asyncio.open_connection(*address) for _ in range(3)]
        assert await wait_until_closed(idle[0][0])
        released.set()
        assert (await reader.read()).startswith(b"HTTP/1.1 401 ")
        for _, opened in [*idle, (reader, writer)]:
            opened.close()


@pytest.mark.parametrize("pieces", [500, 1], ids=["under way", "complete"])
async def test_a_client_that_reads_nothing_is_cut_off(pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_deadline, "UNREAD_SECONDS", 0.2)
    sent, piece = asyncio.Event(), b"x" * 10_000_000

    async def send_large_answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for left in reversed(range(pieces)):
            await send({"type": "http.response.body", "body": piece, "more_body": left > 0})
        sent.set()

    async with raw_server(send_large_answer) as address:
        reader, writer = await asyncio.open_connection(*address, limit=1)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await asyncio.wait_for(sent.wait(), TEST_SECONDS)
        assert await is_cut_off(reader)
        writer.close()


async def is_cut_off(reader: asyncio.StreamReader) -> bool:
    """Start reading late; return True if the server has cut the connection before the answer was complete."""
    await asyncio.sleep(0.5)
    try:
        async with asyncio.timeout(TEST_SECONDS):
            return await read_to_end(reader) < 10_000_000
    except ConnectionError:
        return True


class UnreadTransport(asyncio.Transport):
    """A transport whose write buffer is never empty."""

    def __init__(self, size: int = 1) -> None:
        super().__init__()
        self.is_cut = False
        self.size = size

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def get_write_buffer_size(self) -> int:
        return self.size

    def is_closing(self) -> bool:
        return self.is_cut

    def resume_reading(self) -> None: ...

    def abort(self) -> None:
        self.is_cut = True


def connected(application: Any, transport: UnreadTransport) -> DeadlineProtocol:
    config = Config(application, lifespan="off", log_config=None)
    config.load()
    protocol = DeadlineProtocol(config, ServerState(), {})
    protocol.connection_made(transport)
    return protocol


async def test_the_largest_unread_answer_is_cut_off_to_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_deadline, "MAX_UNREAD_BYTES", 1000)
    transports = [UnreadTransport(size) for size in (200, 500, 300, 100, 600)]
    protocols = [connected(answer_immediately, transport) for transport in transports]
    for protocol in protocols[:3]:
        protocol.pause_writing()
    assert not any(transport.is_cut for transport in transports)
    protocols[3].pause_writing()
    assert [transport.is_cut for transport in transports] == [False, True, False, False, False]
    protocols[2].resume_writing()  # its client has read it
    protocols[4].pause_writing()
    assert [transport.is_cut for transport in transports] == [False, True, False, False, False]
    for protocol in protocols:
        protocol.connection_lost(ConnectionError())
    assert not http_deadline._unread


@pytest.mark.parametrize(
    ("sizes", "limit", "piece"), [((400, 300, 300), 800, 1), ((60, 40, 40), 105, 60)], ids=["under way", "complete"]
)
async def test_what_is_still_to_be_sent_counts_as_unread(
    sizes: tuple[int, ...], limit: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes are in megabytes."""
    monkeypatch.setattr(http_deadline, "MAX_UNREAD_BYTES", limit * 1_000_000)

    async def send_in_pieces(scope: Any, receive: Any, send: Any) -> None:
        left = int(scope["path"][1:])
        headers = [(b"content-length", b"%d" % (left * 1_000_000))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while left:
            size = min(left, piece)
            left -= size
            await send({"type": "http.response.body", "body": b"x" * (size * 1_000_000), "more_body": left > 0})

    async with raw_server(send_in_pieces) as address:
        opened = [await asyncio.open_connection(*address, limit=1) for _ in sizes]
        for (_, writer), size in zip(opened, sizes, strict=True):
            # The next request, which waits for the first one to be answered, changes nothing.
            writer.write(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\nGET /1 HTTP/1.1\r\nHost: x\r\n\r\n" % size)
        assert await wait_until_closed(opened[0][0])
        assert len(http_deadline._unread) == 2
        for _, writer in opened:
            writer.transport.abort()
        await eventually_async(lambda: not http_deadline._unread, within=TEST_SECONDS)


@pytest.mark.parametrize("sends_another", [True, False])
async def test_a_client_that_sends_another_request_is_not_cut_off(
    sends_another: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_deadline, "UNREAD_SECONDS", 0.3)
    released = asyncio.Event()

    async def answer_first_request(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/later":
            await released.wait()
        await answer_immediately(scope, receive, send)

    transport = UnreadTransport()
    protocol = connected(answer_first_request, transport)
    protocol.data_received(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await asyncio.sleep(0.1)
    if sends_another:
        protocol.data_received(b"GET /later HTTP/1.1\r\nHost: x\r\n\r\n")
    await asyncio.sleep(0.4)
    assert transport.is_cut is not sends_another
    released.set()
    protocol.connection_lost(ConnectionError())
    await asyncio.gather(*protocol.tasks)
