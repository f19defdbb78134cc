"""Response headers with the key's limits, as OpenAI names them or, on the Anthropic API, as Anthropic does. A key
without limits gets none. Windows are recorded while a request is handled; the outermost middleware writes the
headers."""

import math
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from django.utils import timezone

from memories.json_output import json_time

REQUESTS, TOKENS = "requests", "tokens"
_PARTS = {"limit": "The limit of", "remaining": "What is left of the", "reset": "When there will be more"}
_MEANINGS = {
    (part, kind): f"{words} {of}, where the key has such a limit."
    for kind, of in ((REQUESTS, "requests a minute"), (TOKENS, "tokens of the UTC day"))
    for part, words in _PARTS.items()
}
_OPENAI, _ANTHROPIC = "x-ratelimit-{part}-{kind}", "anthropic-ratelimit-{kind}-{part}"
# The names of the headers, with their descriptions
OPENAI_HEADERS = {_OPENAI.format(part=part, kind=kind): meaning for (part, kind), meaning in _MEANINGS.items()}
ANTHROPIC_HEADERS = {_ANTHROPIC.format(part=part, kind=kind): meaning for (part, kind), meaning in _MEANINGS.items()}


@dataclass(frozen=True, slots=True)
class Window:
    """A limit, the remainder, and the time of its reset. Headers may be written long after the window was recorded."""

    limit: int
    remaining: int
    resets_at: datetime

    @classmethod
    def resetting_in(cls, seconds: int, *, limit: int, remaining: int) -> Self:
        """Return a window that is reset in `seconds`."""
        return cls(limit, remaining, timezone.now().replace(microsecond=0) + timedelta(seconds=seconds))

    @property
    def reset_seconds(self) -> int:
        """The whole seconds until the reset, at least one."""
        return max(1, math.ceil((self.resets_at - timezone.now()).total_seconds()))


windows: ContextVar[dict[str, Window]] = ContextVar("rate_windows")


def record_window(kind: str, window: Window) -> None:
    """Record a window of REQUESTS or TOKENS for the response to the current request."""
    noted = windows.get(None)
    if noted is not None:
        noted[kind] = window


def rate_headers(*, anthropic: bool) -> Iterator[tuple[str, str]]:
    """Yield the headers for the response to the current request, in Anthropic's format or OpenAI's."""
    name = _ANTHROPIC if anthropic else _OPENAI
    for kind, window in windows.get({}).items():
        reset = json_time(window.resets_at) if anthropic else duration(window.reset_seconds)
        for part, value in (("limit", window.limit), ("remaining", window.remaining), ("reset", reset)):
            yield name.format(part=part, kind=kind), str(value)


def duration(seconds: int) -> str:
    """Return seconds as OpenAI writes them: `6m0s`, `1s`, `3h0m5s`."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s" if minutes else f"{rest}s"
