"""Which turns of a session a review read."""

from collections.abc import Collection, Sequence
from functools import reduce
from operator import or_
from uuid import UUID

from django.db.models import Q

from gateway.models import Message
from memories.history.provenance import Turns
from reviews.models import ReviewRun


def turns_read(owner_id: UUID, reviews: Sequence[ReviewRun]) -> dict[UUID, Turns]:
    """Return the turns in the message range of each of the owner's reviews, by review id. One query."""
    ranges = [Q(session=r.session_id, seq__gte=r.first_seq, seq__lte=r.last_seq) for r in reviews if r.session_id]
    if not ranges:
        return {}
    messages = Message.objects.filter(reduce(or_, ranges), owner_id=owner_id, role=Message.Role.USER)
    rows = list(messages.exclude(run=None).order_by("seq").values_list("session_id", "seq", "run__turn", "run_id"))
    turns = {}
    for review in reviews:
        read = [
            (turn, run_id)
            for session_id, seq, turn, run_id in rows
            if session_id == review.session_id and review.first_seq <= seq <= review.last_seq
        ]
        if read:
            turns[review.pk] = Turns(first=read[0][0], last=read[-1][0], run_id=read[0][1])
    return turns


def last_turn_read(review: ReviewRun) -> UUID | None:
    """Return the run of the last turn that a review read, under which its writes are shown. One query."""
    messages = Message.objects.filter(owner_id=review.owner_id, session=review.session_id, seq__lte=review.last_seq)
    return messages.exclude(run=None).order_by("-seq").values_list("run_id", flat=True).first()


def turns_of(owner_id: UUID, review_ids: Collection[UUID]) -> dict[UUID, Turns]:
    """Return the turns that reviews read, by review id, for memories.history.provenance. Two queries."""
    rows = ReviewRun.objects.filter(owner_id=owner_id, pk__in=review_ids)
    return turns_read(owner_id, list(rows.only("session_id", "first_seq", "last_seq")))
