"""The log: what anybody can cause does not fill it."""

import logging
from collections.abc import Iterator
from logging.config import dictConfig

import pytest
from django.conf import settings
from django.test import Client

from config import logs

pytestmark = pytest.mark.any_database


@pytest.fixture
def logged(capsys: pytest.CaptureFixture[str]) -> Iterator[pytest.CaptureFixture[str]]:
    """What the log of an installation says, on standard error."""
    root = logging.getLogger()
    before = list(root.handlers)
    dictConfig(logs.logging_config("console"))
    yield capsys
    dictConfig(settings.LOGGING)
    root.handlers = before


def test_a_wrong_host_is_one_short_line_a_minute(
    logged: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client()
    for _ in range(3):
        assert client.get("/login/", headers={"Host": "evil.example"}).status_code == 400
    (line,) = logged.readouterr().err.splitlines()
    assert (
        "WARNING django.security.DisallowedHost A request was refused: Invalid HTTP_HOST header: 'evil.example'" in line
    )
    assert "DAYBOOK_ALLOWED_HOSTS" in line
    monkeypatch.setattr(logs, "_ONCE_IN_SECONDS", 0.0)
    assert client.get("/login/", headers={"Host": f"{'x' * 5000}.example"}).status_code == 400
    (line,) = logged.readouterr().err.splitlines()
    assert line.endswith("(2 more since the last such line)")
    assert len(line) < 500
