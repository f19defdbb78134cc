"""Daphne, in this process. Importing this installs Twisted's reactor."""

import asyncio
import socket
from typing import Any

from daphne.http_protocol import WebRequest
from daphne.server import Server
from twisted.internet.defer import Deferred

from config.asgi import application
from gateway.runs.held import shut_down

_GRACEFUL_SECONDS = 1.0


class _Server(Server):  # type: ignore[misc]  # daphne has no types
    def kill_all_applications(self) -> "Deferred[Any]":
        """Before the reactor stops: open runs end as stopped, their streams report it, and all other requests are
        cut."""
        ended = Deferred.fromFuture(asyncio.ensure_future(self._end_runs()))
        ended.addBoth(lambda _: super(_Server, self).kill_all_applications())
        return ended

    async def _end_runs(self) -> None:
        await shut_down()
        requests = [
            details["application_instance"]
            for protocol, details in self.connections.items()
            if isinstance(protocol, WebRequest) and "application_instance" in details
        ]
        if requests:
            await asyncio.wait(requests, timeout=_GRACEFUL_SECONDS)


def serve(listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM. No access log: runs are rows."""
    _Server(application, endpoints=[f"fd:fileno={listener.fileno()}"], server_name="").run()
