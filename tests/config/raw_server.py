"""An application behind uvicorn's protocols with our limits, on a real socket of this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from uvicorn import Config
from uvicorn.server import ServerState

from config.serving.http_deadline import DeadlineProtocol

PATIENCE = 20  # seconds of a test, far above the limits it sets
Address = tuple[str, int]


@asynccontextmanager
async def raw_server(application: Any, **options: Any) -> AsyncIterator[Address]:
    """Serve an ASGI application with these options of uvicorn, and give its address."""
    config = Config(application, http=DeadlineProtocol, lifespan="off", log_config=None, **options)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: DeadlineProtocol(config, state, {}), "127.0.0.1", 0)
    yield server.sockets[0].getsockname()
    server.close()


async def closes(reader: asyncio.StreamReader) -> bool:
    """Return True as soon as the server has closed or cut the connection, False if it does not."""
    try:
        async with asyncio.timeout(PATIENCE):
            await reader.read()
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True
