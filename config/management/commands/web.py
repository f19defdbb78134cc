"""`manage.py web`: the web server alone, for `up` and for installations that run the processes themselves."""

import socket
from argparse import SUPPRESS, ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from config.processes.database_wait import DatabaseWait
from config.processes.forking import die_with_parent, name_process
from config.serving.serve import allow_host, listening_socket, serve
from config.serving.warm import warm_up
from memories.database.access import disconnect


class Command(BaseCommand):
    help = "Run the ASGI server named by DAYBOOK_SERVER until Ctrl-C or SIGTERM."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=settings.DAYBOOK_HOST, help="address to listen on (DAYBOOK_HOST)")
        parser.add_argument("--port", type=int, default=settings.DAYBOOK_PORT, help="port to listen on (DAYBOOK_PORT)")
        parser.add_argument("--listener", type=int, help=SUPPRESS)  # a file descriptor inherited from `up`
        parser.add_argument("--parent", type=int, help=SUPPRESS)

    def handle(
        self, *args: Any, host: str, port: int, listener: int | None, parent: int | None, **options: Any
    ) -> None:
        if parent is not None:
            die_with_parent(parent)
        name_process("daybook-web")
        warm_up()
        allow_host(host)
        with listening_socket(host, port) if listener is None else socket.socket(fileno=listener) as listening:
            if listener is None:  # otherwise `up` has prepared the database
                DatabaseWait("The web server").check()
                disconnect()
            serve(settings.DAYBOOK_SERVER, listening)
