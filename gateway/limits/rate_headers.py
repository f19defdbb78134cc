"""Response headers with the limits of the key: those of OpenAI, and those of Anthropic on its API. A key without limits
gets none. Windows are noted while a request is handled, and the outermost middleware writes the headers."""

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

REQUESTS, TOKENS = "requests", "tokens"
_PARTS = ("limit", "remaining", "reset")
OPENAI_HEADERS = tuple(f"x-ratelimit-{part}-{kind}" for kind in (REQUESTS, TOKENS) for part in _PARTS)
ANTHROPIC_HEADERS = tuple(f"anthropic-ratelimit-{kind}-{part}" for kind in (REQUESTS, TOKENS) for part in _PARTS)


@dataclass(frozen=True, slots=True)
class Window:
    """A limit, what is left of it, and the seconds until it is reset."""

    limit: int
    remaining: int
    reset_seconds: int


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
            reset = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=window.reset_seconds)
            yield f"{prefix}limit", str(window.limit)
            yield f"{prefix}remaining", str(window.remaining)
            yield f"{prefix}reset", reset.isoformat().replace("+00:00", "Z")
        else:
            yield f"x-ratelimit-limit-{kind}", str(window.limit)
            yield f"x-ratelimit-remaining-{kind}", str(window.remaining)
            yield f"x-ratelimit-reset-{kind}", duration(window.reset_seconds)


def duration(seconds: int) -> str:
    """Return seconds as OpenAI writes them: `6m0s`, `1s`, `3h0m5s`."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s" if minutes else f"{rest}s"
