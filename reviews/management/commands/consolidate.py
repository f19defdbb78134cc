"""`manage.py consolidate`: request, preview or follow consolidation."""

import threading
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway import heartbeat
from gateway.agents.configuration import consolidation_settings
from memories.errors import DomainError
from memories.models import Book
from reviews.consolidation import runs
from reviews.consolidation.preview import consolidation_preview
from reviews.consolidation.requests import Trigger, consolidation_request
from reviews.consolidation.selection import due_books
from reviews.consolidation.standing import standing_of
from reviews.consolidation.triggers import MAX_BOOKS
from reviews.models import ConsolidationRun

BAR_WIDTH = 30
POLL_SECONDS = 0.5


class Command(BaseCommand):
    help = "Consolidate past sessions of one book, of all books of an owner, or of every book that is due."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--owner", default="", help="user name; without it: every owner whose books are due")
        parser.add_argument("--book", default="", help="name of the book; without it: all of the owner's")
        parser.add_argument("--force", action="store_true", help="run even if nothing changed")
        parser.add_argument("--dry-run", action="store_true", help="only show what would be read, and an estimate")
        parser.add_argument("--wait", action="store_true", help="show a progress bar until the runs end")

    def handle(self, *args: Any, **options: Any) -> None:
        books = _books(options["owner"], options["book"])
        if not books:
            self.stdout.write("No book is due.")
        if options["dry_run"]:
            self._preview(books, force=options["force"])
            return
        started = [self._start(book, force=options["force"]) for book in books]
        if options["wait"]:
            if started and not heartbeat.alive():
                self.stderr.write("No worker was heard recently; `up` or `worker` starts one. Waiting for it.")
            for run in started:
                self._follow(run)

    def _preview(self, books: list[Book], *, force: bool) -> None:
        if not consolidation_settings().enabled:
            self.stdout.write(runs.OFF)
        for book in books:
            self.stdout.write(f"{book.owner}, book {book.name}")
            self.stdout.write(f"  {consolidation_preview(book, force=force)['text']}")

    def _start(self, book: Book, *, force: bool) -> ConsolidationRun:
        try:
            run = consolidation_request(book, trigger=Trigger.REQUEST, actor="system", force=force)
        except DomainError as refused:
            raise CommandError(str(refused)) from None
        standing = standing_of(book, force=run.force).text
        state = run.get_state_display().lower()
        self.stdout.write(f"{book.owner}, book {book.name}: run {run.pk} is {state}. {standing}")
        return run

    def _follow(self, run: ConsolidationRun) -> None:
        """Show the run's progress until it ends. Ctrl-C does not stop the run in the worker."""
        shown = ""
        while True:
            run.refresh_from_db()
            line = progress_line(run)
            if line != shown:
                self.stdout.write(f"\r\x1b[2K{line}" if self.stdout.isatty() else f"{line}\n", ending="")
                shown = line
            if run.state not in ConsolidationRun.OPEN:
                break
            rest()
        self.stdout.write("" if not self.stdout.isatty() else "\n", ending="")
        if run.state == runs.State.FAILED:
            raise CommandError(str((run.error or {}).get("message", "It failed.")))


def rest() -> None:
    threading.Event().wait(POLL_SECONDS)


def progress_line(run: ConsolidationRun) -> str:
    """Return a line such as `[#####-----] 12 of 24 sessions, Reading sessions`."""
    share = run.sessions_done / run.sessions_total if run.sessions_total else float(run.phase != runs.Phase.EXTRACTION)
    filled = round(BAR_WIDTH * min(1.0, share))
    bar = "#" * filled + "-" * (BAR_WIDTH - filled)
    status = run.get_phase_display() if run.state in ConsolidationRun.OPEN else run.get_state_display()
    return f"[{bar}] {run.sessions_done} of {run.sessions_total} sessions, {status}"


def _books(owner: str, book: str) -> list[Book]:
    if not owner and not book:
        return due_books(consolidation_settings(), max_books=MAX_BOOKS)
    rows = Book.objects.select_related("owner__user").order_by("owner", "name")
    if owner:
        rows = rows.filter(owner__user__username=owner)
        if not rows.exists():
            raise CommandError(f"There is no book of a user called {owner}.")
    if book:
        rows = rows.filter(name=book)
    found = list(rows)
    if not found:
        raise CommandError("There is no such book.")
    return found
