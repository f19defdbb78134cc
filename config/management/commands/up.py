"""`manage.py up`: prepare the database and run all of Daybook in one process tree."""

import json
import os
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from socket import socket
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from config.checks import FALLBACK_HINT
from config.environment import ConfigurationError
from config.health import model_kind
from config.processes.bootstrap import Prepared, prepare
from config.processes.forking import STOPS, fork, may_fork
from config.processes.supervisor import start
from config.processes.worker import run_worker
from config.serving import collector
from config.serving.serve import address, allow_host, listening_socket, preload, reachable, serve
from config.serving.warm import first_start_in_threads, warm_up
from memories.database.access import disconnect
from prompts.files import prompt_problems

NO_ADMINISTRATOR = (
    "There is no active administrator. Create one with `python manage.py createsuperuser`, or set DAYBOOK_ADMIN_USER"
    " to a name that no account has and start again."
)


class Command(BaseCommand):
    help = "Migrate, bootstrap, and run the web server and the worker until Ctrl-C or SIGTERM."
    requires_system_checks: list[str] = []  # left to `doctor`, so that starting is quick

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=settings.DAYBOOK_HOST, help="address to listen on (DAYBOOK_HOST)")
        parser.add_argument(
            "--port", type=int, default=settings.DAYBOOK_PORT, help="port (DAYBOOK_PORT); 0: a free one"
        )
        parser.add_argument(
            "--workers", type=int, default=settings.Q_CLUSTER["workers"], help="worker processes (DAYBOOK_WORKERS)"
        )
        parser.add_argument("--web", type=int, default=1, metavar="N", help="web processes, on the same address")

    def handle(self, *args: Any, host: str, port: int, workers: int, web: int, **options: Any) -> None:
        for name, value, low, high in (("workers", workers, 1, 64), ("web", web, 1, 64)):
            if not low <= value <= high:
                raise ConfigurationError(f"--{name} is {value}; allowed is {low} to {high}.")
        allow_host(host)
        with listening_socket(host, port) as listener:
            try:
                with first_start_in_threads():
                    self._say_prepared(prepare())
            except KeyboardInterrupt:
                sys.exit(130)
            children = self._children(listener, host=host, web=web, workers=workers)
            self._watch(children, listener)

    def _children(self, listener: socket, *, host: str, web: int, workers: int) -> list[tuple[str, int]]:
        """Start the web servers and the worker, as forks, which share loaded modules, or as new programs if this
        process may not fork. Returns their names and process ids."""
        warm_up()
        preload(settings.DAYBOOK_SERVER)
        disconnect()
        collector.resume(collect=True)
        names = ["web server" if web == 1 else f"web server {number}" for number in range(1, web + 1)]
        if not may_fork():
            return self._spawn(listener, names, host=host, workers=workers)
        children = []
        for name in names:
            if (pid := fork("daybook-web")) == 0:
                serve(settings.DAYBOOK_SERVER, listener)
                sys.exit()
            children.append((name, pid))
        if (pid := fork("daybook-worker")) == 0:
            listener.close()
            sys.exit(run_worker(workers, prepared=True))
        return [*children, ("worker", pid)]

    def _spawn(self, listener: socket, names: Sequence[str], *, host: str, workers: int) -> list[tuple[str, int]]:
        env = {
            **os.environ,
            "DAYBOOK_HOST": host,
            "DAYBOOK_PORT": str(reachable(listener)[1]),
            "DAYBOOK_WORKERS": str(workers),
        }
        manage = [sys.executable, str(Path(settings.BASE_DIR) / "manage.py")]
        parent, fd = ["--parent", str(os.getpid())], listener.fileno()
        web = [*manage, "web", "--listener", str(fd), *parent]
        started = [(name, start(web, env=env, pass_fds=[fd])) for name in names]
        started.append(("worker", start([*manage, "worker", *parent], env=env)))
        self._started = [child for _, child in started]  # Popen.__del__ could consume an exit status
        return [(name, child.pid) for name, child in started]

    def _watch(self, children: Sequence[tuple[str, int]], listener: socket) -> None:
        """Become the supervisor: replace this program with one without Django, which keeps the children."""
        (host, port), ready = reachable(listener), f"Daybook is ready at {address(listener)}"
        options = {"children": children, "host": host, "port": port, "ready": [*self._about_model(), ready]}
        program = [sys.executable, "-P", "-m", "config.processes.supervisor", json.dumps(options)]
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        sys.stdout.flush()
        sys.stderr.flush()
        # execve closes the listener: only the web servers should hold the port.
        os.execve(sys.executable, program, {**os.environ, "PYTHONPATH": str(settings.BASE_DIR)})  # noqa: S606

    def _say_prepared(self, prepared: Prepared) -> None:
        if prepared.backup:
            self._say(f"Copied the database to {prepared.backup} before migrating it.")
        if prepared.admin_user:
            self._say(f"Created the first administrator: {prepared.admin_user}")
        if prepared.no_administrator:
            self._warn(NO_ADMINISTRATOR)
        if prepared.admin_password:
            self._say(f"  password: {prepared.admin_password}")
        if prepared.api_key:
            self._say(f"Created the first API key: {prepared.api_key}")
        if prepared.admin_password or prepared.api_key:
            self._say("Keep this: it is not shown again.")
        if prepared.agents:
            self._say(f"Applied agents: {', '.join(prepared.agents)}")
        for problem in prompt_problems():
            self._warn(f"{problem} {FALLBACK_HINT}")

    @staticmethod
    def _about_model() -> list[str]:
        if model_kind() != "demo":
            return []
        return ["No upstream is configured (OPENAI_BASE_URL, OPENAI_API_KEY): the demo model answers."]

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()  # do not buffer the line if stdout is a pipe

    def _warn(self, line: str) -> None:
        self.stderr.write(f"daybook: {line}")
