"""Logging: one line per record, to standard error. Records never contain the text of a message or a memory."""

import json
import logging
import time
from datetime import UTC, datetime
from typing import Any

_SUSPICIOUS = "django.security."
_INVALID = ("uvicorn.error", logging.WARNING)
_INTERVAL_SECONDS = 60.0
_MAX_CHARACTERS = 300


class SuspicionFilter(logging.Filter):
    """Limits the records of requests that Django refuses as suspicious (a wrong `Host`, too many fields) or uvicorn as
    invalid, which anybody can send: one per kind and minute, without the traceback, with the number of suppressed
    ones."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, tuple[float, int]] = {}  # by logger: time of the last record, and suppressed ones since

    def filter(self, record: logging.LogRecord) -> bool:
        suspicious = record.name.startswith(_SUSPICIOUS) and record.exc_info is not None
        if not suspicious and (record.name, record.levelno) != _INVALID:
            return True
        now = time.monotonic()
        logged_at, suppressed = self._seen.get(record.name, (now - _INTERVAL_SECONDS, 0))
        if now - logged_at < _INTERVAL_SECONDS:
            self._seen[record.name] = logged_at, suppressed + 1
            return False
        self._seen[record.name] = now, 0
        text = record.getMessage().replace("ALLOWED_HOSTS", "DAYBOOK_ALLOWED_HOSTS")[:_MAX_CHARACTERS]
        more = f" ({suppressed} more since the last such line)" if suppressed else ""
        record.msg, record.args = f"A request was refused: {text}{more}", ()
        record.exc_info = record.exc_text = None
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True


class LineFormatter(logging.Formatter):
    """One line per record, and the traceback if there is one. Characters that are not printable are escaped, since a
    message may contain what a client sent, such as a URL with a line break."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        line = super().formatMessage(record)
        return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)


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


def logging_config(format: str) -> dict[str, Any]:
    """Return the configuration for logging.config.dictConfig; `format` is `console` or `json`."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "console": {"()": LineFormatter, "format": "%(asctime)s %(levelname)s %(name)s %(message)s"},
            "json": {"()": JsonFormatter},
        },
        "filters": {"suspicion": {"()": SuspicionFilter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": format, "filters": ["suspicion"]}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            "daybook": {"level": "INFO"},
            # Access lines and warnings for 4xx would repeat what is in the run's row.
            "django.request": {"level": "ERROR"},
            "axes": {"level": "ERROR"},  # gateway.accounts.sign_in logs failures
            "oauthlib": {"level": "WARNING"},  # lower levels log codes and tokens
            "oauth2_provider": {"level": "WARNING"},
            "psycopg.pool": {"level": "ERROR"},  # it logs every attempt to connect
            "django_q": {"level": "WARNING"},
            "django-q": {"level": "WARNING"},
        },
    }
