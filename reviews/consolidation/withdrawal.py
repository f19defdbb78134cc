"""The effect of clearing a book on reviews and on the review positions of sessions, and its undo: proposals wait again,
and messages that had not been reviewed are due again. Open reviews are not resumed; the next one reads their turns.
Called by reviews.consolidation.clear."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from django.db.models import F, QuerySet

from gateway.models import Session
from memories.models import Book, ChangeSet
from reviews.ending import reviews_cancel, reviews_end
from reviews.models import ClearedReview, Extraction, ReviewRun

State = ReviewRun.State
REASON = "The book was cleared."
_BATCH = 500

ReviewPositions = Mapping[UUID, tuple[int, int]]
"""By session: the number of the last reviewed message, and how many turns it had since."""


def reviews_withdraw(book: Book, change_set: ChangeSet) -> None:
    """Cancel the book's undecided reviews, and store those that waited for approval so that an undo of the clear can
    restore them. A review has one such row, of its latest clear."""
    runs = list(ReviewRun.objects.select_for_update().filter(book=book, state__in=ReviewRun.UNDECIDED).order_by("pk"))
    waiting = [run for run in runs if run.state == State.AWAITING_APPROVAL]
    ClearedReview.objects.filter(review__in=[run.pk for run in waiting]).delete()
    cleared = [
        ClearedReview(
            review=run, owner_id=run.owner_id, change_set=change_set.pk, writes=run.writes, waits_since=run.finished_at
        )
        for run in waiting
    ]
    ClearedReview.objects.bulk_create(cleared, batch_size=_BATCH)
    reviews_cancel(ReviewRun.objects.filter(pk__in=[run.pk for run in runs]), REASON)
    _name_change_set([run.pk for run in waiting], change_set)


def sessions_mark_reviewed(sessions: "QuerySet[Session]") -> ReviewPositions:
    """Mark all messages of the sessions as reviewed. Returns their previous positions."""
    rows = sessions.select_for_update(of=("self",), no_key=True).order_by("pk")
    positions = {pk: (through, turns) for pk, through, turns in rows.values_list(
        "pk", "reviewed_through", "turns_since_memory_review")}  # fmt: skip
    locked = Session.objects.filter(pk__in=positions)
    locked.update(reviewed_through=F("message_seq"), turns_since_memory_review=0)
    return positions


def withdrawn_lock(root: ChangeSet) -> None:
    """Lock the sessions and reviews of a clear, before the book is locked to undo or redo the clear."""
    if root.kind == ChangeSet.Kind.CLEAR:
        passed = Extraction.objects.filter(owner_id=root.owner_id, cleared_by=root.pk).values("session")
        list(Session.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=passed).order_by("pk"))
        cleared = ClearedReview.objects.filter(owner_id=root.owner_id, change_set=root.pk).values("review")
        list(ReviewRun.objects.select_for_update(of=("self",)).filter(pk__in=cleared).order_by("pk"))


def withdrawn_return(root: ChangeSet, *, undo: bool) -> None:
    """Undo a clear for reviews: let the writes that it cancelled wait again, unless somebody decided about them since.
    With `undo` False, redo the clear: cancel them again."""
    epoch = Book.objects.values_list("epoch", flat=True).get(pk=root.book_id)
    for row in ClearedReview.objects.filter(owner_id=root.owner_id, change_set=root.pk).select_related("review"):
        run = ReviewRun.objects.filter(pk=row.review_id)
        if undo:
            cancelled = run.filter(state=State.CANCELLED, error__change_set=str(root.pk), session__isnull=False)
            waiting = State.AWAITING_APPROVAL
            reviews_end(cancelled, waiting, finished_at=row.waits_since, writes=row.writes, book_epoch=epoch)
        elif row.review.state == State.AWAITING_APPROVAL:
            row.writes = row.review.writes
            row.save(update_fields=["writes"])
            reviews_cancel(run, REASON)
            _name_change_set([row.review_id], root)


def sessions_return(before: Mapping[Session, tuple[int, tuple[int, int] | None]]) -> None:
    """Restore the review positions of sessions before a clear. `before` has, by session, the number of the last message
    that the clear marked as read, and the earlier position. A session that was reviewed beyond that message is not
    changed. The caller has locked the sessions."""
    changed = []
    for session, (passed_through, position) in before.items():
        if position and session.reviewed_through == passed_through:
            session.reviewed_through = position[0]
            session.turns_since_memory_review = min(session.turns, session.turns_since_memory_review + position[1])
            changed.append(session)
    Session.objects.bulk_update(changed, ["reviewed_through", "turns_since_memory_review"], batch_size=_BATCH)


def _name_change_set(reviews: Iterable[UUID], change_set: ChangeSet) -> None:
    problem = {"code": "cancelled", "message": REASON, "change_set": str(change_set.pk)}
    ReviewRun.objects.filter(pk__in=list(reviews), state=State.CANCELLED).update(error=problem)
