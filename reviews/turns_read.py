"""Which turns a review read: its range of messages, as people count."""

from collections.abc import Collection, Sequence
from functools import reduce
from operator import or_
from uuid import UUID

from django.db.models import Q

from gateway.models import Message
from memories.history.provenance import Turns
from reviews.models import ReviewRun


def turns_read(owner_id: UUID, reviews: Sequence[ReviewRun]) -> dict[UUID, Turns]:
    """Return, by review of the owner, the turns that its range of messages belongs to. One query."""
    ranges = [Q(session=r.session_id, seq__gte=r.first_seq, seq__lte=r.last_seq) for r in reviews if r.session_id]
    if not ranges:
        return {}
    said = Message.objects.filter(reduce(or_, ranges), owner_id=owner_id, role=Message.Role.USER)
    found = list(said.exclude(run=None).order_by("seq").values_list("session_id", "seq", "run__turn", "run_id"))
    turns = {}
    for review in reviews:
        mine = [
            (turn, run_id)
            for session_id, seq, turn, run_id in found
            if session_id == review.session_id and review.first_seq <= seq <= review.last_seq
        ]
        if mine:
            turns[review.pk] = Turns(first=mine[0][0], last=mine[-1][0], run_id=mine[0][1])
    return turns


def last_turn_read(review: ReviewRun) -> UUID | None:
    """Return the run of the last turn that a review read: what the review writes is shown there. One query."""
    said = Message.objects.filter(owner_id=review.owner_id, session=review.session_id, seq__lte=review.last_seq)
    return said.exclude(run=None).order_by("-seq").values_list("run_id", flat=True).first()


def turns_of(owner_id: UUID, review_ids: Collection[UUID]) -> dict[UUID, Turns]:
    """Return the turns that reviews read, by review id, for memories.history.provenance. Two queries."""
    rows = ReviewRun.objects.filter(owner_id=owner_id, pk__in=review_ids)
    return turns_read(owner_id, list(rows.only("session_id", "first_seq", "last_seq")))
