"""`manage.py up`: everything a new user needs, in one process tree."""

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from socket import socket
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connections

from config.bootstrap import Prepared, prepare
from config.environment import ConfigurationError
from config.health import model_kind
from config.prompt_checks import MEANWHILE
from config.serve import address, listening_socket, reachable
from config.supervisor import Supervisor, readiness
from prompts.files import prompt_problems

NO_ADMINISTRATOR = (
    "There is no active administrator. Make one with `python manage.py createsuperuser`, or start with"
    " DAYBOOK_ADMIN_USER set to a name that no account has."
)
_MOST_WORKERS = 64


class Command(BaseCommand):
    help = "Migrate, bootstrap, and run the web server and the worker until Ctrl-C or SIGTERM."
    requires_system_checks: list[str] = []  # left to `doctor`: a start should be quick

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=settings.DAYBOOK_HOST, help="address to listen on (DAYBOOK_HOST)")
        parser.add_argument(
            "--port", type=int, default=settings.DAYBOOK_PORT, help="port (DAYBOOK_PORT); 0: a free one"
        )
        parser.add_argument(
            "--workers",
            type=int,
            default=settings.Q_CLUSTER["workers"],
            help="worker processes (DAYBOOK_WORKERS)",
        )

    def handle(self, *args: Any, host: str, port: int, workers: int, **options: Any) -> None:
        if not 1 <= workers <= _MOST_WORKERS:
            raise ConfigurationError(f"--workers is {workers}; allowed is 1 to {_MOST_WORKERS}.")
        if not 0 <= port <= 65535:
            raise ConfigurationError(f"--port is {port}; allowed is 0 to 65535.")
        with listening_socket(host, port) as listener:
            try:
                self._say_prepared(prepare())
            except KeyboardInterrupt:
                sys.exit(130)
            connections.close_all()
            code = self._supervise(listener, host=host, workers=workers)
        sys.exit(code)

    def _supervise(self, listener: socket, *, host: str, workers: int) -> int:
        where, to = reachable(listener), address(listener)
        env = {
            **os.environ,
            "DAYBOOK_HOST": host,
            "DAYBOOK_PORT": str(where[1]),
            "DAYBOOK_WORKERS": str(workers),
        }
        manage = [sys.executable, str(Path(settings.BASE_DIR) / "manage.py")]
        with Supervisor(tell=self._complain) as supervisor:
            fd, parent = str(listener.fileno()), str(os.getpid())
            web = [*manage, "web", "--listener", fd, "--parent", parent]
            supervisor.start("web server", web, env=env, pass_fds=[listener.fileno()])
            supervisor.start("worker", [*manage, "worker", "--parent", parent], env=env)
            listener.close()  # the web server holds it now; nobody else should keep the port
            return supervisor.watch(probe=lambda: readiness(*where), on_ready=lambda: self._say_ready(to))

    def _say_prepared(self, done: Prepared) -> None:
        if done.backup:
            self._say(f"Copied the database to {done.backup} before migrating it.")
        if done.admin_user:
            self._say(f"Created the first administrator: {done.admin_user}")
        if done.no_administrator:
            self._complain(NO_ADMINISTRATOR)
        if done.admin_password:
            self._say(f"  password: {done.admin_password}")
        if done.api_key:
            self._say(f"Created the first API key: {done.api_key}")
        if done.admin_password or done.api_key:
            self._say("Keep this: it is not shown again.")
        if done.agents:
            self._say(f"Applied agents: {', '.join(done.agents)}")
        for problem in prompt_problems():
            self._complain(f"{problem} {MEANWHILE}")

    def _say_ready(self, to: str) -> None:
        if model_kind() == "demo":
            self._say("No upstream is configured (OPENAI_BASE_URL, OPENAI_API_KEY): the demo model answers.")
        self._say(f"Daybook is ready at {to}")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()  # through a pipe too, at once

    def _complain(self, line: str) -> None:
        self.stderr.write(f"daybook: {line}")
