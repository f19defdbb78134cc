"""`manage.py backup [FOLDER]`: back up the database, attachments and the signing key, also while Daybook runs."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.backups.backup import KEY_FILE, backup
from memories.number_words import counted


class Command(BaseCommand):
    help = "Back up the database, attachments and the signing key to a folder, also while Daybook runs."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "folder", type=Path, nargs="?", metavar="FOLDER", help="a new folder (default: one in DAYBOOK_HOME/backups)"
        )

    def handle(self, *args: Any, folder: Path | None, **options: Any) -> None:
        try:
            target, manifest = backup(folder)
        except OSError as error:
            raise CommandError(f"{error.filename or folder}: {error.strerror}. Nothing was backed up.") from None
        size = (target / manifest.database).stat().st_size
        self.stdout.write(f"Backed up the database ({manifest.engine}, {size:,} bytes) to {target}")
        if manifest.attachments is None:
            self.stdout.write("It does not include attachments, which are in DAYBOOK_ATTACHMENTS: back that up, too.")
        else:
            self.stdout.write(f"Backed up {counted(manifest.attachments, 'attachment')}.")
        if KEY_FILE in manifest.files:
            self.stdout.write("It includes the signing key: keep the backup as private as Daybook itself.")
        else:
            self.stdout.write("It does not include the signing key, which is in DAYBOOK_SECRET_KEY: keep that, too.")
