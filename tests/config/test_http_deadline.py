"""Slow and greedy heads of requests: uvicorn's protocol with our limits, on a real socket."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from uvicorn import Config
from uvicorn.server import ServerState

from config.serving import http_deadline
from config.serving.http_deadline import HEAD_BYTES, DeadlineProtocol
from tests.config.raw_server import PATIENCE, Address, closes, raw_server


async def answer_at_once(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/read":
        while (await receive()).get("more_body"):
            pass
    # What a client wrote into the head, for the test of what follows a body.
    names = b" ".join(name for name, _ in scope["headers"])
    headers = [(b"content-length", b"2"), (b"x-head", names)]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b"no"})


@pytest_asyncio.fixture
async def address() -> AsyncIterator[Address]:
    async with raw_server(answer_at_once) as found:
        yield found


async def told(address: Address, *pieces: bytes) -> bytes:
    """What comes until the server closes the connection; the client never closes it."""
    reader, writer = await asyncio.open_connection(*address)
    for piece in pieces:
        writer.write(piece)
    try:
        async with asyncio.timeout(PATIENCE):
            return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize("beginning", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow:"])
async def test_a_head_that_does_not_come_closes_the_connection(
    address: Address, beginning: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_deadline, "HEAD_SECONDS", 0.2)
    assert await told(address, beginning) == b""


@pytest.mark.parametrize("end", [b"", b"\r\n"], ids=["goes on", "is complete"])
async def test_a_head_that_is_too_large_is_refused(address: Address, end: bytes) -> None:
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 1000) for number in range(HEAD_BYTES // 1000 + 2))
    answer = await told(address, b"GET / HTTP/1.1\r\nHost: x\r\n" + lines + end)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"head of this request is too large" in answer


async def test_a_body_that_comes_with_its_head_is_no_part_of_it(address: Address) -> None:
    head = b"POST /read HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (3 * HEAD_BYTES)
    assert (await told(address, head + b"x" * (3 * HEAD_BYTES))).startswith(b"HTTP/1.1 401 ")


async def test_the_rest_of_a_body_nobody_reads_is_not_waited_for(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_deadline, "REST_SECONDS", 0.2)
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    assert (await told(address, head, b"x" * 1000)).startswith(b"HTTP/1.1 401 ")


async def test_one_connection_takes_several_requests(address: Address) -> None:
    request = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    found = await told(address, request, request, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert found.count(b"HTTP/1.1 401 ") == 3


ENDLESS = {
    "many trailers": (b"0\r\n", b"X-T: %s\r\n" % (b"y" * 1000)),
    "one trailer": (b"0\r\nX-T: ", b"y" * 1000),
    "an extension of a chunk": (b"5;a=", b"y" * 1000),
}


@pytest.mark.parametrize("path", [b"/", b"/read"])
@pytest.mark.parametrize("ending", ENDLESS)
async def test_what_surrounds_a_body_is_as_bounded_as_a_head(address: Address, path: bytes, ending: str) -> None:
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n" % path
    begin, more = ENDLESS[ending]
    reader, writer = await asyncio.open_connection(*address)
    writer.write(head + begin + more * (20 * HEAD_BYTES // len(more)))
    assert await closes(reader)
    writer.close()


async def test_what_follows_a_body_is_no_header(address: Address) -> None:
    head = b"POST /read HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = await told(address, head, b"3\r\nabc\r\n0\r\nAuthorization: Bearer x\r\n\r\n")
    assert b"x-head: host connection transfer-encoding\r\n" in answer


async def test_connections_that_wait_make_room_the_longest_first(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_deadline, "MAX_WAITING", 3)
    idle = [await asyncio.open_connection(*address) for _ in range(4)]
    assert await closes(idle[0][0])
    request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert (await told(address, request)).startswith(b"HTTP/1.1 401 ")
    idle[3][1].write(request)
    assert (await idle[3][0].read()).startswith(b"HTTP/1.1 401 ")
    for _, writer in idle:
        writer.close()


async def test_one_that_is_being_answered_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_deadline, "MAX_WAITING", 2)
    asked, may = asyncio.Event(), asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        asked.set()
        await may.wait()
        await answer_at_once(scope, receive, send)

    async with raw_server(slow) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await asked.wait()
        idle = [await asyncio.open_connection(*address) for _ in range(3)]
        assert await closes(idle[0][0])
        may.set()
        assert (await reader.read()).startswith(b"HTTP/1.1 401 ")
        for _, opened in [*idle, (reader, writer)]:
            opened.close()


@pytest.mark.parametrize("pieces", [500, 1], ids=["under way", "complete"])
async def test_a_client_that_reads_nothing_is_given_up(pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_deadline, "UNREAD_SECONDS", 0.2)
    over, size = asyncio.Event(), 10_000_000

    async def much(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for left in reversed(range(pieces)):
            await send({"type": "http.response.body", "body": b"x" * size, "more_body": left > 0})
        over.set()

    async with raw_server(much) as address:
        reader, writer = await asyncio.open_connection(*address, limit=1)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await asyncio.wait_for(over.wait(), PATIENCE)
        assert await eventually_cut(reader)
        writer.close()


async def eventually_cut(reader: asyncio.StreamReader) -> bool:
    """Read only now: the server has cut the connection before the answer was complete."""
    await asyncio.sleep(0.5)
    try:
        async with asyncio.timeout(PATIENCE):
            return len(await reader.read()) < 10_000_000
    except ConnectionError:
        return True


class Unread(asyncio.Transport):
    """A connection on which some of what was written is not sent yet."""

    def __init__(self) -> None:
        super().__init__()
        self.is_cut = False

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 1

    def is_closing(self) -> bool:
        return self.is_cut

    def resume_reading(self) -> None: ...

    def abort(self) -> None:
        self.is_cut = True


@pytest.mark.parametrize("asks_again", [True, False])
async def test_who_asks_again_has_read_what_came_before(asks_again: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_deadline, "UNREAD_SECONDS", 0.3)
    may = asyncio.Event()

    async def first_at_once(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/later":
            await may.wait()
        await answer_at_once(scope, receive, send)

    config = Config(first_at_once, lifespan="off", log_config=None)
    config.load()
    protocol, transport = DeadlineProtocol(config, ServerState(), {}), Unread()
    protocol.connection_made(transport)
    protocol.data_received(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await asyncio.sleep(0.1)
    if asks_again:
        protocol.data_received(b"GET /later HTTP/1.1\r\nHost: x\r\n\r\n")
    await asyncio.sleep(0.4)
    assert transport.is_cut is not asks_again
    may.set()
    protocol.connection_lost(ConnectionError())
    await asyncio.gather(*protocol.tasks)
