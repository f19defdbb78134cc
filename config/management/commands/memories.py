"""`manage.py memories export | import`: export the memories of an owner as JSON Lines, and import exports of other
systems."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from config.backups.sqlite_tools import temporary_folder
from memories.api.export import export_lines
from memories.audit.log import SYSTEM, Action, audit_record
from memories.database.batches import finish
from memories.errors import DomainError
from memories.ids import parse_uuid
from memories.imports.conversations import conversation_store
from memories.imports.files import Upload
from memories.imports.formats import AUTO, FORMATS
from memories.imports.report import ImportReport
from memories.imports.running import ImportRequest, import_slices
from memories.models import Owner
from memories.number_words import counted
from memories.selectors import require_book
from memories.services import owner_for_user

_STANDARD = Path("-")


class Command(BaseCommand):
    help = "Export everything about an owner as JSON Lines, or import such a file or the export of another system."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="export|import")
        export = verbs.add_parser("export", help="write JSON Lines to FILE, or to standard output")
        imported = verbs.add_parser("import", help="read FILE, or standard input")
        for verb in (export, imported):
            verb.add_argument("--owner", required=True, help="name of the user, or the id of an end user's owner")
            verb.add_argument("file", type=Path, nargs="?", default=_STANDARD, metavar="FILE")
        export.add_argument("--book", help="only what this book remembers")
        imported.add_argument("--book", default="main", help="book of memories that name none (default: main)")
        imported.add_argument(
            "--format", default=AUTO, choices=[AUTO, *FORMATS], help="format of the file (default: detect it)"
        )
        imported.add_argument("--no-conversations", action="store_true", help="import memories only")
        imported.add_argument("--preview", action="store_true", help="only show what would be written")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        owner = _owner(options.pop("owner"))
        try:
            if verb == "export":
                self._export(owner, options["book"], options["file"])
            else:
                self._import(owner, **options)
        except DomainError as error:
            raise CommandError(str(error)) from None
        except BrokenPipeError:  # the reader has closed the pipe: see manage.py
            raise
        except OSError as error:
            problem = f"{options['file']}: {error.strerror}"
            if verb == "export" and options["file"] != _STANDARD:
                problem += ". Without FILE, the export goes to standard output."
            raise CommandError(problem) from None

    def _export(self, owner: Owner, book: str | None, file: Path) -> None:
        if book is not None:
            require_book(owner.pk, book)
        audit_record(Action.EXPORT, actor=SYSTEM, kind="owner", object_id=owner.pk, owner=owner)
        lines = export_lines(owner.pk, book=book)
        if file == _STANDARD:
            for line in lines:
                self.stdout.write(line, ending="")
            self.stdout.flush()
            return
        if file.exists() and not file.is_file():  # a pipe or a device, whose permissions are not ours
            count = _write(file, lines)
        else:  # an existing file is only replaced by a complete one
            target = file.resolve()
            with temporary_folder(target.parent.resolve(strict=True)) as part:
                count = _write(part / target.name, lines)
                (part / target.name).chmod(0o600)  # it contains personal data
                (part / target.name).replace(target)
        self.stderr.write(f"Wrote {count} lines to {file}.")

    def _import(
        self, owner: Owner, *, book: str, file: Path, format: str, no_conversations: bool, preview: bool, **_: Any
    ) -> None:
        with BytesIO(sys.stdin.buffer.read()) if file == _STANDARD else file.open("rb") as opened:
            request = ImportRequest(
                upload=Upload(opened, file.name),
                format=format,
                book=book,
                conversations=not no_conversations,
                preview=preview,
            )
            report = finish(import_slices(owner.pk, request, actor="system"))
        if report.written:
            with suppress(DatabaseError):  # everything is stored, and the worker's sweep indexes what is left
                finish(conversation_store().index(owner.pk))
        self.stdout.write(_summary(report))
        for problem in report.problems:
            self.stderr.write(f"{problem['place']} was left out: {problem['code']} ({problem['message']})")


def _write(file: Path, lines: Iterator[str]) -> int:
    """Return the number of lines."""
    with file.open("w", encoding="utf-8") as out:
        return sum(1 for line in lines if out.write(line))


def _summary(report: ImportReport) -> str:
    verb = "Imported" if report.written else "Would import"
    counts = f"{report.new} new, {report.changed} changed, {report.known} known already"
    left_out = report.blocked + report.refused
    text = f"{verb}: {counts}, {left_out} left out."
    if report.held:
        text += f" {counted(report.held, 'proposal waits', 'proposals wait')} for a decision on the reviews page."
    if report.conversations_new or report.conversations_known:
        new, known = report.conversations_new, report.conversations_known
        text += f" Conversations: {new} new, {known} known already."
    return text + "".join(f"\nChange set {change_set} (it can be undone)." for change_set in report.change_sets)


def _owner(given: str) -> Owner:
    users = get_user_model()._default_manager
    if user := users.filter(**{get_user_model().USERNAME_FIELD: given}).first():
        return owner_for_user(user)
    if (id := parse_uuid(given)) and (owner := Owner.objects.filter(pk=id).first()):
        return owner
    raise CommandError(f"There is no user {given}.")
