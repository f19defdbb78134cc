"""A consolidation run that a worker does not claim: the log says why"""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from gateway import jobs
from memories.ids import uuid7
from memories.models import Book, Owner
from reviews.consolidation import runs
from reviews.models import ConsolidationRun
from tests.factories import agent_make
from tests.reviews.conftest import Unclaimed
from tests.reviews.consolidation.rows import request, settings_make, talk

pytestmark = pytest.mark.usefixtures("consolidation_on")


@pytest.fixture
def run(alice: Owner) -> ConsolidationRun:
    talk(alice, "My door code is 4711.")
    return request(alice)


def test_an_unknown_run(unclaimed: Unclaimed) -> None:
    unknown = uuid7()
    assert runs.claim(unknown) is None
    assert unclaimed() == [f"consolidation not claimed: id={unknown} cause=unknown"]


def test_a_finished_run(run: ConsolidationRun, unclaimed: Unclaimed) -> None:
    runs.cancel(run, "Stopped by a person.")
    assert runs.claim(run.pk) is None
    assert unclaimed() == [f"consolidation not claimed: id={run.pk} cause=over state=cancelled"]


def test_a_paused_run(run: ConsolidationRun, unclaimed: Unclaimed) -> None:
    later = timezone.now() + timedelta(hours=1)
    ConsolidationRun.objects.update(state="paused", not_before=later)
    assert runs.claim(run.pk) is None
    assert unclaimed() == [f"consolidation not claimed: id={run.pk} cause=not_due not_before={later.isoformat()}"]


def test_a_run_whose_lease_is_held(run: ConsolidationRun, unclaimed: Unclaimed) -> None:
    assert runs.claim(run.pk) is not None
    assert runs.claim(run.pk) is None
    assert unclaimed() == [f"consolidation not claimed: id={run.pk} cause=lease_held phase=extraction"]


def test_a_run_that_enters_its_next_phase_meanwhile(
    run: ConsolidationRun, monkeypatch: pytest.MonkeyPatch, unclaimed: Unclaimed
) -> None:
    take = jobs.lease_take

    def move_meanwhile(name: str, **values: Any) -> Any:
        ConsolidationRun.objects.update(phase="synthesis")
        return take(name, **values)

    monkeypatch.setattr(jobs, "lease_take", move_meanwhile)
    assert runs.claim(run.pk) is None
    assert unclaimed() == [f"consolidation not claimed: id={run.pk} cause=moved_on phase=extraction"]
    assert not jobs.lease_is_held(runs.lease_name(run.book_id), seconds=120)


def switch_off(run: ConsolidationRun) -> None:
    settings_make(enabled=False)


def clear_book(run: ConsolidationRun) -> None:
    Book.objects.update(epoch=run.book_epoch + 1)


def make_upstream_ambiguous(run: ConsolidationRun) -> None:
    agent_make("private", upstream="local", model="llama")


def use_up_attempts(run: ConsolidationRun) -> None:
    ConsolidationRun.objects.update(attempts=runs.MAX_ATTEMPTS)


@pytest.mark.parametrize(
    ("obstacle", "cause", "state"),
    [
        (switch_off, "off", "cancelled"),
        (clear_book, "book_cleared", "cancelled"),
        (make_upstream_ambiguous, "upstream_undecided", "cancelled"),
        (use_up_attempts, "worker_lost", "failed"),
    ],
)
def test_a_run_that_can_no_longer_be_executed(
    run: ConsolidationRun, obstacle: Any, cause: str, state: str, settings: Any, unclaimed: Unclaimed
) -> None:
    address = {"url": "http://127.0.0.1:9/v1", "key": ""}
    settings.DAYBOOK_UPSTREAMS = {"default": address, "local": address}
    obstacle(run)
    assert runs.claim(run.pk) is None
    run.refresh_from_db()
    assert run.state == state
    assert unclaimed() == [f"consolidation not claimed: id={run.pk} cause={cause}"]
    assert not jobs.lease_is_held(runs.lease_name(run.book_id), seconds=120)


def test_a_claim_that_succeeds_logs_nothing(run: ConsolidationRun, unclaimed: Unclaimed) -> None:
    assert runs.claim(run.pk) is not None
    assert unclaimed() == []
