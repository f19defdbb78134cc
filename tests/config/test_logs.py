"""The log: what anybody can cause does not fill it."""

import io
import logging
from logging.config import DictConfigurator

import pytest
from django.test import Client

from config import logs

pytestmark = pytest.mark.any_database


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What an installation writes to standard error."""
    configurator = DictConfigurator(logs.logging_config("console"))
    for part in ("formatters", "filters"):
        configured = configurator.config[part]
        configured.update(
            {name: getattr(configurator, f"configure_{part[:-1]}")(configured[name]) for name in configured}
        )
    handler = configurator.configure_handler(configurator.config["handlers"]["stderr"])
    stream = io.StringIO()
    handler.setStream(stream)
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    return stream


def test_a_wrong_host_is_one_short_line_a_minute(logged: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    for _ in range(3):
        assert client.get("/login/", headers={"Host": "evil.example"}).status_code == 400
    (line,) = logged.getvalue().splitlines()
    assert "WARNING django.security.DisallowedHost A request was refused: Invalid HTTP_HOST header: 'evil" in line
    assert "DAYBOOK_ALLOWED_HOSTS" in line
    monkeypatch.setattr(logs, "_ONCE_IN_SECONDS", 0.0)
    assert client.get("/login/", headers={"Host": f"{'x' * 5000}.example"}).status_code == 400
    _, line = logged.getvalue().splitlines()
    assert line.endswith("(2 more since the last such line)")
    assert len(line) < 500
