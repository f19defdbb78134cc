"""Read-only pages of owners, books and notifications."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from memories.admin.base import ReadOnlyAdmin
from memories.admin.columns import column, list_link, moment_column
from memories.admin.filters import OWNER_FILTER, DayFilter, words_filter
from memories.models import Book, BookLimits, Notification, Owner


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
