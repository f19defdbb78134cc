import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine
from django.core.cache import cache

from memories.models import Owner
from reviews.models import ReviewRun
from tests.reviews.talk import DONE, adds, newest_review, reviewed_session, run_review, say
from tests.scripted_model import Says, ScriptedModel

MakeReview = Callable[..., ReviewRun]
Unclaimed = Callable[[], list[str]]
NOON = datetime(2026, 5, 20, 12, tzinfo=UTC)


@pytest.fixture
def waiting_review(alice: Owner, model: ScriptedModel) -> MakeReview:
    """Return a function that makes a review whose writes wait for a person."""

    def make(*steps: Says, **settings: Any) -> ReviewRun:
        say(reviewed_session(alice, memory_review_approval=True, **settings))
        model.script(*(steps or (adds("Is vegetarian.", "Likes tea."),)), DONE)
        return run_review(newest_review())

    return make


@pytest.fixture
def noon() -> Any:
    """Freeze the time, so that no test runs over midnight, and clear the cache."""
    cache.clear()
    with time_machine.travel(NOON, tick=False):
        yield


@pytest.fixture
def unclaimed(caplog: pytest.LogCaptureFixture) -> Unclaimed:
    """Return a function that returns the log messages about jobs that were not claimed."""
    caplog.set_level(logging.INFO, "daybook.jobs")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "daybook.jobs"]
