"""Read-only pages of owners, books, notifications and the audit log."""

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from unfold.decorators import action

from memories.admin.base import ReadOnlyAdmin
from memories.admin.columns import column, list_link, moment_column
from memories.admin.filters import OWNER_FILTER, DayFilter, choice_filter, text_filter, words_filter
from memories.api.audit import audit_lines
from memories.api.export import download
from memories.audit.log import KIND, Action, actor_of, audit_entries, audit_record, audit_sentence
from memories.models import AuditEntry, Book, BookLimits, Notification, Owner


@admin.register(Owner)
class OwnerAdmin(ReadOnlyAdmin):
    """Owners of memories. The owner filters of other lists use this page's search."""

    list_display = ("name", "user", "parent", "namespace", "memory_seq", "time_zone", "since")
    search_fields = ("user__username", "external_id")
    search_help_text = "User name, or the id an application gave"
    fields = ("user", "parent", "namespace", "external_id", "memory_seq", "notification_seq", "time_zone", "created_at")

    name = column("Owner", str)
    since = moment_column("created_at", "Since")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Owner]:
        return super().get_queryset(request).select_related("user", "parent__user")  # here, for the autocomplete too


@admin.register(Book)
class BookAdmin(ReadOnlyAdmin):
    """Books. The generation increases with each change to what may be injected."""

    list_display = ("name", "owner", "generation", "epoch", "last_write")
    list_select_related = ("owner__user",)
    list_filter = (OWNER_FILTER,)
    search_fields = ("name", "owner__user__username", "owner__external_id")
    search_help_text = "Book or owner"
    fields = ("name", "owner", "generation", "epoch", "next_expiry_at", "last_write_at", "memories_link", "created_at")

    last_write = moment_column("last_write_at", "Last write")
    memories_link = column(
        "Memories",
        lambda book: list_link("memories_memory", f"book__id__exact={book.pk}", "the memories of this book"),
    )


@admin.register(BookLimits)
class BookLimitsAdmin(ReadOnlyAdmin):
    """The budgets of books, as the agents that use a book set them."""

    list_display = ("name", "user_char_limit", "memory_char_limit")


@admin.register(Notification)
class NotificationAdmin(ReadOnlyAdmin):
    """Notifications sent to the owners' browsers."""

    list_display = ("seq", "owner", "kind", "text", "when")
    list_select_related = ("owner__user",)
    list_filter = (
        OWNER_FILTER,
        words_filter("kind", "kind", {str(kind): str(kind) for kind in Notification.Kind.values}),
        ("created_at", DayFilter),
    )

    when = moment_column("created_at", "When")


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
