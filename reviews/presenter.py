"""A review and its writes in words: what the reviews page, the admin and the API's sentences have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memories.history.word_diff import Piece, word_diff
from memories.number_words import times
from reviews.models import ReviewRun
from reviews.writes import ReviewWrite, WriteState

_PRECISE = "upstream_error"  # its own sentence says which fault the model server had
FAILURES = {
    "upstream_error": "The model server answered with an error.",
    "upstream_timeout": "The model server took too long to answer.",
    "rate_limited": "The model server had too much to do.",
    "overloaded": "The model server had too much to do.",
    "worker_lost": "The worker went away in each of its attempts.",
    "model_not_found": "The model server does not know this model.",
    "over_budget": "There was no room for what it wanted to save.",
}
_VERBS = {"add": ("Add", "Added"), "update": ("Change", "Changed"), "delete": ("Delete", "Deleted")}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownWrite:
    """One write as it is shown. `about`: whom or what it is about, and its category."""

    write: ReviewWrite
    about: str

    @property
    def verb(self) -> str:
        """What is to be done while it waits or was refused, what was done afterwards."""
        return _VERBS[self.write.action][not self.write.pending and self.write.state != WriteState.REFUSED]

    @property
    def again(self) -> str:
        """How often it was wanted while it waited, as a sentence; "" where that was once."""
        return f"This came up {times(self.write.times + 1)}." if self.write.times else ""

    @property
    def pieces(self) -> Sequence[Piece]:
        """What it does to the words; of a deletion those that go, nothing where the new text is not kept."""
        before, after = self.write.before or "", self.write.after or ""
        if self.write.action == "delete":
            return (Piece("same", before),)
        return word_diff(before, after) if before and after else (Piece("same", after),)


def about_words(write: ReviewWrite, targets: Mapping[str, str]) -> str:
    """`About you · preference`; `targets` are the words for whom or what a memory is about."""
    return " · ".join(part for part in (targets.get(write.target, ""), write.category) if part)


def reason_words(review: ReviewRun, *, own: bool) -> str:
    """Return why a review came to nothing, or why it waits; "" when neither is so. `own`: said to its owner."""
    error = review.error or {}
    if review.state == ReviewRun.State.TIMED_OUT:
        most = review.settings.get("memory_review_timeout", 30)
        again = f", {times(review.attempts)}" if review.attempts > 1 else ""
        return f"The model server took longer than {most} seconds{again}."
    if error.get("code") == "rejected":
        owner = "You" if own else "Its owner"
        return f"{'An administrator' if by_staff(error.get('actor')) else owner} rejected it."
    code, said = str(error.get("code", "")), str(error.get("message") or "")
    return said if code == _PRECISE and said else FAILURES.get(code, said)


def by_staff(actor: object) -> bool:
    """Return True if an actor is an administrator."""
    return str(actor or "").startswith("staff:")
