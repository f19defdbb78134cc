"""Quotas of requests and tokens, of a run and of an owner's day; and an upstream that asks for a pause."""

from datetime import timedelta

import pytest
from django.utils import timezone

from gateway.models import Agent
from memories.errors import RateLimited
from memories.models import Owner
from reviews.models import ConsolidationDay, ConsolidationRun
from tests.reviews.consolidation.answering_model import AnsweringModel, synthesis
from tests.reviews.consolidation.rows import consolidate, document, request, settings_make, talk, work

pytestmark = pytest.mark.usefixtures("consolidation_on")


@pytest.mark.any_database
def test_a_runs_ceiling_of_requests_leaves_one_for_the_documents(
    alice: Owner, agent: Agent, answering: AnsweringModel
) -> None:
    settings_make(max_requests_per_run=3, concurrency=1)
    for n in range(4):
        talk(alice, agent, hours_ago=n)
    run = consolidate(alice)
    assert (run.state, run.ceiling, run.requests) == ("completed", "run", 3)
    assert (len(answering.extracted), len(answering.syntheses)) == (2, 1)
    assert consolidate(alice).sessions_done == 2


def test_a_runs_ceiling_of_tokens_stops_it(alice: Owner, agent: Agent, answering: AnsweringModel) -> None:
    settings_make(max_tokens_per_run=30_000, synthesis_token_limit=1000, concurrency=1)
    answering.usage = {"total_tokens": 12_000}
    for n in range(4):
        talk(alice, agent, hours_ago=n)
    run = consolidate(alice)
    assert run.ceiling == "run"
    assert len(answering.extracted) == 3


def test_the_days_ceiling_pauses_until_tomorrow(alice: Owner, agent: Agent, answering: AnsweringModel) -> None:
    settings_make(max_requests_per_day=1, concurrency=1)
    for n in range(2):
        talk(alice, agent, hours_ago=n)
    run = work(request(alice))
    assert (run.state, run.error["code"], run.sessions_done) == ("paused", "ceiling_reached", 1)
    assert run.not_before.date() == (timezone.now() + timedelta(days=1)).date()
    assert ConsolidationDay.objects.get().requests == 1
    ConsolidationDay.objects.update(day=timezone.now().date() - timedelta(days=1))
    ConsolidationRun.objects.update(not_before=timezone.now())
    work(run)
    assert run.sessions_done == 2


def test_the_days_tokens_are_a_ceiling_too(
    alice: Owner, charlie: Owner, agent: Agent, answering: AnsweringModel
) -> None:
    settings_make(max_tokens_per_day=20_000, concurrency=1)
    answering.usage = {"total_tokens": 18_000}
    for n in range(2):
        talk(alice, agent, hours_ago=n)
    run = work(request(alice))
    assert (run.state, run.error["code"], run.sessions_done) == ("paused", "ceiling_reached", 1)
    assert ConsolidationDay.objects.get().tokens == 18_000
    talk(charlie, agent)
    assert work(request(charlie)).sessions_done == 1, "everybody has a day of their own"


def test_a_rate_limit_while_the_documents_are_written_pauses_the_run(
    alice: Owner, agent: Agent, answering: AnsweringModel
) -> None:
    talk(alice, agent)
    answering.on_synthesis = lambda _: RateLimited("Slow down.", retry_after="90")
    run = work(request(alice))
    assert (run.state, run.phase, run.failures) == ("paused", "synthesis", 0)
    assert timedelta(seconds=80) < run.not_before - timezone.now() <= timedelta(seconds=90)
    answering.on_synthesis = lambda _: synthesis("# Later")
    ConsolidationRun.objects.update(not_before=timezone.now())
    assert work(run).state == "completed"
    assert (document(alice, "MEMORY.md"), len(answering.extracted)) == ("# Later", 1)
