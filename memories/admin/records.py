"""Read-only pages of owners, books, revisions, change sets and notifications."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from memories.admin.access import action_record
from memories.admin.badges import moment, origin_badge
from memories.admin.base import ReadOnlyAdmin, staff_actor
from memories.admin.diffs import field_changes, revision_diff
from memories.admin.filters import (
    ActorFilter,
    ChangeSetFilter,
    ChoiceFilter,
    DayFilter,
    OriginFilter,
    ReviewFilter,
    choice_filter,
)
from memories.admin.object_actions import ObjectAction, ObjectActionAdmin
from memories.admin.undo_messages import say_undone
from memories.audit import Action
from memories.batches import in_turns
from memories.changes import undo_slices
from memories.history import action_words
from memories.models import Book, BookLimits, ChangeSet, Notification, Owner, Revision, WriteOrigin
from memories.services import Source

ActionFilter = choice_filter("action", Revision.Action)
ChangeSetKindFilter = choice_filter("kind", ChangeSet.Kind)


class NotificationKindFilter(ChoiceFilter):
    title = "kind"
    parameter_name = "kind"
    words = {str(kind): str(kind) for kind in Notification.Kind.values}


@admin.register(Revision)
class RevisionAdmin(ReadOnlyAdmin):
    """Every change of every memory, as it was written down; nothing here can be changed."""

    records_opening = True
    list_display = ("change", "memory_link", "owner", "what", "origin", "actor", "kind", "when")
    list_display_links = ("change",)
    list_select_related = ("owner__user", "memory", "change_set")
    list_filter = (
        ("owner", AutocompleteSelectFilter),
        ActionFilter,
        OriginFilter,
        ActorFilter,
        ChangeSetFilter,
        ReviewFilter,
        ("created_at", DayFilter),
    )
    search_fields = ("memory__content",)
    search_help_text = "Words of the memory as it reads now, or its number"
    searched_number = "memory__number"
    fields = (
        "change",
        "other_changes",
        ("memory_link", "version"),
        ("what", "when"),
        ("origin", "actor"),
        "change_set",
        "owner",
    )
    readonly_fields = ("change", "other_changes", "memory_link", "what", "when", "origin")

    @admin.display(description="Change")
    def change(self, revision: Revision) -> SafeString:
        return format_html('<span class="db-words">{}</span>', revision_diff(revision.before, revision.after))

    @admin.display(description="Besides")
    def other_changes(self, revision: Revision) -> str:
        changes = field_changes(revision.before, revision.after)
        return "; ".join(f"{change.name}: {change.before} → {change.after}" for change in changes) or "–"

    @admin.display(description="Memory")
    def memory_link(self, revision: Revision) -> SafeString:
        return format_html(
            '<a class="db-link" href="{}">{}</a>',
            reverse("admin:memories_memory_change", args=[revision.memory_id]),
            revision.memory.number,
        )

    @admin.display(description="What")
    def what(self, revision: Revision) -> str:
        return action_words(revision.action)

    @admin.display(description="Origin")
    def origin(self, revision: Revision) -> SafeString:
        return origin_badge(revision.write_origin)

    @admin.display(description="In a change set of")
    def kind(self, revision: Revision) -> str:
        return revision.change_set.get_kind_display()

    @admin.display(description="When")
    def when(self, revision: Revision) -> str:
        return moment(revision.created_at)


@admin.register(ChangeSet)
class ChangeSetAdmin(ObjectActionAdmin, ReadOnlyAdmin):
    """Groups of writes that belong together; each can be taken back, and a taking back can be taken back too."""

    object_actions = (ObjectAction(verb="undo", label="Undo", permission="memories.change_memory"),)

    list_display = ("id", "kind", "owner", "book", "origin", "actor", "when")
    list_select_related = ("owner__user", "book")
    list_filter = (
        ("owner", AutocompleteSelectFilter),
        ChangeSetKindFilter,
        OriginFilter,
        ActorFilter,
        ("created_at", DayFilter),
    )
    fields = (
        "kind",
        "owner",
        "book",
        "origin",
        "actor",
        "session_id",
        "run_id",
        "review_id",
        "undoes",
        "changes",
        "documents",
        "when",
    )
    readonly_fields = ("origin", "changes", "documents", "when")

    @admin.display(description="Origin")
    def origin(self, change_set: ChangeSet) -> SafeString:
        return origin_badge(change_set.write_origin)

    def fits(self, row: ChangeSet, verb: str) -> bool:
        return True

    def do(self, request: HttpRequest, row: ChangeSet, verb: str) -> None:
        source = Source(actor=staff_actor(request), origin=WriteOrigin.ADMIN, kind=ChangeSet.Kind.UNDO, undoes=row.pk)
        say_undone(self, request, in_turns(undo_slices(row, source)))
        action_record(request, ChangeSet, "", [row], Action.UNDO)

    @admin.display(description="Changes")
    def changes(self, change_set: ChangeSet) -> SafeString:
        link = f"{reverse('admin:memories_revision_changelist')}?change_set={change_set.pk}"
        return format_html('<a class="db-link" href="{}">the revisions of this change set</a>', link)

    @admin.display(description="Documents")
    def documents(self, change_set: ChangeSet) -> SafeString | str:
        written = change_set.artifact_revisions.select_related("artifact").order_by("artifact__path", "id")
        rows = {revision.artifact_id: revision.artifact.path for revision in written}
        links = ((reverse("admin:memories_artifact_change", args=[pk]), path) for pk, path in rows.items())
        return format_html_join(", ", '<a class="db-link" href="{}">{}</a>', links) or "–"

    @admin.display(description="When")
    def when(self, change_set: ChangeSet) -> str:
        return moment(change_set.created_at)


@admin.register(Owner)
class OwnerAdmin(ReadOnlyAdmin):
    """Owners of memories. The filters of the other lists search here too."""

    list_display = ("name", "user", "parent", "namespace", "memory_seq", "time_zone", "since")
    search_fields = ("user__username", "external_id")
    search_help_text = "User name, or the id an application gave"
    fields = (
        "user",
        "parent",
        "namespace",
        "external_id",
        "memory_seq",
        "notification_seq",
        "time_zone",
        "created_at",
    )

    @admin.display(description="Owner")
    def name(self, owner: Owner) -> str:
        return str(owner)

    @admin.display(description="Since")
    def since(self, owner: Owner) -> str:
        return moment(owner.created_at)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Owner]:
        queryset: QuerySet[Owner] = super().get_queryset(request)
        return queryset.select_related("user", "parent__user")  # here, for the autocomplete too


@admin.register(Book)
class BookAdmin(ReadOnlyAdmin):
    """Memory scopes. The generation grows with each change of what may be injected."""

    list_display = ("name", "owner", "generation", "epoch", "last_write")
    list_select_related = ("owner__user",)
    list_filter = (("owner", AutocompleteSelectFilter),)
    search_fields = ("name", "owner__user__username", "owner__external_id")
    search_help_text = "Book or owner"
    fields = (
        "name",
        "owner",
        "generation",
        "epoch",
        "next_expiry_at",
        "last_write_at",
        "memories_link",
        "created_at",
    )
    readonly_fields = ("memories_link",)

    @admin.display(description="Last write")
    def last_write(self, book: Book) -> str:
        return moment(book.last_write_at)

    @admin.display(description="Memories")
    def memories_link(self, book: Book) -> SafeString:
        link = f"{reverse('admin:memories_memory_changelist')}?book__id__exact={book.pk}"
        return format_html('<a class="db-link" href="{}">the memories of this book</a>', link)


@admin.register(BookLimits)
class BookLimitsAdmin(ReadOnlyAdmin):
    """What the agents that name a book let it hold."""

    list_display = ("name", "user_char_limit", "memory_char_limit")


@admin.register(Notification)
class NotificationAdmin(ReadOnlyAdmin):
    """What was sent to owners' browsers."""

    list_display = ("seq", "owner", "kind", "text", "when")
    list_select_related = ("owner__user",)
    list_filter = (("owner", AutocompleteSelectFilter), NotificationKindFilter, ("created_at", DayFilter))

    @admin.display(description="When")
    def when(self, notification: Notification) -> Any:
        return moment(notification.created_at)
