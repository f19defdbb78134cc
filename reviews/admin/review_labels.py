"""How a review went, in sentences for an administrator: why it came to nothing, what it cost, what the model wanted
besides, and how it was set."""

from typing import Any

from memories.admin.badges import moment
from reviews.models import ReviewRun
from reviews.page.labels import FAILURES, by_staff

State = ReviewRun.State
_TIMES = {1: "once", 2: "twice", 3: "three times"}
_WHO_TURNED_DOWN = {True: "An administrator turned it down.", False: "Its owner turned it down."}


def error_words(run: ReviewRun) -> str:
    """Return why it ended without a result, or why it waits; "" when neither is so."""
    error = run.error if isinstance(run.error, dict) else {}
    code, said = str(error.get("code", "")), str(error.get("message", ""))
    if run.state == State.TIMED_OUT:
        return f"The model server took longer than {run.settings.get('memory_review_timeout', 30)} seconds."
    if code == "rejected":
        return _WHO_TURNED_DOWN[by_staff(error.get("actor"))]
    words = FAILURES.get(code, said)
    if run.state == State.SCHEDULED and words:
        return f"{words} The next attempt begins {moment(run.not_before)}."
    return words


def error_detail(run: ReviewRun) -> str:
    """Return the code, and what was said where the words above say something else."""
    error = run.error if isinstance(run.error, dict) else {}
    code, said = str(error.get("code", "")), str(error.get("message", ""))
    return f"{code}: {said}" if said and said not in error_words(run) else code


def usage_words(usage: Any) -> str:
    """`1,480 tokens: 1,200 read, 280 written`."""
    usage = usage if isinstance(usage, dict) else {}
    total, read, written = (usage.get(f"{name}_tokens") for name in ("total", "prompt", "completion"))
    if not total:
        return "None reported"
    parts = [f"{read:,} read"] if read else []
    parts += [f"{written:,} written"] if written else []
    return f"{total:,} tokens" + (f": {', '.join(parts)}" if parts else "")


def dropped_words(dropped: Any) -> str:
    """`shell twice, web_search once`."""
    calls = sorted(dropped.items()) if isinstance(dropped, dict) else []
    counted = [f"{name} {_TIMES.get(number, f'{number} times')}" for name, number in calls]
    return ", ".join(counted) or "No other tool was called"


def settings_words(settings: dict[str, Any], model: str) -> str:
    """Return the agent's review settings when it was scheduled, in a sentence."""
    most, seconds = settings.get("memory_review_max_writes", 5), settings.get("memory_review_timeout", 30)
    waits = "its writes wait for a person" if settings.get("memory_review_approval") else "its writes are saved at once"
    told = "the owner is told" if settings.get("memory_review_verbose") else "the owner is not told"
    writes = "1 write" if most == 1 else f"{most} writes"
    return f"At most {writes} by {model}, {seconds} seconds for an attempt; {waits}, {told}."
