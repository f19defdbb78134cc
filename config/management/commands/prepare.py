"""`manage.py prepare`: the preparation that `up` does, for installations that run `web` and `worker` themselves. It can
be repeated, and run on several machines at once."""

from argparse import ArgumentParser
from typing import Any

from config.management.commands import up
from config.processes.bootstrap import prepare


class Command(up.Command):
    help = "Migrate, create the first administrator and API key, apply the agents file, and exit."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add none: addresses and processes are arguments of `web` and `worker`."""

    def handle(self, *args: Any, **options: Any) -> None:
        self._say_prepared(prepare())
        self._say("The database is ready.")
