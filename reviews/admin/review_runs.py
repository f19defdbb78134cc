"""Review runs in the admin: what each was given, what it did, what it cost, and why it failed; and taking it back."""

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from gateway.admin.sessions import SessionIdFilter
from gateway.admin.transcript import Transcript, transcript
from gateway.models import Session
from memories.admin.access import deed_record
from memories.admin.base import ReadOnlyAdmin, row_by_id, staff_actor
from memories.admin.deeds import Deed, DeedAdmin
from memories.admin.filters import ChoiceFilter, DayFilter, ExactTextFilter
from memories.admin.marks import moment
from memories.admin.undo_words import say_undone
from memories.errors import DomainError, NotFound
from memories.ids import parse_uuid
from memories.models import WriteOrigin
from reviews.admin.review_columns import ReviewColumns, write_words
from reviews.models import ReviewRun
from reviews.schedule import review_request
from reviews.services import review_cancel, review_undo

_UNDOABLE = (ReviewRun.State.SAVED, ReviewRun.State.UNDONE)
_OPEN = (ReviewRun.State.SCHEDULED, ReviewRun.State.RUNNING, ReviewRun.State.AWAITING_APPROVAL)
_FAILED = (ReviewRun.State.FAILED, ReviewRun.State.TIMED_OUT, ReviewRun.State.CANCELLED)


class StateFilter(ChoiceFilter):
    title = "state"
    parameter_name = "state"
    words = {str(value): str(label) for value, label in ReviewRun.State.choices}


class TriggerFilter(ChoiceFilter):
    title = "trigger"
    parameter_name = "trigger"
    words = {str(value): str(label) for value, label in ReviewRun.Trigger.choices}


class AgentFilter(ExactTextFilter):
    title = "agent"
    parameter_name = "agent_name"
    column = "agent_name"


@admin.register(ReviewRun)
class ReviewRunAdmin(ReviewColumns, DeedAdmin, ReadOnlyAdmin):
    """Background reviews, newest first."""

    records_opening = True
    deeds = (
        Deed(verb="undo", label="Undo", permission="reviews.change_reviewrun"),
        Deed(verb="cancel", label="Cancel", permission="reviews.change_reviewrun", look="danger"),
        Deed(verb="again", label="Review again", permission="reviews.change_reviewrun"),
    )
    list_display = (
        "state_badge",
        "session_title",
        "owner",
        "agent_name",
        "trigger",
        "writes_count",
        "tokens",
        "attempts",
        "error_code",
        "scheduled",
        "seconds",
    )
    list_display_links = ("state_badge", "session_title")
    list_select_related = ("owner__user", "session", "book")
    list_filter = (
        ("owner", AutocompleteSelectFilter),
        StateFilter,
        TriggerFilter,
        AgentFilter,
        SessionIdFilter,
        ("created_at", DayFilter),
    )
    search_fields = ("session__title",)
    search_help_text = "The session's title, or the id of a review or a session"
    change_form_template = "admin/reviews/reviewrun/change_form.html"
    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("state_badge", "trigger"),
                    ("owner", "book"),
                    ("session_link", "agent_name"),
                    "changes",
                    "error_json",
                )
            },
        ),
        (
            "How it went",
            {
                "fields": (
                    ("model", "steps"),
                    ("attempts", "seconds"),
                    "usage_json",
                    "dropped_json",
                    ("scheduled", "started"),
                    "finished",
                )
            },
        ),
        (
            "What it was",
            {
                "fields": (
                    ("first_seq", "last_seq"),
                    "frozen_hash",
                    "prompt_sha256",
                    "settings_json",
                    "book_epoch",
                )
            },
        ),
    )
    readonly_fields = (
        "state_badge", "session_link", "changes", "error_json", "usage_json", "dropped_json", "settings_json",
        "seconds", "scheduled", "started", "finished",
    )  # fmt: skip

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[ReviewRun], search_term: str
    ) -> tuple[QuerySet[ReviewRun], bool]:
        if key := parse_uuid(search_term.strip()):
            return queryset.filter(pk=key) | queryset.filter(session_id=key), False
        found: tuple[QuerySet[ReviewRun], bool] = super().get_search_results(request, queryset, search_term)
        return found

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> ReviewRun | None:
        rows: QuerySet[ReviewRun] = self.get_queryset(request)
        return row_by_id(rows.select_related("owner__user", "book", "session"), object_id)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The review's facts, its writes, and the frozen conversation for those who may see sessions."""
        run = self.get_object(request, unquote(object_id)) if object_id else None
        context = dict(extra_context or {})
        if run is not None and self.has_view_permission(request, run):
            context["title"] = f"Review of {moment(run.created_at)}"
            context["writes"] = [write_words(write) for write in run.writes]
            context["transcript"] = self._frozen(request, run)
        return super().changeform_view(request, object_id, form_url, context)

    def fits(self, row: ReviewRun, verb: str) -> bool:
        return {
            "undo": row.change_set is not None and row.state in _UNDOABLE,
            "cancel": row.state in _OPEN,
            "again": row.session_id is not None and row.state in _FAILED,
        }[verb]

    def do(self, request: HttpRequest, row: ReviewRun, verb: str) -> None:
        if verb == "undo":
            say_undone(self, request, review_undo(row, actor=staff_actor(request), origin=WriteOrigin.ADMIN))
        elif verb == "cancel":
            cancelled = review_cancel(row, "Cancelled by an administrator.")
            self.message_user(request, "Cancelled." if cancelled else "It was over already.")
        elif row.session is None:
            raise NotFound("Its session was deleted.")
        else:
            review_request(row.owner_id, row.session)
            self.message_user(request, "A new review is scheduled. It reads those turns too.")
        deed_record(request, ReviewRun, f"{verb.capitalize()}.", [row])

    def get_urls(self) -> list[URLPattern]:
        now = path("now/<uuid:session_id>/", self.admin_site.admin_view(self.now_view), name="reviews_reviewrun_now")
        return [now, *super().get_urls()]

    @method_decorator(require_POST)
    def now_view(self, request: HttpRequest, session_id: UUID) -> HttpResponse:
        """POST: review a session now; the button stands on the session's page."""
        if not request.user.has_perm("reviews.change_reviewrun"):
            raise PermissionDenied
        session = get_object_or_404(Session, pk=session_id)
        try:
            review = review_request(session.owner_id, session)
        except DomainError as refusal:
            self.message_user(request, str(refusal), messages.ERROR)
            return HttpResponseRedirect(reverse("admin:gateway_session_change", args=[session.pk]))
        deed_record(request, ReviewRun, "Asked for.", [review])
        return HttpResponseRedirect(reverse("admin:reviews_reviewrun_change", args=[review.pk]))

    @staticmethod
    def _frozen(request: HttpRequest, run: ReviewRun) -> Transcript | None:
        if run.session is None or not request.user.has_perm("gateway.view_session"):
            return None
        return transcript(run.session, first=run.first_seq, last=run.last_seq)
