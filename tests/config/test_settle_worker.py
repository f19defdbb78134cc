"""become_worker: a worker shares no connection with its forks and waits longer for the database."""

from pathlib import Path

import pytest

from tests.config.test_deployment import DEPLOYED, manage

_SETTLE = """
from django.db import connection, connections
from memories.database.access import become_worker
{before}
become_worker()
options = connections.settings["default"]["OPTIONS"]
print(connection.connection, sorted(set(options) & {{"pool", "timeout"}}), options.get("timeout"))
{after}
"""
_ON_SQLITE = _SETTLE.format(
    before="connection.ensure_connection()",
    after="cursor = connection.cursor(); cursor.execute('PRAGMA busy_timeout'); print(cursor.fetchone()[0])",
)
_ON_POSTGRESQL = _SETTLE.format(
    before="assert connections.settings['default']['OPTIONS']['pool']",
    after="print(connections.settings['default']['CONN_MAX_AGE'])",
)


@pytest.mark.parametrize(
    ("code", "variables", "printed"),
    [
        (_ON_SQLITE, {}, ["None ['timeout'] 30.0", "30000"]),
        (_ON_POSTGRESQL, DEPLOYED, ["None [] None", "300"]),
    ],
    ids=["SQLite", "PostgreSQL"],
)
def test_a_worker_has_its_own_connection_and_a_longer_timeout(
    tmp_path: Path, code: str, variables: dict[str, str], printed: list[str]
) -> None:
    done = manage(tmp_path, "shell", "--no-imports", "-c", code, **variables)
    assert done.stdout.splitlines() == printed, done.stderr
