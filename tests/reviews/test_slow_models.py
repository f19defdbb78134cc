"""Reviews and consolidations with models that think for longer than the idle timeout, over real HTTP."""

import asyncio
from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from gateway import upstream
from gateway.upstream import OpenAIModel
from memories.models import Memory, Owner
from reviews.consolidation.runner import execute as consolidation_execute
from reviews.models import ReviewRun
from reviews.runner import execute
from tests.factories import agent_make
from tests.reviews.consolidation.answering_model import extraction, synthesis
from tests.reviews.consolidation.rows import document, request, settings_make, talk
from tests.reviews.talk import newest_review, reviewed_session, say
from tests.upstream_server import UpstreamServer, serving_upstream

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]
ADD = {"name": "add_memory", "arguments": {"content": "Likes tea.", "target": "user"}}


@pytest.fixture
def server(settings: Settings) -> Iterator[UpstreamServer]:
    with serving_upstream() as server:
        settings.DAYBOOK_UPSTREAMS = {"default": {"url": server.url, "key": ""}}
        settings.UPSTREAM_IDLE_SECONDS = 0.3
        upstream.install(OpenAIModel())
        yield server


def run_review(review: ReviewRun) -> ReviewRun:
    """Execute a review as a worker does, with its own connections."""
    with asyncio.Runner() as runner:
        execute(review.pk, runner.run)
        runner.run(upstream.disconnect())
    return ReviewRun.objects.get(pk=review.pk)


def test_a_review_succeeds_although_its_model_thinks_for_long(alice: Owner, server: UpstreamServer) -> None:
    say(reviewed_session(alice, memory_review_timeout=60))
    server.script({"calls": [ADD], "think_seconds": 1}, {"text": "Done.", "think_seconds": 1})
    review = run_review(newest_review())
    assert (review.state, review.error) == ("saved", None)
    assert [memory.content for memory in Memory.objects.all()] == ["Likes tea."]
    assert all(row["stream"] for row in server.requests())


def test_a_review_is_retried_if_its_model_hangs_while_answering(alice: Owner, server: UpstreamServer) -> None:
    say(reviewed_session(alice, memory_review_timeout=60))
    server.script({"text": ["Let me ", "see"], "hang": "middle"})
    review = run_review(newest_review())
    assert (review.state, review.error["code"]) == ("scheduled", "upstream_timeout")


def test_a_review_beyond_its_time_limit_times_out(alice: Owner, server: UpstreamServer) -> None:
    say(reviewed_session(alice, memory_review_timeout=1))
    server.script({"text": "Done.", "think_seconds": 60})
    assert run_review(newest_review()).state == "timed_out"


def test_a_consolidation_waits_up_to_its_request_timeout(alice: Owner, server: UpstreamServer) -> None:
    settings_make(request_seconds=60)
    talk(alice, "I deploy with make ship.", agent=agent_make())
    server.script(
        {"text": extraction("- Deploys with make ship.", "About deploying."), "think_seconds": 1},
        {"text": synthesis("# Memory"), "think_seconds": 1},
    )
    run = request(alice)
    with asyncio.Runner() as runner:
        consolidation_execute(run.pk, runner.run)
        runner.run(upstream.disconnect())
    run.refresh_from_db()
    assert (run.state, run.error) == ("completed", None)
    assert document(alice, "MEMORY.md") == "# Memory"
