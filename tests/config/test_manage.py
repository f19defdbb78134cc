"""manage.py: what ends a command without a traceback."""

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import IntegrityError, OperationalError

import manage
from config import health
from config.serving import collector


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """A function that runs a command which raises an error, and returns the exit code or text of the program."""

    def run(error: BaseException, *arguments: str) -> object:
        def command(argv: list[str]) -> None:
            raise error

        monkeypatch.setattr(manage, "execute_from_command_line", command)
        monkeypatch.setattr(sys, "argv", ["manage.py", *arguments])
        with pytest.raises(SystemExit) as end:
            manage.main()
        return end.value.code

    yield run
    collector.resume()


NOT_UTF_8 = b"x\xff".decode("utf-8", "surrogateescape")


def test_an_argument_that_is_not_utf_8_is_one_line(ends: Callable[..., object]) -> None:
    refused = UnicodeEncodeError("utf-8", NOT_UTF_8, 1, 2, "surrogates not allowed")
    said = ends(refused, "apikey", "create", "--user", NOT_UTF_8)
    assert str(said).startswith("daybook: an argument contains bytes that are not UTF-8.")


def test_another_text_that_cannot_be_encoded_is_a_defect(ends: Callable[..., object]) -> None:
    with pytest.raises(UnicodeEncodeError):
        ends(UnicodeEncodeError("utf-8", NOT_UTF_8, 1, 2, "surrogates not allowed"), "apikey", "list")


def test_output_is_utf_8_in_every_locale(ends: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", out)
    ends(SystemExit(0))
    out.write("“café”")
    out.flush()
    assert out.buffer.getvalue() == "“café”".encode()


def test_a_command_works_without_standard_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    monkeypatch.setattr(manage, "execute_from_command_line", lambda argv: sys.stdout.write("done"))
    manage.main()
    collector.resume()
    assert (sys.stdin.read(), sys.stderr.write("x")) == ("", 1)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        assert os.get_inheritable(stream.fileno()), "`up` becomes the supervisor, which writes to them too"
        stream.close()


def test_ctrl_c_is_no_traceback(ends: Callable[..., object]) -> None:
    assert ends(KeyboardInterrupt()) == 130


@pytest.mark.django_db
def test_a_locked_database_is_one_line(ends: Callable[..., object]) -> None:
    said = str(ends(OperationalError("database is locked")))
    assert said.startswith("daybook: ")
    assert said.endswith("can't be used: database is locked.")


@pytest.mark.django_db
def test_a_database_of_an_older_version_says_what_to_do(
    ends: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "pending_migrations", lambda: ["gateway.0019_new"])
    said = str(ends(OperationalError("no such column: gateway_apikey.new")))
    assert said.startswith("daybook: this database is of an older version, or another command is migrating it. Run ")
    assert "`python manage.py up` (or `prepare`)" in said


@pytest.mark.django_db
def test_another_error_of_the_database_is_a_defect(ends: Callable[..., object]) -> None:
    with pytest.raises(IntegrityError):
        ends(IntegrityError("UNIQUE constraint failed"))


def test_a_reader_that_has_enough_ends_a_command_quietly(
    ends: Callable[..., object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (tmp_path / "out").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert ends(BrokenPipeError()) == 141
        assert os.path.samestat(os.fstat(out.fileno()), Path(os.devnull).stat())
