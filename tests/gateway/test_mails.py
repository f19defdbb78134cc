"""Mails to a server that speaks SMTP: what cannot be sent keeps nothing from the others, and is one line of the log"""

from collections.abc import Generator
from typing import Any

import pytest

from gateway.accounts.mails import mail_send
from tests.gateway.mail_server import MailServer, mail_server

ODD = ["root@internal@example.org", f"root@{'x' * 70}.org", "@", "root@", "root@example.org\nBcc: eve@example.org"]


@pytest.fixture
def server(settings: Any) -> Generator[MailServer]:
    with mail_server() as listening:
        host, port = listening.server_address[:2]
        settings.MAIL = {"EMAIL_HOST": host}
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = host, port, 5
        settings.DEFAULT_FROM_EMAIL = "daybook@example.org"
        yield listening


@pytest.mark.parametrize("odd", ODD)
def test_an_address_that_is_none_keeps_nothing_from_the_others(
    server: MailServer, caplog: pytest.LogCaptureFixture, odd: str
) -> None:
    assert mail_send([odd, "root@example.org"], "Attention", "alert", said="Five failed.") is False
    assert server.recipients == ["root@example.org"]
    [line] = caplog.messages
    assert line.startswith("A mail (alert) was not sent: ")
    assert odd not in line


@pytest.mark.parametrize("address", ["übung@example.org", "root@exämple.org", '"a b"@example.org', "a@[127.0.0.1]"])
def test_an_address_of_another_alphabet_is_sent_to(server: MailServer, address: str) -> None:
    assert mail_send([address], "Attention", "alert", said="Five failed.") is True
    assert len(server.recipients) == 1
