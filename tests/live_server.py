"""The real application on a free port, in a thread of the test process and on the test database."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn
from channels.layers import get_channel_layer
from django.db import connections

from config.asgi import application
from gateway.agents.file import bootstrap_agents
from memories.messaging.datagrams import DatagramChannelLayer
from tests.shutdown import close_lanes, stop_all_turns
from tests.waiting import eventually


@dataclass(slots=True)
class LiveServer:
    """The real application on a free port, and the loop it runs in."""

    server: uvicorn.Server
    listener: socket.socket | None
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    @property
    def address(self) -> str:
        """The server's base URL."""
        port = self.server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    def run(self) -> None:
        """Serve until `should_exit` is set; the thread's target."""
        # Like asyncio.run, wait for the tasks that uvicorn only cancelled before the loop is closed.
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self.server.serve(sockets=self.listener and [self.listener.dup()]))

    def do(self, coroutine: Any) -> Any:
        """Run a coroutine in the server's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout=10)


@contextmanager
def serving(
    monkeypatch: pytest.MonkeyPatch, settings: Any, listener: socket.socket | None = None
) -> Iterator[LiveServer]:
    """Serve the application with the packaged agents and the demo model, on a free port or on `listener`, which stays
    open. The test needs real transactions."""
    # The test may have a loop in this thread, and then Django would refuse the test's own use of the ORM.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    # Each request's thread closes its connection, or a server database could not be dropped at the end.
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 0)
    settings.DB_THREADS = 1
    settings.DAYBOOK_UPSTREAMS = {}
    bootstrap_agents()
    config = uvicorn.Config(
        application, host="127.0.0.1", port=0, lifespan="off", log_level="warning", timeout_graceful_shutdown=1
    )
    live_server = LiveServer(uvicorn.Server(config), listener)
    thread = threading.Thread(target=live_server.run, name="live-server")
    thread.start()
    try:
        eventually(lambda: live_server.server.started, within=20, description="the live server's start")
        yield live_server
        live_server.do(stop_all_turns())
        if isinstance(layer := get_channel_layer(), DatagramChannelLayer):
            live_server.do(layer.close())
    finally:
        live_server.server.should_exit = True
        thread.join(timeout=20)
        close_lanes()
