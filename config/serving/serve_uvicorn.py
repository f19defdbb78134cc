"""Uvicorn, in this process."""

import socket

from uvicorn import Config, Server

from config.asgi import application
from config.serving.http_deadline import DeadlineProtocol, bound_waiting
from config.serving.socket_protocol import CLIENT_BYTES, ListenerProtocol
from gateway.runs.active import shut_down

_GRACEFUL_SECONDS = 2
# Longer than clients and proxies keep theirs (httpx 5 s, aiohttp 15, nginx 60): who closes an idle connection just when
# the other side sends a request on it loses that request.
_KEEP_ALIVE_SECONDS = 75


class _Server(Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()  # no new connections while open runs are closed
        await shut_down()
        await super().shutdown(sockets)


def serve(listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM: then open runs end as stopped, and other requests get two seconds. There is no
    access log, since runs are recorded as rows.

    There is no lifespan, since daphne has none and nothing may depend on it. Django handles proxy headers."""
    bound_waiting()
    config = Config(
        application,
        loop="uvloop",
        http=DeadlineProtocol,
        ws=ListenerProtocol,
        ws_max_size=CLIENT_BYTES,  # also of a message that is unpacked
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACEFUL_SECONDS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
    )
    _Server(config).run(sockets=[listener])
