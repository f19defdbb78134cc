"""`manage.py prepare`: what `up` does before it starts anything, for installations that run `web` and `worker`
themselves. Safe to repeat, and in several places at once."""

from argparse import ArgumentParser
from typing import Any

from config.bootstrap import prepare
from config.management.commands import up


class Command(up.Command):
    help = "Migrate, make the first administrator and API key, and apply the agents file; then end."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """None: addresses and processes are the business of `web` and `worker`."""

    def handle(self, *args: Any, **options: Any) -> None:
        self._say_prepared(prepare())
        self._say("The database is ready.")
