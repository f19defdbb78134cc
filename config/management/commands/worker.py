"""`manage.py worker`: the queue and the sweeps, for `up` and for installations that run the processes themselves."""

import sys
from argparse import SUPPRESS, ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from config.processes.forking import die_with_parent, name_process
from config.processes.worker import run_worker


class Command(BaseCommand):
    help = "Run background jobs and sweeps until Ctrl-C or SIGTERM."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--parent", type=int, help=SUPPRESS)

    def handle(self, *args: Any, parent: int | None, **options: Any) -> None:
        if parent is not None:
            die_with_parent(parent)
        name_process("daybook-worker")
        sys.exit(run_worker())
