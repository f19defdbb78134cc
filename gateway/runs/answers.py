"""Answers that were given to a person lately in other conversations than one: what comes back of them there is nobody's
own words (`memories.evidence.answers`). Read only when a model writes to memory."""

from uuid import UUID

from django.db.models.functions import Left, Length

from gateway.models import Run, Session
from memories.evidence.answers import MAX_ANSWER_CHARS, MAX_ANSWERS, MIN_ANSWER_CHARS

_MOST_SESSIONS = 8  # the latest: a client hands an answer on at once


def answers_elsewhere(owner_id: UUID, session_id: UUID) -> list[str]:
    """Return the latest answers in the owner's other sessions, as far as they are read. One query."""
    others = Session.objects.filter(owner_id=owner_id).exclude(pk=session_id).order_by("-last_active_at")
    runs = Run.objects.filter(owner_id=owner_id, session__in=others.values("pk")[:_MOST_SESSIONS])
    long_enough = runs.annotate(size=Length("text")).filter(size__gte=MIN_ANSWER_CHARS, state=Run.State.COMPLETED)
    return list(long_enough.order_by("-id").values_list(Left("text", MAX_ANSWER_CHARS), flat=True)[:MAX_ANSWERS])
