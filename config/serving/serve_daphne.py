"""Running Daphne in this process. Importing this module installs Twisted's reactor."""

import asyncio
import socket
from typing import Any

import daphne.http_protocol
import daphne.server
from daphne.http_protocol import WebRequest
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from django.conf import settings
from twisted.internet.defer import Deferred

from config.asgi import application
from config.serving.bodies import DRAINED
from config.serving.socket_protocol import ClientBytes
from gateway.runs.active import shut_down
from gateway.upstream import disconnect

_GRACEFUL_SECONDS = 1.0


class _Request(WebRequest):  # type: ignore[misc]  # daphne has no types
    """A request whose connection is aborted once its body exceeds what `bodies` discards. Daphne would read all of it,
    into a file."""

    _body_bytes = 0

    def handleContentChunk(self, data: bytes) -> None:
        self._body_bytes += len(data)
        if self._body_bytes > settings.DAYBOOK_MAX_BODY * DRAINED:
            self.channel.forceAbortClient()
        else:
            super().handleContentChunk(data)


class _Socket(WebSocketProtocol):  # type: ignore[misc]
    """A websocket that is closed if its client sends more than CLIENT_BYTES in CLIENT_SECONDS."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._sent = ClientBytes()

    def dataReceived(self, data: bytes) -> None:
        if self._sent.exceeded(len(data)):
            self.transport.abortConnection()
        else:
            super().dataReceived(data)


# The classes that Daphne's factories instantiate.
daphne.http_protocol.WebRequest = _Request
WebSocketFactory.protocol = _Socket


class _Server(daphne.server.Server):  # type: ignore[misc]
    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        """Ignore the root path, which Daphne takes from a header that anybody may send: path checks would then see a
        different path than the views."""
        return super().create_application(protocol, scope | {"root_path": ""})

    def kill_all_applications(self) -> "Deferred[Any]":
        """Before the reactor stops, stop open runs, let their streams report it, and then cancel all requests."""
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
        await disconnect()


def serve(listener: socket.socket) -> None:
    """Serve until a stop signal. There is no access log, since runs are recorded as rows."""
    _Server(application, endpoints=[f"fd:fileno={listener.fileno()}"], server_name="").run()
