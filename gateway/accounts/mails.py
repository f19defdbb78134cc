"""Mails of Daybook: plain text, sent by the worker from a job that names people by id, so that neither the queue nor
the log contains an address or a link."""

import logging
import smtplib

from django.conf import settings
from django.core.mail import EmailMessage
from django.http import HttpRequest
from django.template.loader import render_to_string

from gateway.oauth.addresses import public_origin

logger = logging.getLogger("daybook.mail")


def mail_configured() -> bool:
    """Return True if mails can be sent."""
    return settings.MAIL is not None


def mail_origin(request: HttpRequest) -> str:
    """Return the origin for links in mails: one of DAYBOOK_TRUSTED_ORIGINS if there are any, so that a forged Host
    header cannot make our mails link to another site."""
    here = public_origin(request)
    trusted = settings.TRUSTED_ORIGINS
    return here if not trusted or here in trusted else str(max(trusted))


def mail_send(to: list[str], subject: str, template: str, **context: object) -> bool:
    """Send a text to each of these addresses in a separate mail. Returns False if the mail server refuses one or
    does not answer, or the address is none; the kind of the failure is logged, without the address."""
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
