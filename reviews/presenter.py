"""Texts about a review and its writes, shared by the reviews page, the admin and the API."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memories.history.word_diff import Piece, word_diff
from memories.number_words import times
from reviews.models import ReviewRun
from reviews.writes import ReviewWrite, WriteState

_SPECIFIC = "upstream_error"  # its stored message is more specific than the one below
FAILURES = {
    "upstream_error": "The model server answered with an error.",
    "upstream_timeout": "The model server took too long to answer.",
    "rate_limited": "The model server had too much to do.",
    "overloaded": "The model server had too much to do.",
    "worker_lost": "The worker stopped or died during each attempt.",
    "model_not_found": "The model server does not know this model.",
    "over_budget": "There was no room for what it wanted to save.",
}
_VERBS = {"add": ("Add", "Added"), "update": ("Change", "Changed"), "delete": ("Delete", "Deleted")}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownWrite:
    """A write as it is shown. `about` is the label of its target and category (`about_words`)."""

    write: ReviewWrite
    about: str

    @property
    def verb(self) -> str:
        """The write's verb, in the past tense once it was decided ("Add", "Added")."""
        return _VERBS[self.write.action][not self.write.pending and self.write.state != WriteState.REFUSED]

    @property
    def again(self) -> str:
        """A sentence about how often the write was proposed while it waited, or "" if only once."""
        return f"This came up {times(self.write.times + 1)}." if self.write.times else ""

    @property
    def pieces(self) -> Sequence[Piece]:
        """The change of the text as a word diff; for a deletion, the deleted text."""
        before, after = self.write.before or "", self.write.after or ""
        if self.write.action == "delete":
            return (Piece("same", before),)
        return word_diff(before, after) if before and after else (Piece("same", after),)


def about_words(write: ReviewWrite, targets: Mapping[str, str]) -> str:
    """Return a label such as `About you · preference`; `targets` has the texts for targets."""
    return " · ".join(part for part in (targets.get(write.target, ""), write.category) if part)


def reason_words(review: ReviewRun, *, own: bool) -> str:
    """Return why a review failed, was cancelled or is postponed, or "". `own`: the text is for the review's owner."""
    error = review.error or {}
    if review.state == ReviewRun.State.TIMED_OUT:
        timeout = review.settings.get("memory_review_timeout", 30)
        repeated = f", {times(review.attempts)}" if review.attempts > 1 else ""
        return f"The model server took longer than {timeout} seconds{repeated}."
    if error.get("code") == "rejected":
        owner = "You" if own else "Its owner"
        return f"{'An administrator' if by_staff(error.get('actor')) else owner} rejected it."
    code, message = str(error.get("code", "")), str(error.get("message") or "")
    return message if code == _SPECIFIC and message else FAILURES.get(code, message)


def by_staff(actor: object) -> bool:
    """Return True if an actor is an administrator."""
    return str(actor or "").startswith("staff:")
