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
    result = manage(home, "up", "--port", str(busy_port), anew=True)
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
    assert result.stderr == ("daybook: this database is still empty. Run `python manage.py up` (or `prepare`) first.\n")


AWAY = {
    "DATABASE_URL": "postgres://me:secret@127.0.0.1:1/x",
    "DAYBOOK_SECRET_KEY": "a-key-of-this-test-only-0123456789abcdef",
    "DAYBOOK_DB_BUSY_SECONDS": "0.1",
}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (AWAY, "daybook: DATABASE_URL is a value that is not shown; the database can't be used: Connection refused."),
        ({}, "the database daybook.sqlite3 in it can't be used: file is not a database."),
    ],
    ids=["away", "damaged"],
)
def test_a_command_without_a_usable_database_is_one_line_and_doctor_looks_at_the_rest(
    home: Path, given: dict[str, str], said: str
) -> None:
    home.mkdir(exist_ok=True)
    (home / "daybook.sqlite3").write_bytes(b"no database" * 1000)
    result = manage(home, "apikey", "list", env=given)
    assert (result.returncode, result.stdout) == (1, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    result = manage(home, "doctor", env=given)
    assert (result.returncode, result.stderr) == (1, "")
    assert "failed   database: does not answer: " in result.stdout
    assert "failed   queue: the database does not answer" in result.stdout
    assert "upstream: none is configured" in result.stdout


@pytest.mark.parametrize("name", ["secret_key", "up.lock"])
def test_a_home_whose_files_are_not_ours_is_one_line(home: Path, name: str) -> None:
    (home / name).mkdir(parents=True)  # a file that cannot be opened, for root too
    result = manage(home, "up")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"daybook: DAYBOOK_HOME is '{home}'; ")
    assert result.stderr.count("\n") == 1
    none_left(home)
