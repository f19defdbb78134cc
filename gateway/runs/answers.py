"""Reads an owner's latest answers from other sessions. Text of theirs that a client sends as a user message does not
count as the person's own words (`memories.evidence.passages`). Used only when a model writes to memory."""

from uuid import UUID

from django.db.models.functions import Left, Length

from gateway.models import Run, Session
from memories.evidence.passages import MAX_ANSWER_CHARS, MAX_ANSWERS, MIN_ANSWER_CHARS

_MAX_SESSIONS = 8  # the latest sessions, since a client passes an answer on immediately


def answers_elsewhere(owner_id: UUID, session_id: UUID) -> list[str]:
    """Return the latest answers in the owner's other sessions, cut to the length that is compared. One query."""
    others = Session.objects.filter(owner_id=owner_id).exclude(pk=session_id).order_by("-last_active_at")
    runs = Run.objects.filter(owner_id=owner_id, session__in=others.values("pk")[:_MAX_SESSIONS])
    long_enough = runs.annotate(size=Length("text")).filter(size__gte=MIN_ANSWER_CHARS, state=Run.State.COMPLETED)
    return list(long_enough.order_by("-id").values_list(Left("text", MAX_ANSWER_CHARS), flat=True)[:MAX_ANSWERS])
