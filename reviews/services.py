"""Reviews, write side: every transition of a ReviewRun. A transition compares the state, and the token where a worker
holds the run, so it happens at most once, also after a sweep gave the run to somebody else.
Called by reviews.runner, reviews.sweep, reviews.api and reviews.admin. Lock order: run → session → book → memories → owner."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from gateway.models import Session
from memories.changes import Undone, change_set_get, undo_changes
from memories.errors import Conflict, DomainError, NotFound, RateLimited, UpstreamError, UpstreamTimeout
from memories.ids import uuid7
from memories.models import ChangeSet, Notification, WriteOrigin
from memories.outbox import notify
from memories.services import BookWriter, MemoryFields, Source, Written, book_writing
from prompts.review import review_prompt_sha256
from reviews.models import ReviewRun
from reviews.schedule import enqueue

if TYPE_CHECKING:
    from reviews.runner import Reflection

State = ReviewRun.State
MAX_ATTEMPTS = 3
LEASE_MARGIN = timedelta(seconds=10)
RETRY_SECONDS = (5.0, 30.0)
_MAX_RETRY_AFTER = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A review that this worker holds until its lease runs out."""

    review: ReviewRun
    token: UUID
    reviewed_through: int


class _Cancelled(Exception):
    """What was to be written to is gone, or was cleared meanwhile."""


class _Lost(Exception):
    """The run is no longer this worker's."""


def review_claim(run_id: UUID) -> Claim | None:
    """Take a scheduled run. None: another worker was first, another review of its session runs, or it is not due."""
    now = timezone.now()
    token = uuid7()
    run = ReviewRun.objects.filter(pk=run_id, state=State.SCHEDULED, not_before__lte=now).first()
    if run is None:
        return None
    if run.session_id is None:
        ReviewRun.objects.filter(pk=run_id, state=State.SCHEDULED).update(state=State.CANCELLED, finished_at=now)
        return None
    lease = timedelta(seconds=run.settings["memory_review_timeout"]) + LEASE_MARGIN
    try:
        with transaction.atomic():
            claimed = ReviewRun.objects.filter(pk=run_id, state=State.SCHEDULED).update(
                state=State.RUNNING,
                attempts=F("attempts") + 1,
                lease_token=token,
                lease_expires_at=now + lease,
                started_at=now,
                error=None,
            )
    except IntegrityError:
        return None  # one review per session at a time: it stays scheduled behind the running one
    if claimed != 1:
        return None
    review = ReviewRun.objects.select_related("book", "session").get(pk=run_id)
    reviewed_through = review.session.reviewed_through if review.session else 0
    return Claim(review=review, token=token, reviewed_through=reviewed_through)


def review_finish(claim: Claim, reflection: "Reflection") -> None:
    """End a review whose model is done: apply its writes in one transaction, let them wait, or note that there are none."""
    review = claim.review
    writes = [write.as_json(index) for index, write in enumerate(reflection.book.writes)]
    with suppress(_Lost):
        try:
            if not reflection.book.accepted:
                _end(claim, reflection, State.NOTHING_TO_SAVE, writes=writes, reviewed=True)
            elif review.settings["memory_review_approval"]:
                _let_wait(claim, reflection, writes)
            else:
                _apply(claim, reflection, writes)
        except _Cancelled as reason:
            _end(claim, reflection, State.CANCELLED, error={"code": "cancelled", "message": str(reason)})


def review_time_out(claim: Claim, reflection: "Reflection") -> None:
    """End a review whose time is over: nothing of it is written, and it is not tried again."""
    seconds = claim.review.settings["memory_review_timeout"]
    with suppress(_Lost):
        _end(
            claim,
            reflection,
            State.TIMED_OUT,
            error={"code": "timed_out", "message": f"No result within {seconds} seconds."},
        )


def review_fail(claim: Claim, reflection: "Reflection", error: DomainError) -> None:
    """End an attempt that failed; a passing fault of the upstream is tried again later."""
    if isinstance(error, UpstreamTimeout):
        review_time_out(claim, reflection)
        return
    problem = {"code": error.code, "message": str(error)}
    delay = retry_delay(error, claim.review.attempts)
    if delay is None:
        with suppress(_Lost):
            _end(claim, reflection, State.FAILED, error=problem)
        return
    ReviewRun.objects.filter(pk=claim.review.pk, state=State.RUNNING, lease_token=claim.token).update(
        state=State.SCHEDULED,
        lease_token=None,
        lease_expires_at=None,
        not_before=timezone.now() + timedelta(seconds=delay),
        enqueued_at=None,
        error=problem,
    )


