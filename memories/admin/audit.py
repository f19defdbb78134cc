"""The audit log in the admin: read-only, with filters and an export."""

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, StreamingHttpResponse
from unfold.decorators import action

from memories.admin.base import ReadOnlyAdmin
from memories.admin.columns import column, moment_column
from memories.admin.filters import DayFilter, choice_filter, text_filter
from memories.api.audit import audit_lines
from memories.api.export import download
from memories.audit.log import KIND, Action, actor_of, audit_entries, audit_record, audit_sentence
from memories.models import AuditEntry


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """Which account viewed or changed which object of which owner, and when."""

    list_display = ("when", "sentence", "address")
    sortable_by = ("when",)
    list_filter = (
        text_filter("actor (account name)", "actor"),
        text_filter("owner of the object", "owner"),
        choice_filter("action", Action),
        ("at", DayFilter),
    )
    actions_list = ("export_lines",)
    fields = (
        *("when", "sentence", "actor", "actor_id", "action", "kind", "object_id", "owner", "owner_id", "count"),
        *("note", "address", "request_id"),
    )

    when = moment_column("at", "When", ordering="pk")
    sentence = column("What", audit_sentence)

    @action(description="Export (JSON Lines)", url_path="export")  # type: ignore[untyped-decorator]  # the theme's
    def export_lines(self, request: HttpRequest) -> StreamingHttpResponse:
        """Stream the whole log, oldest entry first. Raises PermissionDenied."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        audit_record(Action.EXPORT, actor=actor_of(request.user), kind=KIND, note="The whole log.")
        return download(audit_lines(audit_entries()), "audit.jsonl")
