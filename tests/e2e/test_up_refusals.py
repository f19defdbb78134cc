"""`manage.py up` with a wrong value: a one-line error that names the variable, exit code 1, and nothing is started.

There is one test for each place that checks values (settings, ready(), the socket, the preparation). Those places' own
tests cover all values."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.running import manage, wait_until_none_left

pytestmark = [pytest.mark.e2e, pytest.mark.any_database]


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_busy_port_is_a_one_line_error_and_nothing_is_created(home: Path, busy_port: int) -> None:
    result = manage(home, "up", "--port", str(busy_port), own_interpreter=True)
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
def test_a_wrong_variable_is_named_in_a_one_line_error(home: Path, variable: str, value: str) -> None:
    result = manage(home, "up", env={variable: value, "DAYBOOK_SECRET_KEY": "a-key-of-this-test-only-0123456789abcdef"})
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"daybook: {variable} is ")
    assert result.stderr.count("\n") == 1
    wait_until_none_left(home)


def test_a_wrong_agents_file_is_named_in_a_one_line_error(home: Path, storage: dict[str, str]) -> None:
    result = manage(home, "up", env=storage | {"DAYBOOK_AGENTS": "/no/such.yaml"})
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("daybook: DAYBOOK_AGENTS is ")
    assert result.stderr.count("\n") == 1
    wait_until_none_left(home)


@pytest.mark.parametrize("command", ["check", "doctor"])
def test_a_provider_that_cannot_be_loaded_stops_check_and_doctor(home: Path, command: str) -> None:
    result = manage(home, command, env={"DAYBOOK_MEMORY_PROVIDERS": "memories.providers.Notebok"})
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("daybook: DAYBOOK_MEMORY_PROVIDERS is 'memories.providers.Notebok'; it cannot be")
    assert result.stderr.count("\n") == 1


def test_an_unreachable_database_is_a_one_line_error(home: Path) -> None:
    env = {
        "DATABASE_URL": "postgres://me:secret@127.0.0.1:1/x",
        "DAYBOOK_SECRET_KEY": "a-key-of-this-test-only-0123456789abcdef",
    }
    result = manage(home, "up", env=env)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert result.stderr.startswith("daybook: DATABASE_URL is a value that is not shown; the database can't be used")
    assert result.stderr.endswith(": Connection refused.\n")
    assert "secret@" not in result.stderr


def test_a_command_before_the_first_start_explains_what_to_do(home: Path, unmigrated: dict[str, str]) -> None:
    result = manage(home, "apikey", "create", "--user", "admin", "--name", "laptop", env=unmigrated)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == ("daybook: this database is still empty. Run `python manage.py up` (or `prepare`) first.\n")


UNREACHABLE = {
    "DATABASE_URL": "postgres://me:secret@127.0.0.1:1/x",
    "DAYBOOK_SECRET_KEY": "a-key-of-this-test-only-0123456789abcdef",
    "DAYBOOK_DB_BUSY_SECONDS": "0.1",
}


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (
            UNREACHABLE,
            "daybook: DATABASE_URL is a value that is not shown; the database can't be used: Connection refused.",
        ),
        ({}, "the database daybook.sqlite3 in it can't be used: file is not a database."),
    ],
    ids=["unreachable", "damaged"],
)
def test_without_a_usable_database_commands_fail_with_one_line_and_doctor_checks_the_rest(
    home: Path, env: dict[str, str], message: str
) -> None:
    home.mkdir(exist_ok=True)
    (home / "daybook.sqlite3").write_bytes(b"no database" * 1000)
    result = manage(home, "apikey", "list", env=env)
    assert (result.returncode, result.stdout) == (1, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    result = manage(home, "doctor", env=env)
    assert (result.returncode, result.stderr) == (1, "")
    assert "failed   database: does not answer: " in result.stdout
    assert "failed   queue: the database does not answer" in result.stdout
    assert "upstream: none is configured" in result.stdout


@pytest.mark.parametrize("name", ["secret_key", "up.lock"])
def test_a_home_with_unusable_files_is_a_one_line_error(home: Path, name: str) -> None:
    (home / name).mkdir(parents=True)  # a file that cannot be opened, for root too
    result = manage(home, "up")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"daybook: DAYBOOK_HOME is '{home}'; ")
    assert result.stderr.count("\n") == 1
    wait_until_none_left(home)
