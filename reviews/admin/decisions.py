"""The writes of a review on its admin page, with diffs and states, and an administrator's decisions about held ones:
to approve or reject all or some of them, maybe with another text. Rejected and expired writes can be saved there too,
until they are purged."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

import scanning
from memories.admin.access import action_record
from memories.admin.badges import LOOK_OF, TARGETS, badge
from memories.admin.base import staff_actor
from memories.admin.columns import row_link
from memories.admin.diffs import pieces_html
from memories.admin.object_actions import ObjectActionAdmin, object_action
from memories.errors import DomainError
from memories.models import Memory
from memories.number_words import memories
from reviews.approvals import review_approve, review_reject
from reviews.models import ReviewRun
from reviews.presenter import ShownWrite, about_words
from reviews.writes import ReviewWrite, WriteState, applied, counts

PERMISSION = "reviews.change_reviewrun"
# The META key of a refused decision, until the page is rendered again.
_REFUSED_DECISION = "daybook.decision"
SAVED_STATES = (WriteState.APPLIED, WriteState.KNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRow(ShownWrite):
    """A write. `url` is the page of its memory, or "" if there is none."""

    url: str

    @property
    def state_badge(self) -> SafeString | str:
        """The badge of its state, or "" while it is staged."""
        state = self.write.state
        return "" if state == WriteState.STAGED else badge(str(state.label), *LOOK_OF[state])

    @property
    def diff(self) -> SafeString | str:
        """The diff of the content, or "" if the content is no longer stored."""
        html = pieces_html(self.pieces)
        return format_html("<del>{}</del>", html) if html and self.write.action == "delete" else html


def write_rows(owner_id: UUID, runs: Sequence[ReviewRun]) -> dict[UUID, list[WriteRow]]:
    """Return the writes of an owner's reviews, by review. One query, none if no write is about a stored memory."""
    numbers = {write.number for run in runs for write in run.writes} - {0}
    rows = Memory.objects.filter(owner_id=owner_id, number__in=numbers) if numbers else Memory.objects.none()
    urls = {n: reverse("admin:memories_memory_change", args=[pk]) for n, pk in rows.values_list("number", "pk")}
    return {
        run.pk: [
            WriteRow(write=write, about=about_words(write, TARGETS), url=urls.get(write.number, ""))
            for write in run.writes
        ]
        for run in runs
    }


def approve(
    request: HttpRequest,
    run: ReviewRun,
    only: frozenset[int] | None = None,
    edits: Mapping[int, str] | None = None,
) -> list[ReviewWrite]:
    """Save the writes of a review with the indexes in `only`, or those that wait, for an administrator, with an audit
    entry. Return them; those that were refused while others were saved have another state than SAVED_STATES. Raises as
    review_approve does."""
    chosen: list[ReviewWrite] = []

    def record(writes: Sequence[ReviewWrite]) -> None:
        chosen.extend(writes)
        action_record(request, ReviewRun, f"Approved {_index_words(writes, *SAVED_STATES)}.", [run])

    review_approve(run, actor=staff_actor(request), only=only, edits=edits, waiting=only is None, record=record)
    return chosen


def reject(request: HttpRequest, run: ReviewRun, only: frozenset[int] | None = None) -> None:
    """Reject the writes of a review with the indexes in `only`, or those that wait, for an administrator, with an audit
    entry. Raises as review_reject does."""

    def record(writes: Sequence[ReviewWrite]) -> None:
        action_record(request, ReviewRun, f"Rejected {_index_words(writes, WriteState.REJECTED)}.", [run])

    review_reject(run, actor=staff_actor(request), only=only, record=record)


def saved_words(reviews: Iterable[Sequence[ReviewWrite]]) -> str:
    """Return a message about the approved writes of each review."""
    saved = removed = known = 0
    for writes in reviews:
        number, fewer = counts(applied(writes))
        saved, removed = saved + number, removed + fewer
        known += sum(write.state == WriteState.KNOWN for write in writes)
    words = [f"Saved {memories(saved)}."] if saved else []
    words += [f"Removed {memories(removed)}."] if removed else []
    words += [f"{memories(known).capitalize()} already existed; nothing was stored twice."] if known else []
    return " ".join(words) or "Nothing changed."


