import logging
from collections.abc import Callable

import pytest

Unclaimed = Callable[[], list[str]]


@pytest.fixture
def unclaimed(caplog: pytest.LogCaptureFixture) -> Unclaimed:
    """Return a function that returns the log messages about jobs that were not claimed."""
    caplog.set_level(logging.INFO, "daybook.jobs")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "daybook.jobs"]
