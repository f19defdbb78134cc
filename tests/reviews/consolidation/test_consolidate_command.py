"""manage.py consolidate"""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from gateway.models import Worker
from memories.models import Owner
from reviews.consolidation.runs import Phase, State
from reviews.management.commands import consolidate as command
from reviews.models import ConsolidationRun
from tests.reviews.consolidation.answering_model import AnsweringModel
from tests.reviews.consolidation.rows import run_slice, settings_make, talk

pytestmark = [pytest.mark.usefixtures("consolidation_on"), pytest.mark.any_database]


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("consolidate", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_enqueues_every_due_book(alice: Owner, charlie: Owner) -> None:
    talk(alice)
    talk(charlie, hours_ago=40 * 24)
    assert run().startswith("alice, book main: run ")
    assert ConsolidationRun.objects.get().owner == alice


def test_the_command_accepts_an_owner_and_a_book(alice: Owner, charlie: Owner) -> None:
    talk(alice)
    talk(charlie)
    run("--owner", "charlie", "--book", "main", "--force")
    assert (ConsolidationRun.objects.get().owner, ConsolidationRun.objects.get().force) == (charlie, True)
    with pytest.raises(CommandError, match="no book of a user called nobody"):
        run("--owner", "nobody")
    with pytest.raises(CommandError, match="no such book"):
        run("--owner", "charlie", "--book", "other")


def test_a_dry_run_starts_nothing(alice: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    assert "A rebuild would read 1 session: about " in run("--dry-run")
    assert not ConsolidationRun.objects.exists()
    assert answering.calls == []


def test_without_due_books_the_command_says_so(alice: Owner) -> None:
    assert run() == run("--dry-run") == "No book is due.\n"


def test_a_dry_run_says_that_consolidation_is_off(alice: Owner) -> None:
    talk(alice)
    assert "is off" not in run("--dry-run")
    settings_make(enabled=False)
    assert run("--owner", "alice", "--dry-run").startswith("Consolidation is off.")


def test_the_command_fails_while_consolidation_is_off(alice: Owner) -> None:
    talk(alice)
    settings_make(enabled=False)
    with pytest.raises(CommandError, match="Consolidation is off"):
        run("--owner", "alice")


@pytest.mark.parametrize("silence", [timedelta(), timedelta(minutes=5)])
def test_who_waits_without_a_worker_is_told(alice: Owner, monkeypatch: pytest.MonkeyPatch, silence: timedelta) -> None:
    talk(alice)
    Worker.objects.create(host="here", pid=1, beat_at=timezone.now() - silence)
    monkeypatch.setattr(command, "rest", lambda: ConsolidationRun.objects.update(state=State.COMPLETED))
    err = StringIO()
    call_command("consolidate", "--wait", stdout=StringIO(), stderr=err)
    assert ("No worker was heard" in err.getvalue()) is bool(silence)


def test_the_command_can_wait_for_a_run_to_end(
    alice: Owner, answering: AnsweringModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(alice)
    monkeypatch.setattr(command, "rest", lambda: run_slice(ConsolidationRun.objects.get()))  # plays the worker
    lines = run("--wait").splitlines()
    assert lines[1].endswith("0 of 0 sessions, Reading sessions")
    assert lines[-1] == f"[{'#' * 30}] 1 of 1 sessions, Completed"


def test_the_progress_bar_shows_the_completed_share() -> None:
    half = ConsolidationRun(state=State.RUNNING, phase=Phase.EXTRACTION, sessions_total=4, sessions_done=2)
    assert command.progress_line(half) == f"[{'#' * 15}{'-' * 15}] 2 of 4 sessions, Reading sessions"
