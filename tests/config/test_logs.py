"""The log: clients can neither forge lines nor fill it."""

import asyncio
import io
import json
import logging
import logging.config
from typing import Any

import pytest
from django.test import Client

from config import logs
from config.logs import logging_config
from tests.config.raw_server import raw_server

pytestmark = pytest.mark.any_database
FORGED = "/api/x\n2026-11-28 00:00:00,000 WARNING daybook.sign_in all is well\x1b[2J\u2028end"


def formatted(form: str, *args: Any, **more: Any) -> str:
    """Return a record as formatted in this form of log."""
    config = logging_config(form)
    formatter = logging.config.DictConfigurator(config).configure_formatter(config["formatters"][form])
    assert isinstance(formatter, logging.Formatter)
    record = logging.LogRecord("daybook.x", logging.WARNING, __file__, 1, *args, **more)
    return formatter.format(record)


@pytest.mark.parametrize("form", ["console", "json"])
def test_client_input_cannot_forge_a_log_line(form: str) -> None:
    line = formatted(form, "Forbidden: %s", (FORGED,), None)
    assert line.isprintable()
    assert "all is well" in line


def test_non_latin_text_is_logged_unchanged() -> None:
    assert formatted("console", "Händel, 東京", (), None).endswith(" WARNING daybook.x Händel, 東京")


def test_a_traceback_follows_its_line() -> None:
    try:
        raise ValueError("odd")
    except ValueError as error:
        error_info = (type(error), error, error.__traceback__)
    assert formatted("console", "It failed.", (), error_info).splitlines()[-1] == "ValueError: odd"
    assert "ValueError: odd" in json.loads(formatted("json", "It failed.", (), error_info))["trace"]


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """The stream that gets what an installation writes to standard error."""
    configurator = logging.config.DictConfigurator(logging_config("console"))
    for part in ("formatters", "filters"):
        configured = configurator.config[part]
        configured.update(
            {name: getattr(configurator, f"configure_{part[:-1]}")(configured[name]) for name in configured}
        )
    handler = configurator.configure_handler(configurator.config["handlers"]["stderr"])
    stream = io.StringIO()
    handler.setStream(stream)
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    # A server of another test may have given these loggers handlers of their own, as an installation never does.
    for name in ("uvicorn", "uvicorn.error"):
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
    return stream


def test_a_wrong_host_is_logged_as_one_short_line_per_minute(
    logged: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client()
    for _ in range(3):
        page = client.get("/login/", headers={"Host": "evil.example"})
        assert page.status_code == 400
        assert "This host name is not in DAYBOOK_ALLOWED_HOSTS." in page.content.decode()
    (line,) = logged.getvalue().splitlines()
    assert "WARNING django.security.DisallowedHost A request was refused: Invalid HTTP_HOST header: 'evil" in line
    assert "DAYBOOK_ALLOWED_HOSTS" in line
    monkeypatch.setattr(logs, "_INTERVAL_SECONDS", 0.0)
    assert client.get("/login/", headers={"Host": f"{'x' * 5000}.example"}).status_code == 400
    _, line = logged.getvalue().splitlines()
    assert line.endswith("(2 more since the last such line)")
    assert len(line) < 500


async def test_what_is_not_http_is_logged_as_one_line_per_minute(logged: io.StringIO) -> None:
    async with raw_server(None) as address:
        for _ in range(3):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"\x16\x03\x01 not HTTP\r\n\r\n")
            assert b"400" in await reader.readline()
            writer.close()
    (line,) = logged.getvalue().splitlines()
    assert line.endswith("WARNING uvicorn.error A request was refused: Invalid HTTP request received.")
