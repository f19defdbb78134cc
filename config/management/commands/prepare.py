"""`manage.py prepare`: the preparation of `up`, for installations that run `web` and `worker` themselves. It may be
repeated, and run in several places at once."""

from argparse import ArgumentParser
from typing import Any

from config.management.commands import up
from config.processes.bootstrap import prepare


class Command(up.Command):
    help = "Migrate, make the first administrator and API key, and apply the agents file; then end."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """None: addresses and processes are the business of `web` and `worker`."""

    def handle(self, *args: Any, **options: Any) -> None:
        self._say_prepared(prepare())
        self._say("The database is ready.")
