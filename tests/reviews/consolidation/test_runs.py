"""Runs: asked for once, held by one worker, handed on after a crash, stopped, and within their quotas."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone
from django_q.models import OrmQ

from gateway import jobs
from gateway.jobs import LeaseLost
from gateway.models import Agent
from gateway.services import configuration_save
from memories.errors import Conflict
from memories.models import Artifact, Book, Lease, Owner
from reviews.consolidation import runner, runs, triggers
from reviews.consolidation.errors import RunCancelled
from reviews.consolidation.extraction import choose_sessions
from reviews.consolidation.requests import Trigger
from reviews.models import ConsolidationRun, Extraction
from tests.reviews.consolidation.answering_model import AnsweringModel, extraction
from tests.reviews.consolidation.rows import consolidate, notes, request, settings_make, talk, work
from tests.sweeps import reset_sweep_throttles

pytestmark = pytest.mark.usefixtures("consolidation_on")


def lease_ran_out() -> None:
    Lease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))


def test_nothing_runs_while_it_is_off(alice: Owner, agent: Agent, answering: AnsweringModel) -> None:
    talk(alice, agent)
    run = request(alice)
    settings_make(enabled=False)
    assert work(run).state == "cancelled"
    with pytest.raises(Conflict, match="Consolidation is off"):
        request(alice)
    triggers.consolidation_sweep()
    assert ConsolidationRun.objects.count() == 1
    assert answering.calls == []


def test_a_book_has_one_open_run(alice: Owner, agent: Agent) -> None:
    talk(alice, agent)
    first = request(alice, trigger=Trigger.STARTUP)
    second = request(alice, force=True)
    assert first.pk == second.pk
    assert (second.force, second.rebuild) == (True, True)


def test_one_worker_holds_a_run(alice: Owner, agent: Agent, answering: AnsweringModel) -> None:
    talk(alice, agent)
    run = request(alice)
    assert runs.claim(run.pk) is not None
    assert runs.claim(run.pk) is None
    assert work(run).state == "running"
    assert answering.calls == []


def test_a_crashed_workers_run_goes_on_where_it_was(
    alice: Owner, agent: Agent, answering: AnsweringModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        talk(alice, agent, hours_ago=n)
    run = request(alice)
    settings_make(concurrency=1)

    def killed_at_the_third(session: str, _: object) -> str:
        if len(answering.calls) == 3:
            raise RuntimeError("killed")
        return extraction(f"- {session}", "y")

    answering.on_extraction = killed_at_the_third
    # Nobody is left to end the run or to give the lease back.
    monkeypatch.setattr(runner, "_end", lambda *args: None)
    work(run)
    assert (run.state, run.sessions_done) == ("running", 2)
    runs.recover()
    assert work(run).state == "running", "the lease still holds"
    lease_ran_out()
    OrmQ.objects.all().delete()
    runs.recover()
    assert work(run).state == "completed"
    assert (run.sessions_done, len(answering.extracted), len(notes(alice))) == (3, 4, 3)


def test_a_run_whose_worker_always_dies_fails_in_the_end(alice: Owner, agent: Agent) -> None:
    talk(alice, agent)
    run = request(alice)
    for _ in range(runs.MAX_ATTEMPTS):
        assert runs.claim(run.pk) is not None
        lease_ran_out()
        runs.recover()
    assert runs.claim(run.pk) is None
    run.refresh_from_db()
    assert (run.state, run.error["code"]) == ("failed", "worker_lost")


def test_a_holder_that_lost_its_lease_writes_nothing(alice: Owner, agent: Agent, answering: AnsweringModel) -> None:
    talk(alice, agent)
    answering.on_extraction = lambda *_: (lease_ran_out(), extraction("- Late", "Late."))[1]
    run = work(request(alice))
    assert notes(alice) != {}
    assert set(notes(alice).values()) == {""}
    assert run.sessions_done == 0


def test_a_lost_lease_in_the_synthesis_writes_nothing(alice: Owner, agent: Agent, answering: AnsweringModel) -> None:
    talk(alice, agent)
    real = answering.on_synthesis
    answering.on_synthesis = lambda request: (lease_ran_out(), real(request))[1]
    work(request(alice))
    assert not Artifact.objects.exists()


def test_hold_looks_at_token_state_and_epoch(alice: Owner, agent: Agent) -> None:
    talk(alice, agent)
    run = request(alice)
    claim = runs.claim(run.pk)
    assert claim is not None
    assert runs.lock_claimed(claim).pk == run.pk
    Book.objects.update(epoch=2)
    with pytest.raises(RunCancelled, match="cleared"):
        runs.lock_claimed(claim)
    Book.objects.update(epoch=run.book_epoch)
    runs.cancel(run, "Stopped by a person.")
    with pytest.raises(RunCancelled, match="stopped"):
        runs.lock_claimed(claim)
    assert not runs.heartbeat(claim)
    jobs.lease_release(claim.lease, claim.token)
    with pytest.raises(LeaseLost):
        runs.lock_claimed(claim)


def test_sessions_are_chosen_once(alice: Owner, agent: Agent) -> None:
    talk(alice, agent)
    claim = runs.claim(request(alice).pk)
    assert claim is not None
    assert choose_sessions(claim) == 1
    talk(alice, agent)
    assert choose_sessions(claim) == 1
    assert Extraction.objects.count() == 1


@pytest.mark.any_database
def test_a_stopped_run_keeps_what_is_done(alice: Owner, agent: Agent, answering: AnsweringModel) -> None:
    settings_make(concurrency=1)
    for n in range(3):
        talk(alice, agent, hours_ago=n)
    run = request(alice)

    def stopped_at_the_second(session: str, _: object) -> str:
        if len(answering.calls) == 2:
            runs.cancel(run, "Stopped by a person.")
        return extraction("- x", "y")

    answering.on_extraction = stopped_at_the_second
    work(run)
    assert (run.state, run.sessions_done, run.error["message"]) == ("cancelled", 1, "Stopped by a person.")
    assert not Lease.objects.exists()
    assert consolidate(alice).sessions_total == 2


def test_a_long_run_makes_room_for_other_jobs(
    alice: Owner, agent: Agent, answering: AnsweringModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "SLICE_SECONDS", 0.0)
    talk(alice, agent)
    run = work(request(alice))
    assert (run.state, run.sessions_done, run.attempts) == ("scheduled", 0, 0)
    monkeypatch.setattr(runs, "SLICE_SECONDS", 60.0)
    assert work(run).state == "completed"


def test_the_sweep_starts_due_books_once(alice: Owner, charlie: Owner, agent: Agent, answering: AnsweringModel) -> None:
    talk(alice, agent)
    talk(charlie, agent, temporary=True)
    triggers.consolidation_sweep()
    triggers.consolidation_sweep()
    (run,) = ConsolidationRun.objects.all()
    assert (run.owner, run.trigger) == (alice, "startup")
    work(run)
    reset_sweep_throttles()
    triggers.consolidation_sweep()
    assert ConsolidationRun.objects.count() == 1, "nothing is due any more"


def test_runs_that_nobody_asked_for_go_to_the_queue_one_at_a_time(
    alice: Owner, bob: Owner, charlie: Owner, agent: Agent
) -> None:
    for owner in (alice, bob):
        talk(owner, agent)
    triggers.consolidation_sweep()
    assert not ConsolidationRun.objects.exclude(enqueued_at=None).exists()
    triggers.consolidation_sweep()
    triggers.consolidation_sweep()
    first = ConsolidationRun.objects.exclude(enqueued_at=None).get()
    talk(charlie, agent)
    assert request(charlie).enqueued_at is not None, "who asks does not wait"
    assert runs.recover() == 0
    for run in (first, ConsolidationRun.objects.get(owner=charlie)):
        runs.cancel(run, "Stopped by a person.")
    assert runs.recover() == 1, "the next one's turn"


def test_the_schedule_looks_again_after_its_pause(alice: Owner, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triggers._throttle, "_checked_at", time.monotonic())
    talk(alice, agent)
    triggers.consolidation_sweep()
    assert not ConsolidationRun.objects.exists()
    monkeypatch.setattr(triggers._throttle, "_checked_at", time.monotonic() - 3601)
    triggers.consolidation_sweep()
    assert ConsolidationRun.objects.get().trigger == "schedule"


def test_a_lost_job_is_handed_to_the_queue_again(alice: Owner, agent: Agent) -> None:
    talk(alice, agent)
    run = request(alice)
    assert runs.recover() == 0
    ConsolidationRun.objects.update(enqueued_at=timezone.now() - timedelta(seconds=61))
    assert runs.recover() == 1
    assert runs.recover() == 0
    run.refresh_from_db()
    assert run.state == "scheduled"


def test_the_heartbeat_keeps_a_slow_run_and_ends_a_lost_one(alice: Owner, agent: Agent) -> None:
    settings_make(lease_seconds=5)
    talk(alice, agent)
    claim = runs.claim(request(alice).pk)
    assert claim is not None
    Lease.objects.update(expires_at=timezone.now() + timedelta(seconds=1))
    assert runs.heartbeat(claim)
    assert Lease.objects.get().expires_at > timezone.now() + timedelta(seconds=4)
    lease_ran_out()
    assert not runs.heartbeat(claim)


def test_an_unexpected_error_ends_the_run_with_a_word(
    alice: Owner, agent: Agent, answering: AnsweringModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(alice, agent)

    async def breaks(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(runner, "synthesize", breaks)
    run = work(request(alice))
    assert (run.state, run.error["message"]) == (
        "failed",
        "The consolidation was aborted by an internal error (ZeroDivisionError).",
    )
    assert not Lease.objects.exists()


def test_an_upstream_of_another_name_is_not_asked_for_a_role(
    alice: Owner, agent: Agent, answering: AnsweringModel
) -> None:
    configuration_save("model_roles", {})
    talk(alice, agent)
    consolidate(alice)
    assert {(call.upstream, call.model, call.tools) for call in answering.calls} == {("default", "gpt-4o-mini", ())}
