"""`manage.py restore FOLDER`: replace the data of this installation with a backup."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from config.backups.backup import restore
from memories.number_words import counted

_KEY_MESSAGES = {
    "restored": "Restored the signing key.",
    "environment": "The signing key was not restored, since DAYBOOK_SECRET_KEY is set.",
    "missing": "The backup has no signing key: everybody must sign in again unless DAYBOOK_SECRET_KEY is the same.",
}


class Command(BaseCommand):
    help = "Check a backup and restore it into an empty installation; with --force into any."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="FOLDER", help="a folder created by `backup`")
        parser.add_argument(
            "--force",
            action="store_true",
            help="replace all existing data (with PostgreSQL the whole schema), after a backup of it",
        )

    def handle(self, *args: Any, folder: Path, force: bool, **options: Any) -> None:
        try:
            restored = restore(folder, force=force)
        except OSError as error:
            raise CommandError(f"{error.filename or folder}: {error.strerror}.") from None
        except DatabaseError as error:
            raise CommandError(f"The database refused: {str(error).strip().splitlines()[0]}.") from None
        if restored.replaced:
            self.stdout.write(f"Backed up the existing data to {restored.replaced}")
        self.stdout.write(f"Restored the database as of {restored.manifest.made_at}.")
        if restored.left:
            self.stdout.write(
                "The previous data is still in the database because it was in use. Delete it later: "
                f'DROP SCHEMA "{restored.left}" CASCADE.'
            )
        if restored.manifest.attachments is None:
            self.stdout.write("The backup has no attachments: they are read from their storage.")
        else:
            self.stdout.write(f"Restored {counted(restored.attachments, 'attachment')}.")
        self.stdout.write(_KEY_MESSAGES[restored.secret_key])
        if restored.replaced:
            self.stdout.write("Restart Daybook now if it is running.")
        self.stdout.write("`manage.py up` or `prepare` applies migrations that are newer than the backup.")