def retry_delay(error: DomainError, attempts: int) -> float | None:
    """Seconds until the next attempt, or None for a fault that will not pass or when the attempts are used up."""
    status = error.details.get("status")
    passing = isinstance(error, RateLimited) or (
        isinstance(error, UpstreamError) and (status is None or int(status) >= 500)
    )
    if not passing or attempts >= MAX_ATTEMPTS:
        return None
    delay = RETRY_SECONDS[min(attempts, len(RETRY_SECONDS)) - 1]
    try:
        return min(max(delay, float(error.details.get("retry_after", 0))), _MAX_RETRY_AFTER)
    except ValueError:
        return delay


def review_cancel(review: ReviewRun, reason: str) -> bool:
    """Cancel a review that is not over. True when it was this call that did it."""
    open_states = [State.SCHEDULED, State.RUNNING, State.AWAITING_APPROVAL]
    return (
        ReviewRun.objects.filter(pk=review.pk, state__in=open_states).update(
            state=State.CANCELLED,
            lease_token=None,
            finished_at=timezone.now(),
            error={"code": "cancelled", "message": reason},
        )
        == 1
    )


def review_get(owner_id: UUID, review_id: UUID | None) -> ReviewRun:
    """The owner's review, with its book. Raises NotFound."""
    found = (
        ReviewRun.objects.select_related("book").filter(owner_id=owner_id, pk=review_id).first() if review_id else None
    )
    if found is None:
        raise NotFound("There is no such review.")
    return found


def review_undo(review: ReviewRun, *, actor: str, origin: WriteOrigin, only: frozenset[int] | None = None) -> Undone:
    """Take back what a review wrote, all or only some writes (by index). Raises Conflict when it wrote nothing."""
    if review.change_set is None or review.state not in {State.SAVED, State.UNDONE}:
        raise Conflict("This review wrote nothing that could be taken back.")
    change_set = change_set_get(review.owner_id, review.change_set)
    numbers = None
    if only is not None:
        numbers = frozenset(int(w["memory_id"]) for w in review.writes if w["index"] in only and w.get("memory_id"))
    source = Source(actor=actor, origin=origin, kind=ChangeSet.Kind.UNDO, review_id=review.pk, undoes=change_set.pk)
    with transaction.atomic():
        ReviewRun.objects.select_for_update().get(pk=review.pk)
        undone = undo_changes(change_set, source, only=numbers)
        if undone.undone and only is None:
            ReviewRun.objects.filter(pk=review.pk, state=State.SAVED).update(state=State.UNDONE)
        if undone.undone:
            notify(
                owner_id=review.owner_id,
                kind=Notification.Kind.REVIEW_UNDONE,
                review_id=review.pk,
                memory_numbers=undone.undone,
            )
    return undone


def enqueue_next(review: ReviewRun) -> None:
    """Let the session's next scheduled review begin."""
    if review.session_id is None:
        return
    waiting = ReviewRun.objects.filter(
        session_id=review.session_id, state=State.SCHEDULED, not_before__lte=timezone.now()
    )
    if following := waiting.order_by("id").first():
        enqueue(following.pk, timeout=following.settings["memory_review_timeout"])


def review_model(review: ReviewRun) -> str:
    """The model a review asks: its own setting, else the agent's, else the default."""
    return review.settings.get("memory_review_model") or review.settings.get("model") or settings.DAYBOOK_MODEL


def saved_text(writes: list[dict[str, Any]]) -> str:
    """The sentence of a verbose review."""
    kept = sum(1 for write in writes if write["state"] == "applied" and write["action"] != "delete")
    if kept:
        return f"Saved {kept} {'memory' if kept == 1 else 'memories'} from your last conversation."
    gone = sum(1 for write in writes if write["state"] == "applied")
    return f"Removed {gone} {'memory' if gone == 1 else 'memories'} after your last conversation."


def _apply(claim: Claim, reflection: "Reflection", writes: list[dict[str, Any]]) -> None:
    with transaction.atomic():
        review = _hold(claim)
        source = Source(
            actor="model",
            origin=WriteOrigin.BACKGROUND_REVIEW,
            kind=ChangeSet.Kind.REVIEW,
            session_id=review.session_id,
            review_id=review.pk,
        )
        change_set = apply_writes(review, writes, source)
        applied = [write for write in writes if write["state"] == "applied"]
        _end(
            claim,
            reflection,
            State.SAVED if applied else State.NOTHING_TO_SAVE,
            writes=writes,
            change_set=change_set,
            reviewed=True,
        )
        if applied and review.settings["memory_review_verbose"]:
            numbers = [int(write["memory_id"]) for write in applied if write["action"] != "delete"]
            notify(
                owner_id=review.owner_id,
                kind=Notification.Kind.REVIEW_SAVED,
                text=saved_text(writes),
                review_id=review.pk,
                memory_numbers=numbers,
            )


