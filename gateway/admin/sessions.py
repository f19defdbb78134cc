"""Sessions and their transcripts in the admin. Read-only."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, BooleanRadioFilter

from gateway.admin.snapshot_state import snapshot_lines
from gateway.admin.transcript import transcript
from gateway.models import Session
from memories.admin.badges import moment, state_badge
from memories.admin.base import ReadOnlyAdmin
from memories.admin.columns import column, list_link, moment_column, yes_no_column
from memories.admin.filters import OWNER_FILTER, DayFilter, choice_filter, id_filter
from memories.pagination import parse_number

SessionIdFilter = id_filter("session", "session_id")


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    """Conversations and the number of turns since their last review."""

    audits_access = True
    list_display = ("name", "owner", "agent", "state_badge", "turns", "turns_since_memory_review", "last_active")
    list_select_related = ("owner__user", "agent")
    list_filter = (
        OWNER_FILTER,
        ("agent", AutocompleteSelectFilter),
        choice_filter("state", Session.State),
        ("temporary", BooleanRadioFilter),
        ("last_active_at", DayFilter),
    )
    search_fields = ("title", "external_id")
    search_help_text = "Title, external id or id"
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
    is_temporary = yes_no_column("temporary", "Temporary")
    last_active = moment_column("last_active_at", "Last active")
    created = moment_column("created_at", "Started")
    related = column("See also", lambda session: list_link("gateway_run", f"session={session.pk}", "its runs"))
    state_badge = column("State", lambda session: state_badge(session))
    name = column("Session", lambda session: session.title or f"Untitled, {moment(session.created_at)}")

    @admin.display(description="Snapshot")
    def snapshot(self, session: Session) -> SafeString:
        lines = format_html_join("", "<li>{}</li>", ((line,) for line in snapshot_lines(session)))
        return format_html('<ul class="db-list">{}</ul>', lines)

    def page_context(self, request: HttpRequest, row: Session) -> dict[str, Any]:
        """Add a page of the transcript, starting at the message number `?from=`."""
        lines = transcript(row, first=parse_number(request.GET.get("from", "")) or 1)
        return {**super().page_context(request, row), "transcript": lines, "title": self.name(row)}
