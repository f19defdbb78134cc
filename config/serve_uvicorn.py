"""Uvicorn, in this process."""

import socket

from uvicorn import Config, Server

from config.asgi import application
from config.http_deadline import DeadlineProtocol

_GRACEFUL_SECONDS = 2


def serve(listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM; open streams get two seconds. No access log: runs are recorded as rows.

    No lifespan: daphne has none, so nothing may rest on it. Proxy headers are Django's business."""
    config = Config(
        application,
        loop="uvloop",
        http=DeadlineProtocol,
        ws="websockets-sansio",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACEFUL_SECONDS,
    )
    Server(config).run(sockets=[listener])
