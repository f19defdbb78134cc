"""`manage.py memories export | import`: what is remembered of an owner, as JSON Lines."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from memories.audit import SYSTEM, Action, audit_record
from memories.errors import DomainError
from memories.ids import parse_uuid
from memories.importing import ImportReport, import_text
from memories.models import Owner
from memories.portability import export_lines
from memories.services import owner_for_user

_STANDARD = Path("-")


class Command(BaseCommand):
    help = "Export everything about an owner as JSON Lines, or import memories from such a file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="export|import")
        export = verbs.add_parser("export", help="write JSON Lines to FILE, or to standard output")
        imported = verbs.add_parser("import", help="read JSON Lines from FILE, or from standard input")
        for verb in (export, imported):
            verb.add_argument("--owner", required=True, help="name of the user, or the id of an end user's owner")
            verb.add_argument("file", type=Path, nargs="?", default=_STANDARD, metavar="FILE")
        export.add_argument("--book", help="only what this book remembers")
        imported.add_argument("--book", default="main", help="book of lines that name none (default: main)")
        imported.add_argument("--preview", action="store_true", help="only say what would be written")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        owner = _owner(options["owner"])
        try:
            if verb == "export":
                self._export(owner, options["book"], options["file"])
            else:
                self._import(owner, options["book"], options["file"], preview=options["preview"])
        except DomainError as error:
            raise CommandError(str(error)) from None
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise CommandError(f"{options['file']}: {reason}") from None

    def _export(self, owner: Owner, book: str | None, file: Path) -> None:
        audit_record(Action.EXPORT, actor=SYSTEM, kind="owner", object_id=owner.pk, owner=owner)
        lines = export_lines(owner.pk, book=book)
        if file == _STANDARD:
            for line in lines:
                self.stdout.write(line, ending="")
            return
        with file.open("w", encoding="utf-8") as out:
            file.chmod(0o600)  # it holds what is known about a person
            count = sum(1 for line in lines if out.write(line))
        self.stderr.write(f"Wrote {count} lines to {file}.")

    def _import(self, owner: Owner, book: str, file: Path, *, preview: bool) -> None:
        text = sys.stdin.read() if file == _STANDARD else file.read_text(encoding="utf-8")
        report = import_text(owner.pk, text, actor="system", book=book, preview=preview)
        self.stdout.write(_summary(report))
        for problem in report.problems:
            why = problem.get("message") or f"rule {problem.get('rule')}"
            self.stderr.write(f"Line {problem['line']} was left out: {problem['code']} ({why})")


def _summary(report: ImportReport) -> str:
    done = "Imported" if report.written else "Would import"
    counts = f"{report.new} new, {report.changed} changed, {report.known} known already"
    left_out = report.blocked + report.refused
    return f"{done}: {counts}, {left_out} left out." + "".join(
        f"\nChange set {change_set} (undo takes it back)." for change_set in report.change_sets
    )


def _owner(given: str) -> Owner:
    users = get_user_model()._default_manager
    if user := users.filter(**{get_user_model().USERNAME_FIELD: given}).first():
        return owner_for_user(user)
    if (id := parse_uuid(given)) and (owner := Owner.objects.filter(pk=id).first()):
        return owner
    raise CommandError(f"There is no user {given}.")
