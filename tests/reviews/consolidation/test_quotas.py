"""Quotas for requests and tokens, per run and per owner and day, and upstreams that ask for a pause."""

from datetime import timedelta

import pytest
from django.utils import timezone

from memories.errors import RateLimited
from memories.models import Owner
from reviews.models import ConsolidationDay, ConsolidationRun
from tests.reviews.consolidation.answering_model import AnsweringModel, synthesis
from tests.reviews.consolidation.rows import consolidate, document, request, run_slice, settings_make, talk

pytestmark = pytest.mark.usefixtures("consolidation_on")


@pytest.mark.any_database
def test_a_runs_request_quota_reserves_one_for_the_synthesis(alice: Owner, answering: AnsweringModel) -> None:
    settings_make(max_requests_per_run=3, concurrency=1)
    for n in range(4):
        talk(alice, hours_ago=n)
    run = consolidate(alice)
    assert (run.state, run.ceiling, run.requests) == ("completed", "run", 3)
    assert (len(answering.extracted), len(answering.syntheses)) == (2, 1)
    assert consolidate(alice).sessions_done == 2


def test_a_runs_token_quota_stops_the_extractions(alice: Owner, answering: AnsweringModel) -> None:
    settings_make(max_tokens_per_run=30_000, synthesis_token_limit=1000, concurrency=1)
    answering.usage = {"total_tokens": 12_000}
    for n in range(4):
        talk(alice, hours_ago=n)
    run = consolidate(alice)
    assert run.ceiling == "run"
    assert len(answering.extracted) == 3


def test_the_daily_request_quota_pauses_a_run_until_tomorrow(alice: Owner, answering: AnsweringModel) -> None:
    settings_make(max_requests_per_day=1, concurrency=1)
    for n in range(2):
        talk(alice, hours_ago=n)
    run = run_slice(request(alice))
    assert (run.state, run.error["code"], run.sessions_done) == ("paused", "ceiling_reached", 1)
    assert run.not_before.date() == (timezone.now() + timedelta(days=1)).date()
    assert ConsolidationDay.objects.get().requests == 1
    ConsolidationDay.objects.update(day=timezone.now().date() - timedelta(days=1))
    ConsolidationRun.objects.update(not_before=timezone.now())
    run_slice(run)
    assert run.sessions_done == 2


@pytest.mark.any_database
def test_the_daily_token_quota_pauses_a_run(alice: Owner, charlie: Owner, answering: AnsweringModel) -> None:
    settings_make(max_tokens_per_day=20_000, concurrency=1)
    answering.usage = {"total_tokens": 18_000}
    for n in range(2):
        talk(alice, hours_ago=n)
    run = run_slice(request(alice))
    assert (run.state, run.error["code"], run.sessions_done) == ("paused", "ceiling_reached", 1)
    assert ConsolidationDay.objects.get().tokens == 18_000
    talk(charlie)
    assert run_slice(request(charlie)).sessions_done == 1, "each owner has their own quota"


@pytest.mark.any_database
def test_a_rate_limit_during_the_synthesis_pauses_the_run(alice: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    answering.on_synthesis = lambda _: RateLimited("Slow down.", retry_after="90")
    run = run_slice(request(alice))
    assert (run.state, run.phase, run.failures) == ("paused", "synthesis", 0)
    assert timedelta(seconds=80) < run.not_before - timezone.now() <= timedelta(seconds=90)
    answering.on_synthesis = lambda _: synthesis("# Later")
    ConsolidationRun.objects.update(not_before=timezone.now())
    assert run_slice(run).state == "completed"
    assert (document(alice, "MEMORY.md"), len(answering.extracted)) == ("# Later", 1)
