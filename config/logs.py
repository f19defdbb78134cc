"""Logging: one line for each record, to standard error. It never contains the text of a message or a memory."""

import json
import logging
from datetime import UTC, datetime
from typing import Any


class LineFormatter(logging.Formatter):
    """One line per record, and the traceback if there is one. Messages may repeat what a stranger sent, such as an
    address with a line break in it, so whatever is no visible character is escaped."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        line = super().formatMessage(record)
        return line if line.isprintable() else "".join(_visible(letter) for letter in line)


def _visible(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)


def logging_config(form: str) -> dict[str, Any]:
    """Return the dictConfig for `console` or `json`."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "console": {"()": LineFormatter, "format": "%(asctime)s %(levelname)s %(name)s %(message)s"},
            "json": {"()": JsonFormatter},
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": form}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            "daybook": {"level": "INFO"},
            # Access lines and warnings for 4xx repeat what the run's row holds.
            "django.request": {"level": "ERROR"},
            "axes": {"level": "ERROR"},  # gateway.accounts.sign_in logs failures
            "oauthlib": {"level": "WARNING"},  # lower levels log codes and tokens
            "oauth2_provider": {"level": "WARNING"},
            "psycopg.pool": {"level": "ERROR"},  # it logs every attempt to connect
            "django_q": {"level": "WARNING"},
            "django-q": {"level": "WARNING"},
        },
    }
