"""Logging: one line for each record, to standard error. It never contains the text of a message or a memory."""

import json
import logging
import time
from datetime import UTC, datetime
from typing import Any

_SUSPICIOUS = "django.security."
_ONCE_IN_SECONDS = 60.0
_MOST_CHARACTERS = 300


class SuspicionFilter(logging.Filter):
    """Keeps requests that Django refuses as suspicious (a wrong `Host`, too many fields) from filling the log, since
    anybody can send them: a line of each kind once a minute, without the traceback, with the number of those left
    out."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, tuple[float, int]] = {}  # by logger: when one was logged, and those left out since

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith(_SUSPICIOUS) or record.exc_info is None:
            return True
        now = time.monotonic()
        logged_at, left_out = self._seen.get(record.name, (now - _ONCE_IN_SECONDS, 0))
        if now - logged_at < _ONCE_IN_SECONDS:
            self._seen[record.name] = logged_at, left_out + 1
            return False
        self._seen[record.name] = now, 0
        said = record.getMessage().replace("ALLOWED_HOSTS", "DAYBOOK_ALLOWED_HOSTS")[:_MOST_CHARACTERS]
        more = f" ({left_out} more since the last such line)" if left_out else ""
        record.msg, record.args = f"A request was refused: {said}{more}", ()
        record.exc_info = record.exc_text = None
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True


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
        "filters": {"suspicion": {"()": SuspicionFilter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": form, "filters": ["suspicion"]}},
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
