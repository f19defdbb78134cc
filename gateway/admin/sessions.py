"""Sessions, with their transcripts, and runs: to look at. What was said stays as it was said."""

import json
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, BooleanRadioFilter

from gateway.admin.snapshot_state import snapshot_lines
from gateway.admin.transcript import transcript
from gateway.models import Run, Session
from memories.admin.badges import badge, moment, seconds, state_badge, total_tokens, yes_no
from memories.admin.base import ReadOnlyAdmin
from memories.admin.filters import DayFilter, IdFilter, choice_filter
from memories.ids import parse_uuid


def pretty(value: Any) -> SafeString | str:
    """Return a JSON value, indented for reading."""
    if value in (None, "", [], {}):
        return "–"
    return format_html('<pre class="db-json">{}</pre>', json.dumps(value, ensure_ascii=False, indent=2, default=str))


SessionStateFilter = choice_filter("state", Session.State)
RunStateFilter = choice_filter("state", Run.State)


class SessionIdFilter(IdFilter):
    title = "session"
    parameter_name = "session"
    column = "session_id"


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    """Conversations, and how far their next review is."""

    records_opening = True
    list_display = (
        "name",
        "owner",
        "agent",
        "state_badge",
        "turns",
        "turns_since_memory_review",
        "last_active",
    )
    list_select_related = ("owner__user", "agent")
    list_filter = (
        ("owner", AutocompleteSelectFilter),
        ("agent", AutocompleteSelectFilter),
        SessionStateFilter,
        ("temporary", BooleanRadioFilter),
        ("last_active_at", DayFilter),
    )
    search_fields = ("title", "external_id")
    search_help_text = "Title, a client's name for it, or its id"
    searched_ids = ("pk",)
    change_form_template = "admin/gateway/session/change_form.html"
    fields = (
        ("owner", "agent"),
        ("state_badge", "is_temporary"),
        ("turns", "turns_since_memory_review"),
        ("reviewed_through", "message_seq"),
        ("created", "last_active"),
        "snapshot",
        ("id", "external_id"),
        "related",
    )
    readonly_fields = ("state_badge", "is_temporary", "created", "last_active", "snapshot", "related", "id")

    @admin.display(description="Session")
    def name(self, session: Session) -> str:
        return session.title or f"Untitled, {moment(session.created_at)}"

    @admin.display(description="State")
    def state_badge(self, session: Session) -> SafeString:
        return (
            badge("Active", "ok", "check")
            if session.state == Session.State.ACTIVE
            else badge("Ended", "muted", "block")
        )

    @admin.display(description="Temporary")
    def is_temporary(self, session: Session) -> str:
        return yes_no(session.temporary)

    @admin.display(description="Last active")
    def last_active(self, session: Session) -> str:
        return moment(session.last_active_at)

    @admin.display(description="Started")
    def created(self, session: Session) -> str:
        return moment(session.created_at)

    @admin.display(description="See also")
    def related(self, session: Session) -> SafeString:
        runs = f"{reverse('admin:gateway_run_changelist')}?session={session.pk}"
        return format_html('<a class="db-link" href="{}">its runs</a>', runs)

    @admin.display(description="Snapshot")
    def snapshot(self, session: Session) -> SafeString:
        lines = format_html_join("", "<li>{}</li>", ((line,) for line in snapshot_lines(session)))
        return format_html('<ul class="db-list">{}</ul>', lines)

    def page_context(self, request: HttpRequest, row: Session) -> dict[str, Any]:
        """Return the session's facts and a page of its transcript (`?from=` a message's number)."""
        first = request.GET.get("from", "")
        lines = transcript(row, first=int(first) if first.isdecimal() and len(first) < 10 else 1)
        return {**super().page_context(request, row), "transcript": lines, "title": self.name(row)}


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Executions of turns: what they cost, what they were given, and why they failed."""

    records_opening = True
    list_display = ("turn_of", "owner", "state_badge", "model", "tokens", "seconds", "error_code", "started")
    list_select_related = ("owner__user", "session")
    list_filter = (
        ("owner", AutocompleteSelectFilter),
        RunStateFilter,
        SessionIdFilter,
        ("started_at", DayFilter),
    )
    search_fields = ("request_id",)
    search_help_text = "Request id, or the run's id"
    searched_ids = ("pk",)
    fields = (
        ("session_link", "turn"),
        ("owner", "state_badge"),
        ("is_counted", "is_superseded"),
        ("model", "request_id"),
        ("started", "seconds"),
        "error_json",
        "usage_json",
        "recalled_json",
        "trace_json",
        ("lease_until", "stop_asked"),
    )
    readonly_fields = (
        "session_link",
        "state_badge",
        "is_counted",
        "is_superseded",
        "lease_until",
        "stop_asked",
        "started",
        "seconds",
        "error_json",
        "usage_json",
        "recalled_json",
        "trace_json",
    )

    @admin.display(description="Turn")
    def turn_of(self, run: Run) -> str:
        return f"Turn {run.turn} of {run.session.title or 'an untitled session'}"

    @admin.display(description="Session")
    def session_link(self, run: Run) -> SafeString:
        link = reverse("admin:gateway_session_change", args=[run.session_id])
        return format_html('<a class="db-link" href="{}">{}</a>', link, run.session.title or run.session_id)

    @admin.display(description="State")
    def state_badge(self, run: Run) -> SafeString:
        return state_badge(run)

    @admin.display(description="Counted as a user turn")
    def is_counted(self, run: Run) -> str:
        return yes_no(run.counted)

    @admin.display(description="Superseded")
    def is_superseded(self, run: Run) -> str:
        return yes_no(run.superseded)

    @admin.display(description="Lease until")
    def lease_until(self, run: Run) -> str:
        return moment(run.lease_expires_at)

    @admin.display(description="Stop asked for")
    def stop_asked(self, run: Run) -> str:
        return yes_no(run.stop_requested)

    @admin.display(description="Tokens")
    def tokens(self, run: Run) -> str:
        return total_tokens(run.usage)

    @admin.display(description="Seconds")
    def seconds(self, run: Run) -> str:
        return seconds(run.started_at, run.finished_at)

    @admin.display(description="Error")
    def error_code(self, run: Run) -> str:
        error = run.error or {}
        return str(error.get("code") or error.get("error", {}).get("code", "–")) if isinstance(error, dict) else "–"

    @admin.display(description="Started")
    def started(self, run: Run) -> str:
        return moment(run.started_at)

    @admin.display(description="Error")
    def error_json(self, run: Run) -> SafeString | str:
        return pretty(run.error)

    @admin.display(description="Usage")
    def usage_json(self, run: Run) -> SafeString | str:
        return pretty(run.usage)

    @admin.display(description="Given from memory")
    def recalled_json(self, run: Run) -> SafeString | str:
        return pretty(run.recalled)

    @admin.display(description="Trace")
    def trace_json(self, run: Run) -> SafeString | str:
        return pretty(run.trace)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Run], search_term: str
    ) -> tuple[QuerySet[Run], bool]:
        if parse_uuid(search_term.strip()):
            return super().get_search_results(request, queryset, search_term)
        # Equality, not a substring: request ids are looked up, not guessed.
        return (queryset.filter(request_id=search_term.strip()) if search_term.strip() else queryset), False
