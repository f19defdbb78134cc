"""Daphne, in this process. Importing this installs Twisted's reactor."""

import socket

from daphne.server import Server

from config.asgi import application


def serve(listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM; open streams are cut at once. No access log: runs are rows."""
    Server(application, endpoints=[f"fd:fileno={listener.fileno()}"], server_name="").run()
