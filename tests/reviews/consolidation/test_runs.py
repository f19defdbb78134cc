"""Runs: one per book, claimed by one worker, resumed after a crash, stopped, and scheduled."""

import time
from datetime import timedelta

import psycopg
import pytest
from django.db import OperationalError
from django.utils import timezone
from django_q.models import OrmQ

from gateway import jobs
from gateway.jobs import LeaseLost
from gateway.services import configuration_save
from memories.errors import Conflict
from memories.models import Artifact, Book, Lease, Owner
from reviews.consolidation import runner, runs, triggers
from reviews.consolidation.extraction import choose_sessions
from reviews.consolidation.requests import Trigger
from reviews.errors import RunCancelled
from reviews.models import ConsolidationRun, Extraction
from tests.reviews.consolidation.answering_model import AnsweringModel, extraction
from tests.reviews.consolidation.rows import consolidate, notes, request, run_slice, settings_make, talk
from tests.sweeps import reset_sweep_throttles
from tests.unsliced import forget_memories

pytestmark = pytest.mark.usefixtures("consolidation_on")


def expire_lease() -> None:
    Lease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))


def test_nothing_runs_while_consolidation_is_off(alice: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    run = request(alice)
    settings_make(enabled=False)
    assert run_slice(run).state == "cancelled"
    with pytest.raises(Conflict, match="Consolidation is off"):
        request(alice)
    triggers.consolidation_sweep()
    assert ConsolidationRun.objects.count() == 1
    assert answering.calls == []


def test_a_book_has_one_open_run(alice: Owner) -> None:
    talk(alice)
    first = request(alice, trigger=Trigger.STARTUP)
    second = request(alice, force=True)
    assert first.pk == second.pk
    assert (second.force, second.rebuild) == (True, True)


def test_only_one_worker_can_claim_a_run(alice: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    run = request(alice)
    assert runs.claim(run.pk) is not None
    assert runs.claim(run.pk) is None
    assert run_slice(run).state == "running"
    assert answering.calls == []


def test_a_crashed_workers_run_is_resumed(
    alice: Owner, answering: AnsweringModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        talk(alice, hours_ago=n)
    run = request(alice)
    settings_make(concurrency=1)

    def crash_at_the_third(session: str, _: object) -> str:
        if len(answering.calls) == 3:
            raise RuntimeError("killed")
        return extraction(f"- {session}", "y")

    answering.on_extraction = crash_at_the_third
    # A crashed worker neither ends the run nor releases the lease.
    monkeypatch.setattr(runner, "_end", lambda *args: None)
    run_slice(run)
    assert (run.state, run.sessions_done) == ("running", 2)
    runs.recover()
    assert run_slice(run).state == "running", "the lease is still held"
    expire_lease()
    OrmQ.objects.all().delete()
    runs.recover()
    assert run_slice(run).state == "completed"
    assert (run.sessions_done, len(answering.extracted), len(notes(alice))) == (3, 4, 3)


def test_a_run_whose_workers_always_crash_fails_eventually(alice: Owner) -> None:
    talk(alice)
    run = request(alice)
    for _ in range(runs.MAX_ATTEMPTS):
        assert runs.claim(run.pk) is not None
        expire_lease()
        runs.recover()
    assert runs.claim(run.pk) is None
    run.refresh_from_db()
    assert (run.state, run.error["code"]) == ("failed", "worker_lost")


def test_a_worker_that_lost_its_lease_writes_nothing(alice: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    answering.on_extraction = lambda *_: (expire_lease(), extraction("- Late", "Late."))[1]
    run = run_slice(request(alice))
    assert notes(alice) != {}
    assert set(notes(alice).values()) == {""}
    assert run.sessions_done == 0


def test_a_lost_lease_in_the_synthesis_writes_nothing(alice: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    real = answering.on_synthesis
    answering.on_synthesis = lambda request: (expire_lease(), real(request))[1]
    run_slice(request(alice))
    assert not Artifact.objects.exists()


def test_lock_claimed_checks_token_state_and_epoch(alice: Owner) -> None:
    talk(alice)
    run = request(alice)
    claim = runs.claim(run.pk)
    assert claim is not None
    assert runs.lock_claimed(claim).pk == run.pk
    Book.objects.update(epoch=2)
    with pytest.raises(RunCancelled, match="cleared"):
        runs.lock_claimed(claim)
    Book.objects.update(epoch=run.book_epoch)
    runs.cancel(run, "Stopped by a person.")
    with pytest.raises(LeaseLost, match="stopped"):
        runs.lock_claimed(claim)
    assert not runs.heartbeat(claim)
    jobs.lease_release(claim.lease, claim.token)
    with pytest.raises(LeaseLost):
        runs.lock_claimed(claim)


def test_the_next_run_waits_for_the_worker_of_a_stopped_one_in_either_phase(alice: Owner) -> None:
    talk(alice)
    claim = runs.claim(request(alice).pk)
    assert claim is not None
    runs.advance(claim)
    runs.cancel(claim.run, "Stopped by a person.")
    following = request(alice)
    assert runs.claim(following.pk) is None
    jobs.lease_release(claim.lease, claim.token)
    assert runs.claim(following.pk) is not None


def test_sessions_are_selected_once(alice: Owner) -> None:
    talk(alice)
    claim = runs.claim(request(alice).pk)
    assert claim is not None
    assert choose_sessions(claim) == 1
    talk(alice)
    assert choose_sessions(claim) == 1
    assert Extraction.objects.count() == 1


@pytest.mark.any_database
def test_a_stopped_run_keeps_its_results(alice: Owner, answering: AnsweringModel) -> None:
    settings_make(concurrency=1)
    for n in range(3):
        talk(alice, hours_ago=n)
    run = request(alice)

    def stop_at_the_second(session: str, _: object) -> str:
        if len(answering.calls) == 2:
            runs.cancel(run, "Stopped by a person.")
        return extraction("- x", "y")

    answering.on_extraction = stop_at_the_second
    run_slice(run)
    assert (run.state, run.sessions_done, run.error["message"]) == ("cancelled", 1, "Stopped by a person.")
    assert not Lease.objects.exists()
    assert consolidate(alice).sessions_total == 2


def test_a_long_run_yields_to_other_jobs(
    alice: Owner, answering: AnsweringModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "SLICE_SECONDS", 0.0)
    talk(alice)
    run = run_slice(request(alice))
    assert (run.state, run.sessions_done, run.attempts) == ("scheduled", 0, 0)
    monkeypatch.setattr(runs, "SLICE_SECONDS", 60.0)
    assert run_slice(run).state == "completed"


def test_the_sweep_starts_due_books_once(alice: Owner, charlie: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    talk(charlie, temporary=True)
    triggers.consolidation_sweep()
    triggers.consolidation_sweep()
    (run,) = ConsolidationRun.objects.all()
    assert (run.owner, run.trigger) == (alice, "startup")
    run_slice(run)
    reset_sweep_throttles()
    triggers.consolidation_sweep()
    assert ConsolidationRun.objects.count() == 1, "no book is due any more"


def test_scheduled_runs_are_enqueued_one_at_a_time(alice: Owner, bob: Owner, charlie: Owner) -> None:
    for owner in (alice, bob):
        talk(owner)
    triggers.consolidation_sweep()
    assert not ConsolidationRun.objects.exclude(enqueued_at=None).exists()
    triggers.consolidation_sweep()
    triggers.consolidation_sweep()
    first = ConsolidationRun.objects.exclude(enqueued_at=None).get()
    talk(charlie)
    assert request(charlie).enqueued_at is not None, "a requested run does not wait"
    assert runs.recover() == 0
    for run in (first, ConsolidationRun.objects.get(owner=charlie)):
        runs.cancel(run, "Stopped by a person.")
    assert runs.recover() == 1, "the next scheduled run is enqueued"


def test_the_schedule_checks_again_after_its_interval(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triggers._throttle, "_checked_at", time.monotonic())
    talk(alice)
    triggers.consolidation_sweep()
    assert not ConsolidationRun.objects.exists()
    monkeypatch.setattr(triggers._throttle, "_checked_at", time.monotonic() - 3601)
    triggers.consolidation_sweep()
    assert ConsolidationRun.objects.get().trigger == "schedule"


def test_a_lost_job_is_enqueued_again(alice: Owner) -> None:
    talk(alice)
    run = request(alice)
    assert runs.recover() == 0
    ConsolidationRun.objects.update(enqueued_at=timezone.now() - timedelta(seconds=61))
    assert runs.recover() == 1
    assert runs.recover() == 0
    run.refresh_from_db()
    assert run.state == "scheduled"


def test_the_heartbeat_extends_a_held_lease_only(alice: Owner) -> None:
    settings_make(lease_seconds=5)
    talk(alice)
    claim = runs.claim(request(alice).pk)
    assert claim is not None
    Lease.objects.update(expires_at=timezone.now() + timedelta(seconds=1))
    assert runs.heartbeat(claim)
    assert Lease.objects.get().expires_at > timezone.now() + timedelta(seconds=4)
    expire_lease()
    assert not runs.heartbeat(claim)


def test_an_unexpected_error_fails_the_run_with_a_message(
    alice: Owner, answering: AnsweringModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(alice)

    async def fail(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(runner, "synthesize", fail)
    run = run_slice(request(alice))
    assert (run.state, run.error["message"]) == (
        "failed",
        "The consolidation was aborted by an internal error (ZeroDivisionError).",
    )
    assert not Lease.objects.exists()


def test_a_run_is_resumed_after_the_database_failed(
    alice: Owner, answering: AnsweringModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(alice)

    async def fail(*args: object, **kwargs: object) -> None:
        raise OperationalError("the server closed the connection") from psycopg.OperationalError()

    with monkeypatch.context() as patch:
        patch.setattr(runner, "synthesize", fail)
        run = run_slice(request(alice))
    runs.recover()
    assert run_slice(run).state == "completed"
    assert run.sessions_done == 1


def test_a_living_workers_run_that_the_sweep_took_is_resumed(alice: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    real = answering.on_synthesis

    def take(given: str) -> str:
        Lease.objects.update(expires_at=timezone.now() + timedelta(hours=1))  # the clock was set back
        runs.recover()
        return real(given)

    answering.on_synthesis = take
    run = run_slice(request(alice))
    assert (run.state, run.error) == ("scheduled", None)
    answering.on_synthesis = real
    assert run_slice(run).state == "completed"


def test_a_request_after_a_forgetting_does_not_join_the_run_from_before(
    alice: Owner, answering: AnsweringModel
) -> None:
    talk(alice)
    before = request(alice)
    forget_memories(alice.pk)
    talk(alice, "A new fact.")
    run = request(alice)
    before.refresh_from_db()
    assert (before.state, run_slice(run).state) == ("cancelled", "completed")


def test_without_roles_the_agents_model_and_upstream_are_used(alice: Owner, answering: AnsweringModel) -> None:
    configuration_save("model_roles", {})
    talk(alice)
    consolidate(alice)
    assert {(call.upstream, call.model, call.tools) for call in answering.calls} == {("default", "gpt-4o-mini", ())}
