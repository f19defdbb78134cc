"""What a websocket client may send: uvicorn's protocol with our limits, on a real socket."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from websockets.frames import Frame, Opcode

from config.serving.socket_protocol import CLIENT_BYTES, ListenerProtocol
from gateway.routing import websocket_application
from tests.config.raw_server import TEST_SECONDS, Address, raw_server, wait_until_closed

OPENING = (
    b"Host: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


async def listen(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        pass


@pytest_asyncio.fixture
async def address() -> AsyncIterator[Address]:
    async with raw_server(listen, ws=ListenerProtocol) as server_address:
        yield server_address


def frame(opcode: Opcode, data: bytes, *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=True)


async def open_socket(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"GET /ws/ HTTP/1.1\r\n" + OPENING + b"\r\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
    return reader, writer


FLOODS = {
    "pings": frame(Opcode.PING, b"x" * 125),
    "messages": frame(Opcode.TEXT, b"x"),
    "fragments of an endless message": frame(Opcode.CONT, b"", fin=False),
}


@pytest.mark.parametrize("kind", FLOODS)
async def test_a_socket_that_is_flooded_is_closed(address: Address, kind: str) -> None:
    reader, writer = await open_socket(address)
    flood = FLOODS[kind] * (2 * CLIENT_BYTES // len(FLOODS[kind]))
    writer.write((frame(Opcode.TEXT, b"x", fin=False) if "fragments" in kind else b"") + flood)
    assert await wait_until_closed(reader)
    writer.close()


async def test_a_client_is_told_why_its_socket_is_closed(address: Address) -> None:
    reader, writer = await open_socket(address)
    writer.write(frame(Opcode.BINARY, b"x" * CLIENT_BYTES))
    async with asyncio.timeout(TEST_SECONDS):
        assert (await reader.read())[2:] == b"\x03\xf0this socket only sends"  # 1008
    writer.close()


async def test_pongs_pings_and_short_messages_are_accepted(address: Address) -> None:
    reader, writer = await open_socket(address)
    writer.write(frame(Opcode.TEXT, b"are you there?") * 20 + frame(Opcode.PONG, b"") + frame(Opcode.PING, b"here"))
    async with asyncio.timeout(TEST_SECONDS):
        assert await reader.readexactly(6) == b"\x8a\x04here"
    writer.close()


HEADS = {
    "a long address": b"GET /ws/?after=%s HTTP/1.1\r\n" % (b"1" * 9000) + OPENING,
    "a long header": b"GET /ws/ HTTP/1.1\r\n" + OPENING + b"X: %s\r\n" % (b"1" * 9000),
    "many headers": b"GET /ws/ HTTP/1.1\r\n" + OPENING + b"X: 1\r\n" * 200,
}


@pytest.mark.parametrize("kind", HEADS)
async def test_an_invalid_opening_handshake_is_answered_and_closed(address: Address, kind: str) -> None:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(HEADS[kind] + b"\r\n")
    async with asyncio.timeout(TEST_SECONDS):
        assert (await reader.read()).startswith(b"HTTP/1.1 4")
    writer.close()


async def test_a_socket_for_responses_is_answered_with_426(caplog: pytest.LogCaptureFixture) -> None:
    """Codex then uses HTTP at once. It repeats any other refusal for seven seconds, in each turn."""
    async with raw_server(websocket_application, ws=ListenerProtocol) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"GET /v1/responses HTTP/1.1\r\n" + OPENING.replace(b"Host: x", b"Host: localhost") + b"\r\n")
        async with asyncio.timeout(TEST_SECONDS):
            assert (await reader.read()).startswith(b"HTTP/1.1 426 ")
        writer.close()
    assert "handshake" not in caplog.text
