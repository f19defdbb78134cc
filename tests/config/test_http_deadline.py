"""Slow and greedy heads of requests: uvicorn's protocol with our limits, on a real socket."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from uvicorn import Config
from uvicorn.server import ServerState

from config import http_deadline
from config.http_deadline import HEAD_BYTES, DeadlineProtocol

PATIENCE = 20  # of the test, far above the limits it sets


async def answer_at_once(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"no"})


@pytest_asyncio.fixture
async def address() -> AsyncIterator[tuple[str, int]]:
    config = Config(answer_at_once, http=DeadlineProtocol, lifespan="off", log_config=None)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: DeadlineProtocol(config, state, {}), "127.0.0.1", 0)
    yield server.sockets[0].getsockname()
    server.close()


async def told(address: tuple[str, int], *pieces: bytes) -> bytes:
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
    address: tuple[str, int], beginning: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_deadline, "HEAD_SECONDS", 0.2)
    assert await told(address, beginning) == b""


async def test_a_head_that_is_too_large_is_refused(address: tuple[str, int]) -> None:
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 1000) for number in range(HEAD_BYTES // 1000 + 2))
    assert (await told(address, b"GET / HTTP/1.1\r\nHost: x\r\n", lines)).startswith(b"HTTP/1.1 400 ")


async def test_the_rest_of_a_body_nobody_reads_is_not_waited_for(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_deadline, "REST_SECONDS", 0.2)
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    assert (await told(address, head, b"x" * 1000)).startswith(b"HTTP/1.1 401 ")


async def test_one_connection_takes_several_requests(address: tuple[str, int]) -> None:
    request = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    found = await told(address, request, request, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert found.count(b"HTTP/1.1 401 ") == 3
