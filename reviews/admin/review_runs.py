"""Review runs in the admin: input, result, cost and errors, with undo, cancel and review again."""

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from gateway.admin.sessions import SessionIdFilter
from gateway.admin.transcript import transcript
from gateway.admin.visibility import SessionTitles, session_link, title_of
from gateway.chat.memory_notes import undo_tips
from gateway.limits.money import usage_words
from gateway.models import Session
from memories.admin.access import action_record
from memories.admin.badges import moment, seconds, state_badge, total_tokens
from memories.admin.base import ReadOnlyAdmin, staff_actor
from memories.admin.columns import column, fieldset, list_link, moment_column, row_link
from memories.admin.filters import OWNER_FILTER, CreatedDayFilter, choice_filter, text_filter
from memories.admin.memory_writes import change_set_undo, report_restored, report_undone
from memories.admin.object_actions import object_action
from memories.database.batches import run_slices
from memories.errors import Conflict, DomainError
from memories.models import ChangeSet, WriteOrigin
from memories.number_words import counted, times
from reviews.admin import many_reviews
from reviews.admin.decisions import PERMISSION, DecisionAdmin
from reviews.models import ReviewRun
from reviews.presenter import reason_words
from reviews.schedule import review_session
from reviews.selectors import review_model, turns_read
from reviews.undo import review_undo_slices

# A review that awaits approval may have approved writes already.
_UNDOABLE = (ReviewRun.State.SAVED, ReviewRun.State.AWAITING_APPROVAL)
_FAILED = (*ReviewRun.FAILED, ReviewRun.State.CANCELLED)


