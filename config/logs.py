"""Logging: one line a record, to standard error; never a message's or a memory's text."""

import json
import logging
from datetime import UTC, datetime
from typing import Any


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the exception's trace if there is one."""

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
            "console": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"},
            "json": {"()": JsonFormatter},
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": form}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            "daybook": {"level": "INFO"},
            # Access lines and every 4xx as a warning say nothing that the run's row does not.
            "django.request": {"level": "ERROR"},
            "axes": {"level": "ERROR"},  # gateway.accounts.sign_in says what is to be said
            "oauthlib": {"level": "WARNING"},  # below that it tells codes and tokens
            "oauth2_provider": {"level": "WARNING"},
            "psycopg.pool": {"level": "ERROR"},  # it tells every attempt to connect; the request says that none is free
            "django_q": {"level": "WARNING"},
            "django-q": {"level": "WARNING"},
        },
    }
