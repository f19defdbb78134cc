"""Serve an application through uvicorn's protocols with our limits, on a real socket in this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from uvicorn import Config
from uvicorn.server import ServerState

from config.serving.http_deadline import DeadlineProtocol

TEST_SECONDS = 20  # timeout of a test, far above the limits that tests set
Address = tuple[str, int]


@asynccontextmanager
async def raw_server(application: Any, **options: Any) -> AsyncIterator[Address]:
    """Serve an ASGI application with these uvicorn options, and yield its address."""
    config = Config(application, http=DeadlineProtocol, lifespan="off", log_config=None, **options)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: DeadlineProtocol(config, state, {}), "127.0.0.1", 0)
    yield server.sockets[0].getsockname()
    server.close()


async def wait_until_closed(reader: asyncio.StreamReader) -> bool:
    """Return True once the server has closed the connection, or False if it does not."""
    try:
        async with asyncio.timeout(TEST_SECONDS):
            await read_to_end(reader)
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


async def read_to_end(reader: asyncio.StreamReader) -> int:
    """Read until the server has closed the connection, and return the number of bytes.

    `reader.read()` would take as many steps as the reader's limit fits into them: a million for a megabyte and a limit
    of one byte, which the readers have that are meant to be slow."""
    size = 0
    while block := await reader.read(1_000_000):
        size += len(block)
    return size