@admin.register(ReviewRun)
class ReviewRunAdmin(SessionTitles, DecisionAdmin, ReadOnlyAdmin):
    """Reviews, newest first."""

    audits_access = True
    object_actions = ("undo", "put_back", "cancel", "again", "approve", "reject")
    list_display = (
        "state_badge", "session_title", "owner", "agent", "trigger", "writes_count", "why", "tokens", "scheduled",
    )  # fmt: skip
    list_display_links = ("state_badge", "session_title")
    sortable_by = ("scheduled",)
    list_select_related = ("owner__user", "session", "book")
    list_filter = (
        OWNER_FILTER,
        choice_filter("state", ReviewRun.State),
        choice_filter("trigger", ReviewRun.Trigger),
        text_filter("agent", "agent_name"),
        SessionIdFilter,
        ("created_at", CreatedDayFilter),
    )
    search_fields = ("session__title",)
    search_help_text = "The session's title, or the id of a review or a session"
    searched_ids = ("pk", "session_id")
    actions = (
        many_reviews.approve_reviews,
        many_reviews.reject_reviews,
        many_reviews.undo_reviews,
        many_reviews.review_again,
        many_reviews.cancel_reviews,
    )
    change_form_template = "admin/reviews/reviewrun/change_form.html"
    fieldsets = (
        fieldset(
            None,
            ("owner", "book"),
            ("session_link", "agent"),
            ("trigger", "scheduled"),
            ("changes", "turns_link"),
        ),
        fieldset(
            "How it went",
            ("model", "steps"),
            ("attempts", "seconds"),
            "usage_in_words",
            "dropped_in_words",
            ("started", "finished"),
            "outcome",
        ),
        fieldset("What it was given", "settings_in_words", "frozen_range", "frozen_hash", "prompt_sha256"),
    )

    scheduled = moment_column("created_at", "Scheduled", ordering="pk")
    started = moment_column("started_at", "Started")
    finished = moment_column("finished_at", "Finished")
    state_badge = column("State", lambda run: state_badge(run))
    session_title = column("Session", title_of)
    session_link = column("Session", lambda run: session_link(run))
    writes_count = column("Writes", lambda run: len(run.writes))
    tokens = column("Tokens", lambda run: total_tokens(run.usage))
    agent = column("Agent", lambda run: run.agent_name)
    why = column("Why", lambda run: error_words(run))
    seconds = column("Seconds", lambda run: seconds(run.started_at, run.answered_at))
    usage_in_words = column("Tokens", lambda run: usage_words(run.usage))
    frozen_range = column("Messages", lambda run: f"{run.first_seq} to {run.last_seq} of the session")
    changes = column(
        "Changes",
        lambda run: (
            run.change_set and list_link("memories_revision", f"review={run.pk}", "the revisions of this review")
        ),
    )

    @admin.display(description="Turns it read")
    def turns_link(self, run: ReviewRun) -> SafeString | str:
        turns = turns_read(run.owner_id, [run]).get(run.pk)
        return row_link("gateway_run", turns.run_id, turns.words) if turns else "–"

    @admin.display(description="Error")
    def outcome(self, run: ReviewRun) -> SafeString | str:
        if not run.error:
            return "–"
        words, code, message = error_words(run), str(run.error.get("code", "")), str(run.error.get("message", ""))
        detail = f"{code}: {message}" if message and message not in words else code
        return format_html('{} <span class="db-call">{}</span>', words, detail)

    @admin.display(description="Dropped calls of other tools")
    def dropped_in_words(self, run: ReviewRun) -> str:
        """Return text such as `shell twice, web_search once`."""
        calls = [f"{name} {times(n)}" for name, n in sorted(run.dropped_calls.items())]
        return ", ".join(calls) or "No other tool was called"

    @admin.display(description="Settings at the time")
    def settings_in_words(self, run: ReviewRun) -> str:
        settings = run.settings
        max_writes, seconds = settings.get("memory_review_max_writes", 5), settings.get("memory_review_timeout", 30)
        waits = "wait for a person" if settings.get("memory_review_approval") else "are saved at once"
        notice = "the owner is told" if settings.get("memory_review_verbose") else "the owner is not told"
        return (
            f"At most {counted(max_writes, 'write')} by {review_model(run)}, {seconds} seconds for an attempt; "
            f"its writes {waits}, {notice}."
        )

    def page_context(self, request: HttpRequest, row: ReviewRun) -> dict[str, Any]:
        """Return the review's writes, and the frozen conversation for users who may view sessions."""
        context: dict[str, Any] = super().page_context(request, row)
        note = format_html("<p>{} {}</p>", self.state_badge(row), error_words(row))
        title = f"Review of {moment(row.created_at)}"
        return {**context, "title": title, "object_action_note": note, "transcript": self._frozen(request, row)}

    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Return True if the user may undo and cancel reviews and decide about their writes. (Reviews themselves cannot
        be edited.)"""
        return bool(request.user.has_perm(PERMISSION))

    @object_action("Undo", PERMISSION, applies=lambda run: run.change_set is not None and run.state in _UNDOABLE)
    def undo(self, request: HttpRequest, row: ReviewRun) -> None:
        work = review_undo_slices(row, actor=staff_actor(request), origin=WriteOrigin.ADMIN)
        report_undone(self, request, row, run_slices(work))

    @object_action("Restore", PERMISSION, applies=lambda run: _undo_of(run) is not None)
    def put_back(self, request: HttpRequest, row: ReviewRun) -> None:
        undo = _undo_of(row)
        if undo is None:
            raise Conflict("This review is not undone.")
        report_restored(self, request, row, change_set_undo(request, undo))

    # A review that awaits approval is rejected instead.
    @object_action("Cancel", PERMISSION, look="danger", applies=lambda run: run.state in ReviewRun.OPEN)
    def cancel(self, request: HttpRequest, row: ReviewRun) -> None:
        many_reviews.cancel(request, row)
        self.message_user(request, "Cancelled.")

    @object_action(
        "Review again", PERMISSION, applies=lambda run: run.session_id and run.state in _FAILED and not run.writes
    )
    def again(self, request: HttpRequest, row: ReviewRun) -> None:
        many_reviews.again(request, row)
        self.message_user(request, "A new review is scheduled. It reads those turns too.")

    def get_urls(self) -> list[URLPattern]:
        now = path("now/<uuid:session_id>/", self.admin_site.admin_view(self.now_view), name="reviews_reviewrun_now")
        return [now, *super().get_urls()]

    @method_decorator(require_POST)
    def now_view(self, request: HttpRequest, session_id: UUID) -> HttpResponse:
        """Start a review of a session. The button is on the session's page."""
        if not request.user.has_perm(PERMISSION):
            raise PermissionDenied
        session = get_object_or_404(Session, pk=session_id)
        try:
            review = review_session(session.owner_id, session.pk)
        except DomainError as refusal:
            self.message_user(request, str(refusal), messages.ERROR)
            return HttpResponseRedirect(reverse("admin:gateway_session_change", args=[session.pk]))
        action_record(request, ReviewRun, "Requested.", [review])
        return HttpResponseRedirect(reverse("admin:reviews_reviewrun_change", args=[review.pk]))

    @staticmethod
    def _frozen(request: HttpRequest, run: ReviewRun) -> dict[str, Any] | None:
        if run.session is None or not request.user.has_perm("gateway.view_session"):
            return None
        return transcript(run.session, first=run.first_seq, last=run.last_seq)


def _undo_of(run: ReviewRun) -> ChangeSet | None:
    """Return the undo that "Restore" would undo, or None if the review is not undone."""
    if run.change_set is None or run.state != ReviewRun.State.UNDONE:
        return None
    newest, undone = undo_tips(run.owner_id, [run.change_set])[run.change_set]
    return newest if undone else None


def error_words(run: ReviewRun) -> str:
    """Return why the review failed or why it waits, else ""."""
    words = reason_words(run, own=False)
    if run.state == ReviewRun.State.SCHEDULED and words:
        return f"{words} The next attempt begins {moment(run.not_before)}."
    return words
