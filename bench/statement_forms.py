"""Find the tests that send a statement that no other test sends: those `make test-scale` has to run.

    DATABASE_URL=… REDIS_URL=… python -m pytest -p bench.statement_forms -n0 -m "not browser and not e2e" tests
    python -m bench.statement_forms statement_forms.json

A form is a statement without its values, a statement with the error it raised, or a Redis command. The second command
goes through the test functions, the most expensive first, and prints those whose forms all occur in remaining tests,
with their processor time in seconds: they may be marked `any_database`. Tests with real transactions always remain."""

import hashlib
import json
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_VALUES = (
    (re.compile(r"\s+"), " "),
    (re.compile(r'"(?:_django_curs_|s\d)[^"]*"'), '"x"'),  # cursors and savepoints
    (re.compile(r"'(?:[^']|'')*'"), "'s'"),
    (re.compile(r"%s(?:::[a-z\[\]]+)?(?:, ?%s(?:::[a-z\[\]]+)?)+"), "%s"),
    (re.compile(r"\(%s\)(?:, ?\(%s\))+"), "(%s)"),
    (re.compile(r"(?<![A-Za-z_\"])\d+(?:\.\d+)?"), "0"),
)
_sent: set[str] = set()
_rows: list[dict[str, Any]] = []


def _form(statement: str) -> str:
    for pattern, replacement in _VALUES:
        statement = pattern.sub(replacement, statement)
    return hashlib.sha256(statement.encode()).hexdigest()[:12]


def _recording(original: Any) -> Any:
    def recorded(self: Any, statement: Any, *args: Any, **kwargs: Any) -> Any:
        _sent.add(_form(str(statement)))
        try:
            return original(self, statement, *args, **kwargs)
        except Exception as error:
            _sent.add(_form(f"{type(error).__name__} {statement}"))
            raise

    return recorded


def pytest_configure() -> None:
    """Record from now on what is sent to the servers."""
    import redis.asyncio
    from django.db.backends.utils import CursorWrapper

    for owner, name in (
        (CursorWrapper, "execute"),
        (CursorWrapper, "executemany"),
        (redis.Redis, "execute_command"),
        (redis.asyncio.Redis, "execute_command"),
    ):
        setattr(owner, name, _recording(getattr(owner, name)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Record the forms and the time of one test."""
    _sent.clear()
    began = time.process_time()
    done = yield
    database = item.get_closest_marker("django_db")
    stays = "transactional_db" in item.fixturenames or bool(database and database.kwargs.get("transaction"))
    seconds = time.process_time() - began
    _rows.append({"test": item.nodeid, "seconds": seconds, "forms": sorted(_sent), "stays": stays})
    return done


def pytest_sessionfinish() -> None:
    """Write the recorded tests to a file."""
    Path("statement_forms.json").write_text(json.dumps(_rows))


def main(path: str) -> None:
    """Print the test functions whose forms all occur in other tests."""
    functions: dict[str, dict[str, Any]] = defaultdict(lambda: {"seconds": 0.0, "forms": set(), "stays": False})
    for row in json.loads(Path(path).read_text()):
        function = functions[row["test"].partition("[")[0]]
        function["seconds"] += row["seconds"]
        function["forms"].update(row["forms"])
        function["stays"] |= row["stays"]
    seen = Counter(form for function in functions.values() for form in function["forms"])
    for name, function in sorted(functions.items(), key=lambda each: -each[1]["seconds"]):
        if not function["stays"] and all(seen[form] > 1 for form in function["forms"]):
            seen.subtract(function["forms"])
            print(f"{function['seconds']:7.2f} {name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
