"""Daphne, in this process. Importing this installs Twisted's reactor."""

import asyncio
import socket
from typing import Any

from daphne.server import Server
from twisted.internet.defer import Deferred

from config.asgi import application
from gateway.runs.held import shut_down


class _Server(Server):  # type: ignore[misc]  # daphne has no types
    def kill_all_applications(self) -> "Deferred[Any]":
        """Before the reactor stops: open runs end as stopped and say so to their clients; then all else is cut."""
        ended = Deferred.fromFuture(asyncio.ensure_future(shut_down()))
        ended.addBoth(lambda _: super(_Server, self).kill_all_applications())
        return ended


def serve(listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM. No access log: runs are rows."""
    _Server(application, endpoints=[f"fd:fileno={listener.fileno()}"], server_name="").run()
