"""A database of PostgreSQL that cannot store every character is not used."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.conf import settings as configured
from django.db import connections

from config import databases, doctor
from config.environment import ConfigurationError
from config.findings import Level
from config.processes import bootstrap

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        configured.DATABASES["default"]["ENGINE"].endswith("sqlite3"), reason="SQLite's encoding is always UTF-8"
    ),
]
REASON = "its encoding is LATIN1, so it cannot store every text"


@pytest.fixture
def latin1(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use an empty database with the encoding LATIN1."""
    database: Any = connections["default"]
    other = database.copy()
    other.settings_dict["NAME"] = "daybook_latin1"
    other.settings_dict["OPTIONS"].pop("pool")
    for module in (bootstrap, databases, doctor):
        monkeypatch.setattr(module, "connection", other)
    with psycopg.connect(**database.get_connection_params(), autocommit=True) as server:
        server.execute("DROP DATABASE IF EXISTS daybook_latin1")
        server.execute("CREATE DATABASE daybook_latin1 TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'")
        yield
        other.close()
        server.execute("DROP DATABASE daybook_latin1")


def test_the_first_start_refuses_it(latin1: None) -> None:
    with pytest.raises(ConfigurationError, match=f"^DATABASE_URL is a value that is not shown; {REASON}"):
        bootstrap._refuse_unusable_postgres()


def test_doctor_warns_of_it(latin1: None) -> None:
    found = doctor._database()
    assert (found.level, found.text.startswith(REASON)) == (Level.WARNING, True)


def test_utf_8_is_used() -> None:
    bootstrap._refuse_unusable_postgres()
    assert doctor._database().level is Level.OK
