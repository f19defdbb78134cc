"""Sends mails as plain text. They are sent from jobs that refer to people by id, so that neither the queue nor the log
contains an address or a link."""

import logging
import smtplib
from enum import StrEnum
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage
from django.http import HttpRequest
from django.template.loader import render_to_string

from gateway.oauth.addresses import public_origin

_PORTS = {"http": "80", "https": "443"}
_TEMPORARY = range(400, 500)  # SMTP reply codes
logger = logging.getLogger("daybook.mail")


class Outcome(StrEnum):
    """The result of an attempt to send a mail or an alert."""

    SENT = "sent"
    LATER = "to be tried again"
    REFUSED = "given up"


def mail_configured() -> bool:
    return settings.MAIL is not None


def mail_origin(request: HttpRequest) -> str:
    """Return the origin for links in mails. If DAYBOOK_TRUSTED_ORIGINS is set, it is one of them, so that a forged Host
    header cannot make mails link to another site: that of the request, otherwise the first one, those of this Daybook
    before other sites, https before http. Apps' origins are not addresses. Without any, a forged header can still name
    another port; on this computer it is that of this server."""
    origin = public_origin(request)
    if origin in settings.TRUSTED_ORIGINS:
        return origin
    web = [one for one in settings.TRUSTED_ORIGINS if one.startswith(("https:", "http:"))]
    return min(
        web,
        key=lambda one: (one not in settings.OWN_ORIGINS, one.startswith("http:")),
        default=_with_own_port(origin, request),
    )


def _with_own_port(origin: str, request: HttpRequest) -> str:
    """Return an origin on the loopback interface with the port at which the request arrived, any other one as it is."""
    parts = urlsplit(origin)
    host = parts.hostname or ""
    if host != "localhost" and not host.endswith(".localhost") and host not in {"127.0.0.1", "::1"}:
        return origin
    port = "" if request.get_port() == _PORTS[parts.scheme] else f":{request.get_port()}"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


def mail_try(to: str, subject: str, template: str, **context: object) -> Outcome:
    """Render a template and mail it to one address. The class of an error is logged, without the address."""
    if not mail_configured():
        return Outcome.REFUSED
    text = render_to_string(f"gateway/mails/{template}.txt", context)
    try:
        sent = EmailMessage(subject=subject, body=text, to=[to]).send()
    except (smtplib.SMTPException, OSError, ValueError) as error:  # ValueError: not an address
        logger.warning("A mail (%s) was not sent: %s.", template, type(error).__name__)
        return Outcome.LATER if _is_temporary(error) else Outcome.REFUSED
    return Outcome.SENT if sent else Outcome.REFUSED


def _is_temporary(error: Exception) -> bool:
    """Return True if the server may accept the mail later: it did not answer, or replied 4xx."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(code in _TEMPORARY for code, _ in error.recipients.values())
    if isinstance(error, smtplib.SMTPResponseException):
        return error.smtp_code in _TEMPORARY
    return isinstance(error, OSError) and not isinstance(error, smtplib.SMTPNotSupportedError)
