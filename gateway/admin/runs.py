"""Runs in the admin: a list, and a page that explains one turn. Read-only."""

import json
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from gateway.admin.sessions import SessionIdFilter
from gateway.admin.turn import error_sentence, turn_explained
from gateway.admin.visibility import SessionTitles, Visibility, session_link, title_of
from gateway.models import Run
from memories.admin.badges import seconds, state_badge, total_tokens
from memories.admin.base import ReadOnlyAdmin
from memories.admin.columns import column, moment_column, yes_no_column
from memories.admin.filters import OWNER_FILTER, CreatedDayFilter, choice_filter
from memories.ids import parse_uuid

# Raw fields of the row; some of them quote the conversation.
_RAW = ("error", "usage", "recalled", "trace")
_RAW_WITHOUT_WORDS = ("usage", "trace")


@admin.register(Run)
class RunAdmin(SessionTitles, ReadOnlyAdmin):
    """Executions of turns: the question, what memory gave, what was done, and what it cost."""

    audits_access = True
    list_display = ("turn_of", "owner", "state_badge", "model", "tokens", "seconds", "why", "started")
    sortable_by = ("started",)
    list_select_related = ("owner__user", "session__agent")
    list_filter = (OWNER_FILTER, choice_filter("state", Run.State), SessionIdFilter, ("started_at", CreatedDayFilter))
    search_fields = ("request_id",)
    search_help_text = "Request id, or the run's id"
    change_form_template = "admin/gateway/run/change_form.html"
    fields = (
        ("session_link", "owner"),
        ("started", "request_id"),
        ("is_counted", "is_superseded"),
        ("lease_until", "stop_asked"),
        "id",
    )
    is_counted = yes_no_column("counted", "Counted as a user turn")
    is_superseded = yes_no_column("superseded", "Superseded")
    lease_until = moment_column("lease_expires_at", "Lease until")
    stop_asked = yes_no_column("stop_requested", "Stop requested")
    session_link = column("Session", session_link)
    started = moment_column("started_at", "Started", ordering="pk")
    turn_of = column("Turn", lambda run: f"Turn {run.turn} of {title_of(run)}")
    state_badge = column("State", lambda run: state_badge(run))
    tokens = column("Tokens", lambda run: total_tokens(run.usage))
    seconds = column("Seconds", lambda run: seconds(run.started_at, run.finished_at))
    why = column("Why", lambda run: error_sentence(run, words=not getattr(run, "titles_hidden", False)))

    def page_context(self, request: HttpRequest, row: Run) -> dict[str, Any]:
        visible = Visibility.of(request)
        raw = _RAW if visible.words else _RAW_WITHOUT_WORDS
        return {
            **super().page_context(request, row),
            "title": self.turn_of(row),
            "turn": turn_explained(row, visible),
            "turn_badge": state_badge(row),
            "raw": [(name, pretty(getattr(row, name))) for name in raw],
        }

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Run], search_term: str
    ) -> tuple[QuerySet[Run], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        # Compare whole ids, not substrings. Like run ids, some request ids are UUIDs.
        key = parse_uuid(term)
        return queryset.filter(Q(request_id=term) | Q(pk=key) if key else Q(request_id=term)), False


def pretty(value: Any) -> str:
    """Return a value as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)
