"""Sends mails as plain text. They are sent from jobs that refer to people by id, so that neither the queue nor the log
contains an address or a link."""

import logging
import smtplib

from django.conf import settings
from django.core.mail import EmailMessage
from django.http import HttpRequest
from django.template.loader import render_to_string

from gateway.oauth.addresses import public_origin

logger = logging.getLogger("daybook.mail")


def mail_configured() -> bool:
    return settings.MAIL is not None


def mail_origin(request: HttpRequest) -> str:
    """Return the origin for links in mails. If DAYBOOK_TRUSTED_ORIGINS is set, it is one of them, so that a forged Host
    header cannot make mails link to another site: that of the request, otherwise the first one, https before http."""
    origin, trusted = public_origin(request), settings.TRUSTED_ORIGINS
    if not trusted or origin in trusted:
        return origin
    return next((one for one in trusted if one.startswith("https:")), str(trusted[0]))


def mail_send(to: list[str], subject: str, template: str, **context: object) -> bool:
    """Render a template and mail it to each address separately. Return False if any mail could not be sent or an
    address is malformed; the error class is logged, without the address."""
    if not mail_configured():
        return False
    text = render_to_string(f"gateway/mails/{template}.txt", context)
    sent = 0
    for address in to:
        try:
            sent += EmailMessage(subject=subject, body=text, to=[address]).send()
        except (smtplib.SMTPException, OSError, ValueError) as error:  # ValueError: not an address
            logger.warning("A mail (%s) was not sent: %s.", template, type(error).__name__)
    return sent == len(to)
