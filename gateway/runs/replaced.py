"""What a run that another one replaces means for the counters of its session."""

from typing import Any

from gateway.messages import text_of
from gateway.models import Message, Run, Session
from gateway.runs import fingerprint
from gateway.runs.wrappers import own_words


def turns_removed(replaced: Run, session: Session) -> int:
    """Return how many completed turns leave the branch that is shown when a run is replaced."""
    return max(0, session.turns - replaced.turn + 1)


def replacement_counts(replaced: Run, session: Session, user_key: str, content: Any) -> bool:
    """Return True if a run that replaces another one counts as a turn since the last review once it completes: its
    message has other words, or the other run was such a turn, and is subtracted, or never completed. A message that a
    review has read is not counted again, however often it is answered and whatever becomes of the answers."""
    if user_key != replaced.user_key and _has_other_words(replaced, content):
        return True
    if replaced.state != Run.State.COMPLETED:
        return replaced.counted
    return session.turns_since_memory_review >= turns_removed(replaced, session)


def _has_other_words(replaced: Run, content: Any) -> bool:
    """Return True if a message says something that the message of a replaced run does not. What clients wrap around a
    person's words does not matter, and neither does white space: resent messages differ in both."""
    rows = Message.objects.filter(owner_id=replaced.owner_id, run=replaced, role=Message.Role.USER).order_by("seq")
    before = rows.values_list("text", flat=True).first() or ""
    words = fingerprint.strip_whitespace(own_words(text_of(content)))
    return bool(words) and words != fingerprint.strip_whitespace(own_words(before))


def answered_before(replaced: Run) -> bool:
    """Return True if the turn of a replaced run has had an answer, from that run or an earlier one."""
    same = Run.objects.filter(session=replaced.session_id, turn=replaced.turn, follows=replaced.follows)
    return same.filter(state=Run.State.COMPLETED).exists()
