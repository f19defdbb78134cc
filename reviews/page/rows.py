"""Rows of the reviews page: each review with its changes as text. The number of queries does not depend on the number
of rows."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.text import Truncator

from gateway.chat.labels import day_words
from gateway.chat.session_list import title_of, titled
from gateway.models import Session
from memories.history.provenance import Turns
from memories.models import ChangeSet, Revision, Target
from memories.number_words import counted
from memories.page.rows import IconLabel
from memories.selectors import undo_steps
from memories.viewers import Viewer
from reviews.models import ReviewRun
from reviews.presenter import ShownWrite, about_words, by_staff, reason_words
from reviews.selectors import turns_read
from reviews.writes import ReviewWrite, WriteState, applied

State = ReviewRun.State
Undos = Mapping[int, ChangeSet]
"""The newest undo or redo by number of a memory."""
_ICONS = {
    State.SCHEDULED: "clock",
    State.RUNNING: "dot",
    State.AWAITING_APPROVAL: "clock",
    State.SAVED: "check",
    State.NOTHING_TO_SAVE: "check",
    State.TIMED_OUT: "alert",
    State.FAILED: "alert",
    State.CANCELLED: "off",
    State.UNDONE: "undo",
}
_MAX_NAME = 40
_HIDDEN = (WriteState.REFUSED, WriteState.KNOWN, WriteState.JOINED)
_TARGETS = {str(target): str(target.label).lower() for target in Target}
_STRUCK = (WriteState.UNDONE, WriteState.REJECTED, WriteState.EXPIRED)
_NOTES = {
    WriteState.REJECTED: "rejected",
    WriteState.EXPIRED: "not decided in time",
    WriteState.SKIPPED: "changed since, not undone",
}
_FALLBACK_TITLES: dict[str, str] = {ReviewRun.Trigger.APP: "A connected app", ReviewRun.Trigger.IMPORT: "An import"}
_RETRY_NOTE = "Nothing was saved. The next review reads these turns too."


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineWrite(ShownWrite):
    """A write of a review. `alone` means that it can be undone by itself; `restorable` is the change set that undid it,
    and `back_words` the label of the button that restores it."""

    struck: bool
    note: str
    alone: bool = False
    restorable: UUID | None = None
    back_words: str = ""

    @property
    def name(self) -> str:
        """The beginning of the text, to label buttons with."""
        return Truncator(self.write.after or self.write.before or "").chars(_MAX_NAME)


def rows_of(reviews: Sequence[ReviewRun], viewer: Viewer) -> list[dict[str, Any]]:
    """Return rows for reviews/run.html, in the given order. In a row `version` changes whenever the row looks
    different; `day` is a date, and `new_day` its name if this is its first row; `later` has the indexes of writes that
    can still be saved."""
    ids = {review.session_id for review in reviews if review.session_id}
    found = titled(Session.objects.filter(owner_id=viewer.owner.pk, pk__in=ids)) if ids else ()
    sessions = {session.pk: session for session in found}
    turns = turns_read(viewer.owner.pk, reviews)
    sets = [review.change_set for review in reviews if review.change_set]
    undos = _newest_undos(viewer.owner.pk, sets) if sets else {}
    today, above = viewer.local(timezone.now()).date(), None
    rows = []
    for review in reviews:
        row = _row(
            review,
            viewer,
            session=sessions.get(review.session_id) if review.session_id else None,
            turns=turns.get(review.pk),
            undos=undos.get(review.change_set, {}) if review.change_set else {},
        )
        day = viewer.local(review.created_at).date()
        rows.append(row | {"day": day, "new_day": day_words(day, today) if day != above else ""})
        above = day
    return rows


def _newest_undos(owner_id: UUID, sets: Sequence[UUID]) -> dict[UUID, Undos]:
    """Return the undos of each change set of a review. At most three queries."""
    steps = {step.pk: (root, step) for root, step, _ in undo_steps(owner_id, sets)}
    by_set: dict[UUID, dict[int, ChangeSet]] = defaultdict(dict)
    if steps:
        rows = Revision.objects.filter(owner_id=owner_id, change_set_id__in=list(steps)).order_by("version")
        for step_id, number in rows.values_list("change_set_id", "memory__number"):
            root, step = steps[step_id]
            by_set[root][number] = step
    return dict(by_set)


def _row(
    review: ReviewRun, viewer: Viewer, *, session: Session | None, turns: Turns | None, undos: Undos
) -> dict[str, Any]:
    state = State(review.state)
    writes = [write for write in review.writes if write.state not in _HIDDEN]
    undone = {w.index: undos[w.number] for w in writes if w.state == WriteState.UNDONE and w.number in undos}
    undoing = {undo.pk for undo in undone.values()}
    # If a single change set undid all writes, it is restored as a whole.
    restorable = undoing.pop() if state == State.UNDONE and len(undoing) == 1 else None
    single = {} if restorable else _single_actions(writes, undone, viewer)
    changes = [_change(write, **single.get(write.index, {})) for write in writes]
    newest = max(undos.values(), key=lambda undo: undo.pk, default=None)
    rejected = state == State.CANCELLED and (review.error or {}).get("code") == "rejected"
    looks = [f"{change.write.state}{change.write.times or ''}" for change in changes]
    return {
        "review": review,
        "version": ".".join([state, str(review.attempts), str(newest.pk) if newest else "", *looks]),
        "time": f"{viewer.local(review.created_at):%H:%M}",
        "icon_label": IconLabel(_ICONS[state], "Rejected" if rejected else str(state.label)),
        "title": title_of(session) if session else _FALLBACK_TITLES.get(review.trigger, "A session that was deleted"),
        "turns": turns if session else None,
        "span": _usage_text(review, turns.last - turns.first + 1 if turns else 0),
        "outcome": _outcome(review, viewer),
        "changes": [change for change in changes if not change.write.waiting],
        "waiting": [change for change in changes if change.write.waiting],
        "undo": _action_words("Undo", len(applied(writes))) if applied(writes) and review.change_set else "",
        "restorable": restorable,
        "undone": _undone_words(newest, viewer) if restorable and newest else "",
        "later": [c.write.index for c in changes if c.write.pending and not c.write.waiting and not review.orphaned],
        "again": session is not None and state in ReviewRun.FAILED,
        "open": state in ReviewRun.OPEN,
    }


def _change(write: ReviewWrite, *, note: str = "", **single: Any) -> TimelineWrite:
    """Return a write as a row shows it. The keyword arguments are its entry in `_single_actions`."""
    if write.edited and write.state == WriteState.APPLIED:
        note = "edited by an administrator" if by_staff(write.edited_by) else "edited by you"
    return TimelineWrite(
        write=write,
        about=about_words(write, _TARGETS),
        struck=write.state in _STRUCK or write.action == "delete",
        note=note or _NOTES.get(write.state, ""),
        **single,
    )


def _single_actions(
    writes: Sequence[ReviewWrite], undone: Mapping[int, ChangeSet], viewer: Viewer
) -> dict[int, dict[str, Any]]:
    """Return the undo or restore that each write can have by itself, by its index. `undone` has the undos of writes by
    index. Writes that were undone together are restored together, by a button at the first of them."""
    in_effect = applied(writes)
    actions: dict[int, dict[str, Any]] = {write.index: {"alone": len(in_effect) > 1} for write in in_effect}
    together = Counter(undo.pk for undo in undone.values())
    for index, undo in undone.items():
        number = together.pop(undo.pk, 0)
        actions[index] = {
            "restorable": undo.pk if number else None,
            "back_words": _action_words("Restore", number),
            "note": _undone_words(undo, viewer),
        }
    return actions


def _action_words(verb: str, number: int) -> str:
    """Return text such as `Undo`, `Undo both` or `Undo all 3`."""
    if number < 2:
        return verb
    return f"{verb} both" if number == 2 else f"{verb} all {number}"


def _usage_text(review: ReviewRun, turns: int) -> str:
    """Return text such as `qwen3-8b · 1,870 tokens · 4 s`; for a running review, `Reading 3 turns · 9 of at most 30
    seconds`."""
    if review.state == State.RUNNING and review.started_at:
        seconds = max(0, int((timezone.now() - review.started_at).total_seconds()))
        timeout = review.settings.get("memory_review_timeout", 30)
        reading = f"Reading {counted(turns, 'turn')} · " if turns else ""
        return f"{reading}{min(seconds, timeout)} of at most {timeout} seconds"
    parts = [review.model] if review.model else []
    if tokens := review.usage.get("total_tokens"):
        parts.append(f"{tokens:,} tokens")
    if review.started_at and review.answered_at and review.state in {State.SAVED, State.NOTHING_TO_SAVE}:
        parts.append(_duration((review.answered_at - review.started_at).total_seconds()))
    return " · ".join(parts)


def _outcome(review: ReviewRun, viewer: Viewer) -> str:
    """Return why the review saved nothing, or when it begins; "" if its state and changes say it all."""
    reason = reason_words(review, own=True)
    if review.state in ReviewRun.FAILED:
        return f"{reason or 'It could not be finished.'} {_RETRY_NOTE}"
    if review.state == State.CANCELLED:
        return f"{reason} Nothing was saved.".strip()
    if review.state == State.SCHEDULED:
        later = review.not_before > timezone.now()
        when = f"It begins {viewer.near_minute(review.not_before)}."
        return f"{reason} {when if later else 'It begins as soon as a worker is free.'}".strip()
    return ""


def _undone_words(step: ChangeSet, viewer: Viewer) -> str:
    """Return text such as `Undone by you, 18:41`, with the day unless it was today."""
    who = "you" if step.actor == viewer.actor else "somebody else"
    near = viewer.near_day(step.created_at)
    return f"Undone by {who}{'' if near == 'today' else f' {near}'}, {viewer.local(step.created_at):%H:%M}"


def _duration(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 100 else f"{round(seconds / 60)} min"