def decision_of(run: ReviewRun, rows: list[WriteRow], typed: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the form for a review's pending writes, or None if there are none or the session was deleted. `typed` is a
    refused decision, or empty: the indexes that were `ticked`, the `words` by index, and the `error`."""
    pending = [row for row in rows if row.write.pending]
    if not pending or run.orphaned:
        return None
    choices = [
        {
            "row": row,
            "ticked": row.write.index in typed["ticked"] if typed else row.write.waiting,
            "words": (words := typed.get("words", {}).get(row.write.index, row.write.after or "")),
            "lines": min(8, 1 + len(words) // 70 + words.count("\n")),  # height of the text field
        }
        for row in pending
    ]
    return {
        "choices": choices,
        "waiting": any(row.write.waiting for row in pending),
        "error": typed.get("error", ""),
    }


class DecisionAdmin(ObjectActionAdmin):
    """Shows the decision form on a review's page and handles it. A page names `approve` and `reject` among its
    `object_actions`."""

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return the writes. Those that the user can decide about are in the form instead."""
        context: dict[str, Any] = super().page_context(request, row)
        writes = write_rows(row.owner_id, [row])[row.pk]
        decision = None
        if request.user.has_perm(PERMISSION):
            decision = decision_of(row, writes, request.META.get(_REFUSED_DECISION, {}))
        if decision is not None:
            writes = [row for row in writes if not row.write.pending]
        return {**context, "writes": writes, "decision": decision}

    # The buttons of these two are in the form.
    @object_action("Save the ticked writes", PERMISSION, applies=lambda run: False)
    def approve(self, request: HttpRequest, row: ReviewRun) -> HttpResponse | None:
        """Save the ticked writes. Those that are refused while others are saved are shown again."""

        def decide(ticked: frozenset[int], typed: Mapping[int, str]) -> frozenset[int]:
            proposed = {write.index: write.after for write in row.writes}
            edits = {index: typed[index] for index in ticked & typed.keys() if typed[index] != proposed[index]}
            chosen = approve(request, row, ticked, edits)
            self.message_user(request, saved_words([chosen]), messages.SUCCESS)
            return frozenset(write.index for write in chosen if write.state not in SAVED_STATES)

        return self._decide(request, row, decide)

    @object_action("Reject the ticked writes", PERMISSION, applies=lambda run: False)
    def reject(self, request: HttpRequest, row: ReviewRun) -> HttpResponse | None:
        """Reject the ticked writes. Writes that were already rejected or expired stay as they are."""

        def decide(ticked: frozenset[int], typed: Mapping[int, str]) -> frozenset[int]:
            reject(request, row, ticked & {write.index for write in row.writes if write.waiting} or ticked)
            self.message_user(request, "Rejected. It can still be saved here for a while.", messages.SUCCESS)
            return frozenset()

        return self._decide(request, row, decide)

    def _decide(
        self,
        request: HttpRequest,
        run: ReviewRun,
        decide: Callable[[frozenset[int], Mapping[int, str]], frozenset[int]],
    ) -> HttpResponse | None:
        """Call `decide` with the indexes of the ticked writes (POST `write`) and the typed texts (`words-INDEX`); it
        returns the indexes of refused ones. A refused decision is shown again as it was typed, with the reason."""
        ticked = frozenset(int(i) for i in request.POST.getlist("write") if i.isdecimal() and len(i) < 6)
        typed = _typed(request, run)
        refused, error = ticked, "Tick at least one write."
        try:
            if ticked:
                refused = decide(ticked, typed)
                error = "The ticked writes were not saved; see the reason beside each."
        except DomainError as refusal:
            error = str(refusal)
        if refused or not ticked:
            return self._show_again(request, run, {"ticked": refused, "words": typed, "error": error})
        waiting = self.get_queryset(request).filter(state=ReviewRun.State.AWAITING_APPROVAL).exclude(pk=run.pk)
        if review := waiting.filter(pk__lt=run.pk).order_by("-pk").first() or waiting.order_by("-pk").first():
            self.message_user(request, row_link("reviews_reviewrun", review.pk, "Next review that waits"))
        return None

    def _show_again(self, request: HttpRequest, run: ReviewRun, typed: dict[str, Any]) -> HttpResponse:
        """Show the page with the typed text. A secret is not shown again: the proposed text takes its place."""
        words = {index: words for index, words in typed["words"].items() if not scanning.scan(words).has_secret}
        shown = copy(request)
        shown.method = "GET"  # the admin's own view is read-only and would refuse a POST
        shown.META[_REFUSED_DECISION] = {**typed, "words": words}
        return self.changeform_view(shown, str(run.pk))


def _typed(request: HttpRequest, run: ReviewRun) -> dict[int, str]:
    typed = {}
    for write in run.writes:
        words = request.POST.get(f"words-{write.index}")
        if write.pending and write.action != "delete" and words is not None:
            typed[write.index] = words.replace("\r\n", "\n")
    return typed


def _index_words(chosen: Sequence[ReviewWrite], *states: WriteState) -> str:
    indexes = [str(write.index) for write in chosen if write.state in states]
    return f"write{'' if len(indexes) == 1 else 's'} {', '.join(indexes)}"
