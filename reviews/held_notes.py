"""Writes of a session or a review that wait for approval, as the chat shows them (gateway.chat.held_notes)."""

from typing import Any
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery, UUIDField

from gateway.chat.held_notes import HeldNote
from gateway.models import Message
from reviews.models import ReviewRun
from reviews.presenter import ShownWrite
from reviews.writes import ReviewWrite

_MAX_REVIEWS = 100


def of_session(owner_id: UUID, session_id: UUID) -> list[HeldNote]:
    """Return the session's waiting reviews, oldest first, each with the last turn that it read. One query."""
    rows = _waiting(owner_id).filter(session_id=session_id)
    return [_note(run) for run in rows.order_by("id")[:_MAX_REVIEWS]]


def of_review(owner_id: UUID, review_id: UUID) -> HeldNote | None:
    """Return the review's waiting writes, or None if there are none. One query."""
    run = _waiting(owner_id).filter(pk=review_id).first()
    return _note(run) if run else None


def _waiting(owner_id: UUID) -> "QuerySet[ReviewRun]":
    read = Message.objects.filter(owner_id=owner_id, session=OuterRef("session"), seq__lte=OuterRef("last_seq"))
    last = read.exclude(run=None).order_by("-seq").values("run_id")[:1]
    rows = ReviewRun.objects.filter(owner_id=owner_id, state=ReviewRun.State.AWAITING_APPROVAL)
    return rows.annotate(last_turn=Subquery(last, output_field=UUIDField())).only("session_id", "writes")


def _note(run: ReviewRun) -> HeldNote:
    return HeldNote(
        review_id=run.pk,
        session_id=run.session_id,
        run_id=run.last_turn,  # type: ignore[attr-defined]
        lines=[_line(write) for write in run.writes if write.waiting],
    )


def _line(write: ReviewWrite) -> dict[str, Any]:
    pieces = ShownWrite(write=write, about="").pieces
    return {"pieces": pieces, "struck": write.action == "delete", "reason": write.reason, "evidence": write.evidence}
