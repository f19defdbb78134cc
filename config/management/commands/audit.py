"""`manage.py audit purge --before DATE`: delete old entries of the audit log."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, date, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memories.audit.log import SYSTEM, audit_purge, audit_purgeable
from memories.errors import DomainError


def _day(given: str) -> date:
    try:
        return date.fromisoformat(given)
    except ValueError:
        raise ArgumentTypeError(f"{given!r} is not a date such as 2026-01-31") from None


class Command(BaseCommand):
    help = "Delete old entries of the audit log. The deletion is recorded as an entry, too."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="purge")
        purge = verbs.add_parser("purge", help="delete entries from before a date")
        purge.add_argument("--before", type=_day, required=True, help="the date, YYYY-MM-DD, in UTC")
        purge.add_argument("--confirm", action="store_true", help="delete them; without it they are only counted")

    def handle(self, *args: Any, before: date, confirm: bool, **options: Any) -> None:
        start = datetime(before.year, before.month, before.day, tzinfo=UTC)
        try:
            if confirm:
                self.stdout.write(f"Deleted {audit_purge(start, actor=SYSTEM)} entries from before {before}.")
            else:
                count = audit_purgeable(start).count()
                self.stdout.write(f"{count} entries are from before {before}. Repeat with --confirm to delete them.")
        except DomainError as error:
            raise CommandError(str(error)) from None
