"""Words of the reviews page: how long a review took, and why it came to nothing."""

from django.utils import timezone

from memories.viewers import Viewer
from reviews.models import ReviewRun

State = ReviewRun.State
_AGAIN = "Nothing was changed. The next review reads these turns too."
FAILURES = {
    "upstream_error": "The model server answered with an error.",
    "upstream_timeout": "The model server took too long to answer.",
    "rate_limited": "The model server had too much to do.",
    "overloaded": "The model server had too much to do.",
    "worker_lost": "The worker went away in each of its attempts.",
    "model_not_found": "The model server does not know this model.",
    "over_budget": "There was no room for what it wanted to save.",
}
_TIMES = {2: ", twice", 3: ", three times"}


def action_words(verb: str, number: int) -> str:
    """`Undo`, `Undo both`, `Undo all 3`."""
    if number < 2:
        return verb
    return f"{verb} both" if number == 2 else f"{verb} all {number}"


def by_staff(actor: object) -> bool:
    """Return True if an actor is an administrator."""
    return str(actor or "").startswith("staff:")


def span_words(review: ReviewRun, turns: int) -> str:
    """`qwen3-8b · 1,870 tokens · 4 s`; of one that runs: `Reading 3 turns · 9 of at most 30 seconds`."""
    if review.state == State.RUNNING and review.started_at:
        seconds = max(0, int((timezone.now() - review.started_at).total_seconds()))
        most = review.settings.get("memory_review_timeout", 30)
        reading = f"Reading {turns} turn{'' if turns == 1 else 's'} · " if turns else ""
        return f"{reading}{min(seconds, most)} of at most {most} seconds"
    parts = [review.model] if review.model else []
    if tokens := review.usage.get("total_tokens"):
        parts.append(f"{tokens:,} tokens")
    if review.started_at and review.finished_at and review.state in {State.SAVED, State.NOTHING_TO_SAVE}:
        parts.append(_duration((review.finished_at - review.started_at).total_seconds()))
    return " · ".join(parts)


def outcome_words(review: ReviewRun, viewer: Viewer) -> str:
    """Return why it came to nothing, or when it goes on; "" where its state and its changes say all."""
    code = str((review.error or {}).get("code", ""))
    said = str((review.error or {}).get("message", ""))
    if review.state == State.TIMED_OUT:
        most = review.settings.get("memory_review_timeout", 30)
        return f"The model server took longer than {most} seconds{_TIMES.get(review.attempts, '')}. {_AGAIN}"
    if review.state == State.FAILED:
        return f"{FAILURES.get(code, said or 'It could not be finished.')} {_AGAIN}"
    if review.state == State.CANCELLED:
        if code == "rejected":
            who = "An administrator" if by_staff((review.error or {}).get("actor")) else "You"
            return f"{who} turned it down. Nothing was saved."
        return f"{said} Nothing was saved.".strip()
    if review.state == State.SCHEDULED:
        later = review.not_before > timezone.now()
        when = f"It begins {viewer.near_day(review.not_before)}, {viewer.local(review.not_before):%H:%M}."
        reason = said if code == "daily_limit" else FAILURES.get(code, "")
        return " ".join(part for part in (reason, when if later else "It begins as soon as a worker is free.") if part)
    return ""


def _duration(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 100 else f"{round(seconds / 60)} min"