def apply_writes(review: ReviewRun, writes: list[dict[str, Any]], source: Source) -> UUID | None:
    """Apply staged writes to the book as it is now; each that no longer fits is refused with its reason and the rest
    holds. Marks `writes` in place; returns the change set. In the caller's transaction, with the run's row locked."""
    actual: dict[str, int] = {}
    touched: dict[str, int] = {}
    with book_writing(review.book, source) as writer:
        if writer.book.epoch != review.book_epoch:
            raise _Cancelled("The book was cleared meanwhile.")
        for write in writes:
            if write["state"] != "staged":
                continue
            try:
                with transaction.atomic():
                    written = _write(writer, write, actual, touched)
            except DomainError as error:
                write |= {"state": "refused", "reason": str(error)}
                continue
            actual[write["key"]] = written.memory.number
            touched[write["key"]] = written.memory.version
            write |= {
                "state": "applied" if written.changed else "known",
                "memory_id": str(written.memory.number),
            }
    return writer.change_set.pk if writer.change_set else None


def _write(writer: BookWriter, write: dict[str, Any], actual: dict[str, int], touched: dict[str, int]) -> Written:
    fields = MemoryFields(content=write["after"], category=write["category"], keywords=write["keywords"])
    if write["action"] == "add":
        fields.target = write["target"]
        return writer.add(fields)
    key = write["key"]
    number = actual.get(key) or (int(key) if key.isdecimal() else -1)
    version = touched.get(key, write["version"])
    if write["action"] == "update":
        return writer.update(number, fields, version=version)
    return writer.delete(number, version=version)


def _let_wait(claim: Claim, reflection: "Reflection", writes: list[dict[str, Any]]) -> None:
    for write in writes:
        if write["state"] == "staged":
            write["state"] = "waiting"
    with transaction.atomic():
        review = _hold(claim)
        _end(claim, reflection, State.AWAITING_APPROVAL, writes=writes, reviewed=True)
        count = sum(1 for write in writes if write["state"] == "waiting")
        notify(
            owner_id=review.owner_id,
            kind=Notification.Kind.REVIEW_AWAITING_APPROVAL,
            text=f"A review wants to save {count} {'memory' if count == 1 else 'memories'}.",
            review_id=review.pk,
        )


def _hold(claim: Claim) -> ReviewRun:
    """Lock the run and its session, and check that both are still what they were."""
    review = (
        ReviewRun.objects.select_for_update(of=("self",))
        .select_related("book")
        .filter(pk=claim.review.pk, state=State.RUNNING, lease_token=claim.token)
        .first()
    )
    if review is None:
        raise _Lost
    session = Session.objects.select_for_update().filter(pk=review.session_id).first() if review.session_id else None
    if session is None:
        raise _Cancelled("The session was deleted meanwhile.")
    return review


def _end(
    claim: Claim,
    reflection: "Reflection",
    state: ReviewRun.State,
    *,
    writes: list[dict[str, Any]] | None = None,
    change_set: UUID | None = None,
    error: dict[str, Any] | None = None,
    reviewed: bool = False,
) -> None:
    """The last step of every way out: compare-and-set on state and token; 0 rows rolls everything back."""
    with transaction.atomic():
        ended = ReviewRun.objects.filter(pk=claim.review.pk, state=State.RUNNING, lease_token=claim.token).update(
            state=state,
            writes=writes if writes is not None else [],
            change_set=change_set,
            error=error,
            usage=reflection.usage,
            steps=reflection.steps,
            model=reflection.model or review_model(claim.review),
            dropped_calls=reflection.book.dropped,
            frozen_hash=reflection.conversation.sha256,
            prompt_sha256=review_prompt_sha256(),
            lease_token=None,
            lease_expires_at=None,
            finished_at=timezone.now(),
        )
        if ended != 1:
            raise _Lost
        if reviewed and claim.review.session_id:
            behind = Session.objects.filter(pk=claim.review.session_id, reviewed_through__lt=claim.review.last_seq)
            behind.update(reviewed_through=claim.review.last_seq)


def expire_leases(now: datetime) -> int:
    """Runs whose worker died: scheduled again, or failed when the attempts are used up. Returns how many."""
    stale = ReviewRun.objects.filter(state=State.RUNNING, lease_expires_at__lt=now)
    again = stale.filter(attempts__lt=MAX_ATTEMPTS).update(
        state=State.SCHEDULED, lease_token=None, lease_expires_at=None, not_before=now, enqueued_at=None
    )
    given_up = stale.update(
        state=State.FAILED,
        lease_token=None,
        lease_expires_at=None,
        finished_at=now,
        error={"code": "worker_lost", "message": "The worker went away in each of its attempts."},
    )
    return again + given_up
