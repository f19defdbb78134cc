"""Running uvicorn in this process."""

import asyncio
import socket

from uvicorn import Config, Server

from config.asgi import application
from config.serving.http_deadline import DeadlineProtocol, bound_waiting
from config.serving.socket_protocol import CLIENT_BYTES, ListenerProtocol
from gateway.runs.active import shut_down

_GRACEFUL_SECONDS = 2
_ANSWERING_SECONDS = 1.0  # in which requests that are cut off say so
# Longer than clients and proxies keep idle connections (httpx 5 s, aiohttp 15, nginx 60), since a request that is sent
# while the server closes the connection is lost.
_KEEP_ALIVE_SECONDS = 75


class _Server(Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()  # accept no new connections while open runs are stopped
        await shut_down()
        await super().shutdown(sockets)
        if cut_off := self.server_state.tasks:  # the process ends by the signal as soon as this returns
            await asyncio.wait(cut_off, timeout=_ANSWERING_SECONDS)


def serve(listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM, after which open runs are stopped and other requests get two seconds.

    There is no access log, since runs are recorded as rows. The lifespan protocol is off, since daphne does not support
    it. Django handles proxy headers."""
    bound_waiting()
    config = Config(
        application,
        loop="uvloop",
        http=DeadlineProtocol,
        ws=ListenerProtocol,
        ws_max_size=CLIENT_BYTES,  # also limits decompressed messages
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACEFUL_SECONDS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
    )
    _Server(config).run(sockets=[listener])
