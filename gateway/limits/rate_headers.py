"""Response headers with the limits of the key: those of OpenAI, and those of Anthropic on its API. A key without limits
gets none. Windows are noted while a request is handled, and the outermost middleware writes the headers."""

import math
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

from django.utils import timezone

REQUESTS, TOKENS = "requests", "tokens"
_PARTS = ("limit", "remaining", "reset")
OPENAI_HEADERS = tuple(f"x-ratelimit-{part}-{kind}" for kind in (REQUESTS, TOKENS) for part in _PARTS)
ANTHROPIC_HEADERS = tuple(f"anthropic-ratelimit-{kind}-{part}" for kind in (REQUESTS, TOKENS) for part in _PARTS)


@dataclass(frozen=True, slots=True)
class Window:
    """A limit, what is left of it, and when it is reset. Headers are written with the answer, which may be long after
    the window was noted."""

    limit: int
    remaining: int
    resets_at: datetime

    @classmethod
    def resetting_in(cls, seconds: int, *, limit: int, remaining: int) -> Self:
        """Return a window that is reset in some whole seconds."""
        return cls(limit, remaining, timezone.now().replace(microsecond=0) + timedelta(seconds=seconds))

    @property
    def reset_seconds(self) -> int:
        """Return the whole seconds until it is reset, at least one."""
        return max(1, math.ceil((self.resets_at - timezone.now()).total_seconds()))


windows: ContextVar[dict[str, Window]] = ContextVar("rate_windows")


def note_window(kind: str, window: Window) -> None:
    """Note a window of REQUESTS or TOKENS for the response to the current request."""
    noted = windows.get(None)
    if noted is not None:
        noted[kind] = window


def rate_headers(*, anthropic: bool) -> Iterator[tuple[str, str]]:
    """Yield the headers for the response to the current request, in Anthropic's form or in OpenAI's."""
    for kind, window in windows.get({}).items():
        if anthropic:
            prefix = f"anthropic-ratelimit-{kind}-"
            yield f"{prefix}limit", str(window.limit)
            yield f"{prefix}remaining", str(window.remaining)
            yield f"{prefix}reset", window.resets_at.astimezone(UTC).isoformat().replace("+00:00", "Z")
        else:
            yield f"x-ratelimit-limit-{kind}", str(window.limit)
            yield f"x-ratelimit-remaining-{kind}", str(window.remaining)
            yield f"x-ratelimit-reset-{kind}", duration(window.reset_seconds)


def duration(seconds: int) -> str:
    """Return seconds as OpenAI writes them: `6m0s`, `1s`, `3h0m5s`."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s" if minutes else f"{rest}s"
