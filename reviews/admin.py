"""Review runs in the admin: what each was given, what it did, what it cost, and why it failed. To look at."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from gateway.admin.sessions import SessionIdFilter, pretty
from gateway.admin.transcript import Transcript, transcript
from memories.admin.base import ReadOnlyAdmin, row_by_id
from memories.admin.filters import ChoiceFilter, DayFilter, ExactTextFilter
from memories.admin.marks import badge, moment
from memories.ids import parse_uuid
from reviews.models import ReviewRun

_TONES = {
    ReviewRun.State.SCHEDULED: ("accent", "schedule"),
    ReviewRun.State.RUNNING: ("accent", "play_arrow"),
    ReviewRun.State.AWAITING_APPROVAL: ("warn", "hourglass_empty"),
    ReviewRun.State.SAVED: ("ok", "check"),
    ReviewRun.State.NOTHING_TO_SAVE: ("muted", "remove"),
    ReviewRun.State.TIMED_OUT: ("danger", "timer_off"),
    ReviewRun.State.FAILED: ("danger", "error"),
    ReviewRun.State.CANCELLED: ("muted", "block"),
    ReviewRun.State.UNDONE: ("muted", "undo"),
}


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
class ReviewRunAdmin(ReadOnlyAdmin):
    """Background reviews, newest first."""

    records_opening = True
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

    @admin.display(description="State")
    def state_badge(self, run: ReviewRun) -> SafeString:
        tone, icon = _TONES[ReviewRun.State(run.state)]
        return badge(run.get_state_display(), tone, icon)

    @admin.display(description="Session")
    def session_title(self, run: ReviewRun) -> str:
        return (run.session.title or "Untitled") if run.session else "Deleted"

    @admin.display(description="Session")
    def session_link(self, run: ReviewRun) -> SafeString | str:
        if run.session is None:
            return "Deleted"
        return format_html(
            '<a class="db-link" href="{}">{}</a>',
            reverse("admin:gateway_session_change", args=[run.session_id]),
            self.session_title(run),
        )

    @admin.display(description="Writes")
    def writes_count(self, run: ReviewRun) -> int:
        return len(run.writes)

    @admin.display(description="Tokens")
    def tokens(self, run: ReviewRun) -> str:
        total = run.usage.get("total_tokens") if isinstance(run.usage, dict) else None
        return f"{total:,}" if isinstance(total, int) else "–"

    @admin.display(description="Error")
    def error_code(self, run: ReviewRun) -> str:
        return str(run.error.get("code", "–")) if isinstance(run.error, dict) else "–"

    @admin.display(description="Scheduled")
    def scheduled(self, run: ReviewRun) -> str:
        return moment(run.created_at)

    @admin.display(description="Started")
    def started(self, run: ReviewRun) -> str:
        return moment(run.started_at)

    @admin.display(description="Finished")
    def finished(self, run: ReviewRun) -> str:
        return moment(run.finished_at)

    @admin.display(description="Seconds")
    def seconds(self, run: ReviewRun) -> str:
        return (
            f"{(run.finished_at - run.started_at).total_seconds():.1f}" if run.finished_at and run.started_at else "–"
        )

    @admin.display(description="Changes")
    def changes(self, run: ReviewRun) -> SafeString | str:
        if run.change_set is None:
            return "–"
        link = f"{reverse('admin:memories_revision_changelist')}?review={run.pk}"
        return format_html('<a class="db-link" href="{}">the revisions of this review</a>', link)

    @admin.display(description="Error")
    def error_json(self, run: ReviewRun) -> SafeString | str:
        return pretty(run.error)

    @admin.display(description="Usage")
    def usage_json(self, run: ReviewRun) -> SafeString | str:
        return pretty(run.usage)

    @admin.display(description="Dropped tool calls")
    def dropped_json(self, run: ReviewRun) -> SafeString | str:
        return pretty(run.dropped_calls)

    @admin.display(description="Settings at the time")
    def settings_json(self, run: ReviewRun) -> SafeString | str:
        return pretty(run.settings)

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
            context["writes"] = [_write_words(write) for write in run.writes]
            context["transcript"] = self._frozen(request, run)
        return super().changeform_view(request, object_id, form_url, context)

    @staticmethod
    def _frozen(request: HttpRequest, run: ReviewRun) -> Transcript | None:
        if run.session is None or not request.user.has_perm("gateway.view_session"):
            return None
        return transcript(run.session, first=run.first_seq, last=run.last_seq)


def _write_words(write: Any) -> dict[str, str]:
    """One staged or applied write for the page, whatever of it is there."""
    write = write if isinstance(write, dict) else {}
    return {
        "action": str(write.get("action") or write.get("op") or "write"),
        "number": str(write.get("memory_id") or write.get("number") or ""),
        "content": str(write.get("content") or ""),
        "before": str(write.get("before") or ""),
        "target": str(write.get("target") or ""),
        "category": str(write.get("category") or ""),
    }
