"""Rows of the reviews page: each run with what it changed, in words. Read for many runs at once: the number of queries
does not grow with the number of rows."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.text import Truncator

from gateway.chat.labels import day_words
from gateway.chat.session_list import title_of, titled
from gateway.models import Session
from memories.models import Target
from memories.page.rows import IconLabel
from memories.provenance import Turns
from memories.viewers import Viewer
from memories.word_diff import Piece, word_diff
from reviews.models import ReviewRun
from reviews.page.labels import action_words, by_staff, outcome_words, span_words
from reviews.page.undo import Steps, steps_of, undone_words
from reviews.turns_read import turns_read

State = ReviewRun.State
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
_VERBS = {"add": ("Add", "Added"), "update": ("Change", "Changed"), "delete": ("Delete", "Deleted")}
_NAME = 40
_LATER = {"rejected": "turned down", "expired": "not decided in time", "left_alone": "changed since, left alone"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One write of a review. `verb` is what is to be done while it waits, what was done afterwards. `alone`: it can be
    taken back by itself; `restorable` is the change that took it back, `back_words` how its button says so."""

    index: int
    number: int
    action: str
    verb: str
    pieces: Sequence[Piece]
    content: str
    about: str
    state: str
    struck: bool
    note: str
    alone: bool = False
    restorable: UUID | None = None
    back_words: str = ""

    @property
    def waiting(self) -> bool:
        """True if a person has to decide about it."""
        return self.state == "waiting"

    @property
    def name(self) -> str:
        """The beginning of its words, for the names of its buttons."""
        return Truncator(self.content or self.pieces[0].text).chars(_NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One review of the timeline. `version` differs when anything that is shown of it does."""

    review: ReviewRun
    version: str
    new_day: str
    day: date
    time: str
    icon_label: IconLabel
    title: str
    turns: Turns | None
    span: str
    outcome: str
    changes: Sequence[Change]
    waiting: Sequence[Change]
    undo: str
    restorable: UUID | None
    undone: str
    later: Sequence[int]
    again: bool
    open: bool


def rows_of(reviews: Sequence[ReviewRun], viewer: Viewer) -> list[Row]:
    """Rows in the given order, with a day where another one begins."""
    sessions = _sessions(viewer, {review.session_id for review in reviews if review.session_id})
    turns = turns_read(viewer.owner.pk, reviews)
    sets = [review.change_set for review in reviews if review.change_set]
    steps = steps_of(viewer.owner.pk, sets) if sets else {}
    today = viewer.local(timezone.now()).date()
    rows: list[Row] = []
    for review in reviews:
        day = viewer.local(review.created_at).date()
        begins = not rows or rows[-1].day != day
        session = sessions.get(review.session_id) if review.session_id else None
        rows.append(
            _row(
                review,
                viewer,
                day=day,
                new_day=day_words(day, today) if begins else "",
                session=session,
                turns=turns.get(review.pk),
                steps=steps.get(review.change_set, {}) if review.change_set else {},
            )
        )
    return rows


def _row(
    review: ReviewRun,
    viewer: Viewer,
    *,
    day: date,
    new_day: str,
    session: Session | None,
    turns: Turns | None,
    steps: Steps,
) -> Row:
    changes = [_change(write) for write in review.writes if write.get("state") not in {"refused", "known"}]
    applied = [change for change in changes if change.state == "applied"]
    restorable = _restorable(review, changes, steps)
    changes = changes if restorable else _single(changes, steps, viewer)
    newest = max(steps.values(), key=lambda step: step.pk, default=None)
    state = State(review.state)
    return Row(
        review=review,
        version=".".join([state, str(review.attempts), str(newest.pk) if newest else "", *(c.state for c in changes)]),
        new_day=new_day,
        day=day,
        time=f"{viewer.local(review.created_at):%H:%M}",
        icon_label=IconLabel(_ICONS[state], str(state.label)),
        title=title_of(session) if session else "A session that was deleted",
        turns=turns if session else None,
        span=span_words(review, turns.last - turns.first + 1 if turns else 0),
        outcome=outcome_words(review, viewer),
        changes=[change for change in changes if not change.waiting],
        waiting=[change for change in changes if change.waiting],
        undo=action_words("Undo", len(applied)) if applied and review.change_set else "",
        restorable=restorable,
        undone=undone_words(newest, viewer) if restorable and newest else "",
        later=[c.index for c in changes if c.state in {"rejected", "expired"}] if session else (),
        again=session is not None and state in {State.FAILED, State.TIMED_OUT},
        open=state in {State.SCHEDULED, State.RUNNING},
    )


def _change(write: Mapping[str, Any]) -> Change:
    action, state = str(write.get("action", "")), str(write.get("state", ""))
    number = str(write.get("memory_id") or "")
    before, after = str(write.get("before") or ""), str(write.get("after") or "")
    verbs = _VERBS.get(action, ("Change", "Changed"))
    pieces = word_diff(before, after) if action == "update" and before else (Piece("same", after or before),)
    target = write.get("target")
    about = str(Target(target).label).lower() if target in Target.values else ""
    return Change(
        index=int(write.get("index", 0)),
        number=int(number) if number.isdecimal() else 0,
        action=action,
        verb=verbs[state not in {"waiting", "rejected", "expired"}],
        pieces=pieces,
        content=after,
        about=" · ".join(part for part in (about, str(write.get("category") or "")) if part),
        state=state,
        struck=state in {"undone", "rejected", "expired"} or action == "delete",
        note=_LATER.get(state, _edited(write) if write.get("edited") and state == "applied" else ""),
    )


def _edited(write: Mapping[str, Any]) -> str:
    return "edited by an administrator" if by_staff(write.get("edited_by")) else "edited by you"


def _restorable(review: ReviewRun, changes: Sequence[Change], steps: Steps) -> UUID | None:
    """Return the one change that took back all that a review wrote, if it was one."""
    if review.state != State.UNDONE:
        return None
    found = {steps[c.number].pk for c in changes if c.state == "undone" and c.number in steps}
    return found.pop() if len(found) == 1 else None


def _single(changes: Sequence[Change], steps: Steps, viewer: Viewer) -> list[Change]:
    """Return the changes with what can be done to each by itself. What was taken back together is put back together."""
    several = sum(change.state == "applied" for change in changes) > 1
    together = Counter(steps[c.number].pk for c in changes if c.state == "undone" and c.number in steps)
    found = []
    for change in changes:
        step = steps.get(change.number) if change.state == "undone" else None
        if step is None:
            found.append(replace(change, alone=several and change.state == "applied"))
            continue
        words = action_words("Put back", together.pop(step.pk, 0))
        offered = step.pk if step.pk not in {c.restorable for c in found} else None
        found.append(replace(change, restorable=offered, back_words=words, note=undone_words(step, viewer)))
    return found


def _sessions(viewer: Viewer, ids: Collection[UUID]) -> dict[UUID, Session]:
    rows = titled(Session.objects.filter(owner_id=viewer.owner.pk, pk__in=ids)) if ids else ()
    return {session.pk: session for session in rows}
