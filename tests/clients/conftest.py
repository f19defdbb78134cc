"""The clients are installed and tested only by `make test-clients`: together they take 2 GB and some minutes."""

import os
from collections.abc import Iterator

import pytest

from tests.clients.matrix import matrix
from tests.clients.obedient_model import serving_obedient_model
from tests.e2e.running import RunningDaybook, running_daybook

collect_ignore = [] if os.environ.get("TEST_CLIENTS") else ["test_programs.py", "test_generated.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table of what each client did."""
    if not collect_ignore:
        terminalreporter.write_line(matrix(terminalreporter.stats))


@pytest.fixture(scope="session")
def daybook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaybook]:
    """A Daybook with the obedient model."""
    home = tmp_path_factory.mktemp("clients") / "home"
    with serving_obedient_model() as upstream:
        env = {"OPENAI_BASE_URL": upstream.url, "OPENAI_API_KEY": "none", "DAYBOOK_MODEL": "obedient"}
        with running_daybook(home, env) as running:
            yield running
