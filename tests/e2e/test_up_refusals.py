"""`manage.py up` with something wrong: one line that names the variable, exit code 1, and nothing is started. Here is
one of each place that refuses (settings, ready(), the socket, the preparation); all values: tests of those places."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.running import manage, none_left

pytestmark = [pytest.mark.e2e, pytest.mark.any_database]


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_busy_port_is_one_line_and_nothing_is_made(home: Path, busy_port: int) -> None:
    result = manage(home, "up", "--port", str(busy_port))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        f"daybook: DAYBOOK_PORT is {busy_port}; another program already listens there (on 127.0.0.1).\n"
    )
    assert not (home / "daybook.sqlite3").exists()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DAYBOOK_PORT", "eighty"),
        ("DATABASE_URL", "mysql://localhost/x"),
        ("DAYBOOK_ATTACHMENTS", "s3://bucket"),
        ("DAYBOOK_ATTACHMENTS", '{"BACKEND": "pathlib.PurePath"}'),
    ],
)
def test_a_wrong_variable_is_one_line_that_names_it(home: Path, variable: str, value: str) -> None:
    result = manage(home, "up", env={variable: value, "DAYBOOK_SECRET_KEY": "a-key-of-this-test-only-0123456789abcdef"})
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"daybook: {variable} is ")
    assert result.stderr.count("\n") == 1
    none_left(home)


def test_a_first_value_that_is_wrong_is_one_line_that_names_it(home: Path, storage: dict[str, str]) -> None:
    result = manage(home, "up", env=storage | {"DAYBOOK_AGENTS": "/no/such.yaml"})
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("daybook: DAYBOOK_AGENTS is ")
    assert result.stderr.count("\n") == 1
    none_left(home)


@pytest.mark.parametrize("command", ["check", "doctor"])
def test_a_provider_that_cannot_be_loaded_stops_the_commands_that_check(home: Path, command: str) -> None:
    result = manage(home, command, env={"DAYBOOK_MEMORY_PROVIDERS": "memories.providers.Notebok"})
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("daybook: DAYBOOK_MEMORY_PROVIDERS is 'memories.providers.Notebok'; it cannot be")
    assert result.stderr.count("\n") == 1


def test_a_database_that_is_away_is_one_line(home: Path) -> None:
    given = {
        "DATABASE_URL": "postgres://me:secret@127.0.0.1:1/x",
        "DAYBOOK_SECRET_KEY": "a-key-of-this-test-only-0123456789abcdef",
    }
    result = manage(home, "up", env=given)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert result.stderr.startswith("daybook: DATABASE_URL is a value that is not shown; the database can't be used")
    assert "secret@" not in result.stderr


def test_a_command_before_the_first_start_says_what_to_do_first(home: Path, unmigrated: dict[str, str]) -> None:
    result = manage(home, "apikey", "create", "--user", "admin", "--name", "laptop", env=unmigrated)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == ("daybook: this database is empty yet. Run `python manage.py up` (or `prepare`) first.\n")
