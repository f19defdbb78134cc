"""Read-only pages of owners, books, notifications and the audit log."""

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from unfold.decorators import action

from memories.admin.access import kind_of
from memories.admin.base import ReadOnlyAdmin
from memories.admin.columns import column, list_link, moment_column
from memories.admin.filters import (
    OWNER_FILTER,
    ChoiceFilter,
    DayFilter,
    StateFilter,
    choice_filter,
    text_filter,
    words_filter,
)
from memories.api.audit import audit_lines
from memories.api.export import download
from memories.audit.log import KIND, SAME_LIST, Action, actor_of, audit_entries, audit_record, audit_sentence
from memories.models import AuditEntry, Book, BookLimits, Notification, Owner

_ACCESS = {Action.VIEW, Action.LIST, Action.EXPORT}
_SIGNING_IN = {Action.SIGN_IN, Action.SIGN_IN_FAILED, Action.SIGN_IN_REFUSED, Action.SIGN_OUT}


def _same_list(entry: AuditEntry) -> str:
    """Return whose rows a list showed, and how many of each."""
    if entry.action != Action.LIST or not entry.note:
        return ""
    near = (entry.at - timedelta(minutes=1), entry.at + timedelta(minutes=1))  # a client may use a request id again
    rows = AuditEntry.objects.filter(request_id=entry.request_id, action=Action.LIST, kind=entry.kind, at__range=near)
    return ", ".join(f"{row.owner or 'nobody'} ({row.count})" for row in rows.order_by("pk"))


def _limit(characters: int) -> str:
    return f"{characters:,}" if characters else "No limit"


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

    list_display = ("name", "for_user", "for_memory")

    for_user = column("User limit (characters)", lambda limits: _limit(limits.user_char_limit))
    for_memory = column("Memory limit (characters)", lambda limits: _limit(limits.memory_char_limit))


@admin.register(Notification)
class NotificationAdmin(ReadOnlyAdmin):
    """Notifications sent to the owners' browsers."""

    list_display = ("seq", "owner", "kind_name", "text", "when")
    list_select_related = ("owner__user",)
    list_filter = (
        OWNER_FILTER,
        words_filter("kind", "kind", {str(kind): str(kind) for kind in Notification.Kind.values}),
        ("created_at", DayFilter),
    )

    kind_name = column("Kind", lambda notification: notification.kind)  # as in the filter, the API and webhooks
    when = moment_column("created_at", "When")


class AuditGroupFilter(StateFilter):
    """A filter by groups of actions. A list that showed rows of several people has an entry for each of them; only the
    first is shown, unless a filter or a search may be about another one."""

    title = "what was done"
    parameter_name = "group"
    all_option = ["", "Everything"]
    words = {"changes": "Changes only", "access": "Opened, listed or exported", "sign_in": "Signing in and out"}

    def conditions(self) -> dict[str, Q]:
        changes = set(Action) - _ACCESS - _SIGNING_IN
        groups = {"changes": changes, "access": _ACCESS, "sign_in": _SIGNING_IN}
        return {name: Q(action__in=sorted(actions)) for name, actions in groups.items()}

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        rows = super().queryset(request, queryset)
        return rows if request.GET.get("owner") or request.GET.get("q") else rows.exclude(note=SAME_LIST)


class AuditDayFilter(DayFilter):
    """A filter by day."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "day"  # the column's name is "at"


class AuditKindFilter(ChoiceFilter):
    """A filter by the kind of object."""

    title = "kind of object"
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        self.words = {kind: kind for kind in sorted(map(kind_of, admin.site._registry))}
        return super().lookups(request, model_admin)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """Which account viewed or changed which object of which owner, and when."""

    list_display = ("when", "sentence", "address")
    sortable_by = ("when",)
    list_filter = (
        AuditGroupFilter,
        text_filter("actor (account name)", "actor"),
        text_filter("owner of the object", "owner"),
        choice_filter("action", Action),
        AuditKindFilter,
        ("at", AuditDayFilter),
    )
    search_fields = ("object_id__exact", "request_id__exact")
    search_help_text = "The id of an object or of a request"
    actions_list = ("export_lines",)
    fields = (
        *("when", "sentence", "actor", "actor_id", "action", "kind", "object_id", "owner", "owner_id", "count"),
        *("note", "same_list", "address", "request_id"),
    )

    when = moment_column("at", "When", ordering="pk")
    sentence = column("What", audit_sentence)
    same_list = column("All in the same list", _same_list)

    @action(description="Export the whole log (JSON Lines)", url_path="export")  # type: ignore[untyped-decorator]  # the theme's
    def export_lines(self, request: HttpRequest) -> StreamingHttpResponse:
        """Stream the whole log, oldest entry first. Raises PermissionDenied."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        audit_record(Action.EXPORT, actor=actor_of(request.user), kind=KIND, note="The whole log.")
        return download(audit_lines(audit_entries()), "audit.jsonl")
