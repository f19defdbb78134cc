"""`manage.py restore FOLDER`: replace the data of this installation by a backup."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from config.backups.backup import restore
from memories.number_words import counted

_KEY = {
    "restored": "Restored the signing key.",
    "environment": "DAYBOOK_SECRET_KEY is set: it is used as it is.",
    "missing": "The backup holds no signing key: everybody signs in again unless DAYBOOK_SECRET_KEY is the same.",
}


class Command(BaseCommand):
    help = "Check a backup and restore it into an empty installation; with --force into any."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="FOLDER", help="a folder that `backup` made")
        parser.add_argument("--force", action="store_true", help="replace what is there, after a backup of it")

    def handle(self, *args: Any, folder: Path, force: bool, **options: Any) -> None:
        try:
            done = restore(folder, force=force)
        except OSError as error:
            raise CommandError(f"{error.filename or folder}: {error.strerror}.") from None
        except DatabaseError as error:
            raise CommandError(f"The database refused: {str(error).strip().splitlines()[0]}.") from None
        if done.replaced:
            self.stdout.write(f"Backed up what was there to {done.replaced}")
        self.stdout.write(f"Restored the database as it was at {done.manifest.made_at}.")
        if done.left:
            self.stdout.write(
                "What was there before is still in the database, since somebody reads it. Delete it later: "
                f'DROP SCHEMA "{done.left}" CASCADE.'
            )
        if done.manifest.attachments is None:
            self.stdout.write("The backup holds no attachments: they are read from where they were stored.")
        else:
            self.stdout.write(f"Restored {counted(done.attachments, 'attachment')}.")
        self.stdout.write(_KEY[done.secret_key])
        if done.replaced:
            self.stdout.write("Restart Daybook now if it runs.")
        self.stdout.write("Migrations that are newer than the backup are applied by the next `manage.py up`.")
