"""Mails over SMTP: an address that cannot be used is logged in one line and does not affect the others"""

from collections.abc import Generator
from typing import Any

import pytest

from gateway.accounts.mails import mail_send
from tests.gateway.mail_server import MailServer, mail_server

INVALID = ["root@internal@example.org", f"root@{'x' * 70}.org", "@", "root@", "root@example.org\nBcc: eve@example.org"]


@pytest.fixture
def server(settings: Any) -> Generator[MailServer]:
    with mail_server() as listening:
        host, port = listening.server_address[:2]
        settings.MAIL = {"EMAIL_HOST": host}
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = host, port, 5
        settings.DEFAULT_FROM_EMAIL = "daybook@example.org"
        yield listening


@pytest.mark.parametrize("address", INVALID)
def test_an_invalid_address_does_not_affect_the_others(
    server: MailServer, caplog: pytest.LogCaptureFixture, address: str
) -> None:
    assert mail_send([address, "root@example.org"], "Attention", "alert", said="Five failed.") is False
    assert server.recipients == ["root@example.org"]
    [line] = caplog.messages
    assert line.startswith("A mail (alert) was not sent: ")
    assert address not in line


@pytest.mark.parametrize("address", ["übung@example.org", "root@exämple.org", '"a b"@example.org', "a@[127.0.0.1]"])
def test_international_and_unusual_addresses_are_accepted(server: MailServer, address: str) -> None:
    assert mail_send([address], "Attention", "alert", said="Five failed.") is True
    assert len(server.recipients) == 1
