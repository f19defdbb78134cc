"""The admin of memories: the list, a page with the history beside the form, and actions. Every change goes through
memories.services, which scans it, checks the budget and stores a revision."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memories.admin.access import action_record
from memories.admin.badges import TARGETS, day, memory_badge, moment, origin_badge
from memories.admin.base import ServiceAdmin
from memories.admin.columns import column, moment_column, row_link
from memories.admin.diffs import history_rows
from memories.admin.filters import (
    BOOK_FILTER,
    OWNER_FILTER,
    DayFilter,
    MemoryStateFilter,
    OriginFilter,
    TargetFilter,
    text_filter,
)
from memories.admin.memory_form import MemoryForm
from memories.admin.memory_writes import memories_edit, memory_lines, staff_source
from memories.admin.object_actions import ObjectActionAdmin, object_action, posted_revision
from memories.audit.log import Action
from memories.bulk_edits import Edit, allow, edit_of
from memories.history.undo import memory_restore
from memories.models import Memory, Revision
from memories.number_words import counted, times
from memories.services import book_writing

# By verb: the edit, the word for it in messages, and its audit action.
_EDITS: dict[str, tuple[Edit, str, Action]] = {
    "delete": (edit_of("delete"), "Deleted", Action.DELETE),
    "restore": (edit_of("restore"), "Restored", Action.CHANGE),
    "allow": (allow, "Allowed", Action.ALLOW),
}

_ROW = (
    '<span class="db-clamp"><span class="db-number">{}</span> <span class="db-words">{}</span></span>'
    '<span class="db-under">{} {}</span>'
)


def _words(memory: Memory) -> SafeString:
    subject = f"{_about(memory)} · {memory.category}"
    return format_html(_ROW, memory.number, memory.content, origin_badge(memory.write_origin), subject)


def _about(memory: Memory) -> str:
    return TARGETS.get(memory.target, memory.target)


def _used(memory: Memory) -> str:
    return f"{moment(memory.last_used_at)} ({times(memory.usage_count)})" if memory.last_used_at else "Not recalled yet"


def _last_use(memory: Memory) -> str:
    return f"{day(memory.last_used_at)}, {memory.usage_count} ×" if memory.last_used_at else "Not yet"


@admin.register(Memory)
class MemoryAdmin(ObjectActionAdmin, ServiceAdmin):
    """Memories of all owners."""

    audits_access = True
    object_actions = ("allow", "delete", "restore", "put_back")
    form = MemoryForm
    list_display = ("words", "whose", "state", "last_use", "written")
    sortable_by = ("last_use", "written")
    list_select_related = ("owner__user", "book")
    list_filter = (
        MemoryStateFilter,
        OWNER_FILTER,
        BOOK_FILTER,
        TargetFilter,
        text_filter("category", "category"),
        OriginFilter,
        ("created_at", DayFilter),
        ("last_used_at", DayFilter),
    )
    search_fields = ("content",)
    search_help_text = "Text of the memory, or its number"
    searched_number = "number"
    autocomplete_fields = ("book",)
    actions = ("delete_memories", "restore_memories", "allow_memories", "export_memories")
    change_form_template = "admin/memories/memory/change_form.html"
    readonly_fields = (
        "number", "owner", "origin", "state", "where_from", "used", "created", "changed", "about", "keyword_words",
        "metadata_words",
    )  # fmt: skip
    _WORDS = ("content", ("target", "category"), "keywords", "metadata", "pinned", "expires_at", "version")
    _READ_ONLY_WORDS = ("content", ("about", "category"), "keyword_words", "metadata_words", "pinned", "expires_at")
    _FACTS = (("number", "state"), ("owner", "book"), ("origin", "where_from"), ("used", "created"), "changed")
    add_fieldsets = ((None, {"fields": ("book", *_WORDS)}),)
    fieldsets = ((None, {"fields": _WORDS}), ("Details", {"fields": _FACTS}))
    read_only_fieldsets = ((None, {"fields": _READ_ONLY_WORDS}), ("Details", {"fields": _FACTS}))

    words = column("Memory", _words)
    about = column("About", _about)
    whose = column("Owner and book", lambda memory: f"{memory.owner} · {memory.book.name}")
    keyword_words = column("Keywords", lambda memory: ", ".join(memory.keywords))
    metadata_words = column("Metadata", lambda row: ", ".join(f"{k}: {v}" for k, v in sorted(row.metadata.items())))
    origin = column("Written by", lambda memory: origin_badge(memory.write_origin))
    state = column("State", memory_badge)
    used = column("Last recalled", _used)
    last_use = column("Last recalled", _last_use, ordering="last_used_at")
    written = column("Written", lambda memory: day(memory.created_at), ordering="pk")
    changed = moment_column("updated_at", "Changed")
    created = moment_column("created_at", "Created")
    where_from = column(
        "From", lambda row: row.session_id and row_link("gateway_session", row.session_id, "the session it comes from")
    )

    def has_change_permission(self, request: HttpRequest, obj: Memory | None = None) -> bool:
        return super().has_change_permission(request, obj) and not (obj is not None and obj.deleted_at)

    def has_remove_permission(self, request: HttpRequest) -> bool:
        """Return True if the user may delete memories and restore deleted ones."""
        return bool(request.user.has_perm("memories.delete_memory"))

    @admin.action(description="Delete", permissions=["remove"])
    def delete_memories(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        self._edit(request, queryset, "delete")

    @admin.action(description="Restore deleted memories", permissions=["remove"])
    def restore_memories(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        self._edit(request, queryset, "restore")

    @admin.action(description="Allow blocked memories", permissions=["change"])
    def allow_memories(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        self._edit(request, queryset, "allow")

    @admin.action(description="Export (JSON Lines)", permissions=["view"])
    def export_memories(self, request: HttpRequest, queryset: QuerySet[Memory]) -> HttpResponse:
        action_record(request, Memory, "", queryset, Action.EXPORT)
        return HttpResponse(
            "".join(memory_lines(queryset)),
            content_type="application/x-ndjson",
            headers={"Content-Disposition": 'attachment; filename="memories.jsonl"'},
        )

    def _edit(self, request: HttpRequest, memories: Iterable[Memory], verb: str) -> None:
        edit, done, action = _EDITS[verb]
        changed, unchanged = memories_edit(memories, edit, staff_source(request))
        if changed:
            self.message_user(request, f"{done} {counted(len(changed), 'memory', 'memories')}.", messages.SUCCESS)
            action_record(request, Memory, f"{done}.", changed, action)
        for memory in unchanged:
            words = f"Left alone: memory {memory.number} of {memory.owner} needs no change."
            self.message_user(request, words, messages.WARNING)

    @object_action(
        "Allow this text", "memories.change_memory", applies=lambda row: bool(row.blocked and not row.deleted_at)
    )
    def allow(self, request: HttpRequest, row: Memory) -> None:
        self._edit(request, [row], "allow")

    @object_action("Delete", "memories.delete_memory", look="danger", applies=lambda row: not row.deleted_at)
    def delete(self, request: HttpRequest, row: Memory) -> None:
        self._edit(request, [row], "delete")

    @object_action("Restore", "memories.delete_memory", look="primary", applies=lambda row: bool(row.deleted_at))
    def restore(self, request: HttpRequest, row: Memory) -> None:
        self._edit(request, [row], "restore")

    # Its buttons are in the history.
    @object_action("Restore this", "memories.change_memory", applies=lambda row: False)
    def put_back(self, request: HttpRequest, row: Memory) -> None:
        revision = posted_revision(request, Revision.objects.filter(memory=row, owner_id=row.owner_id))
        if memory_restore(row, revision, staff_source(request)).changed:
            self.message_user(request, "Restored. The previous text stays in the history.", messages.SUCCESS)
            action_record(request, Memory, "Restored an earlier state.", [row])
        else:
            self.message_user(request, "It is already in this state.", messages.WARNING)

    def get_readonly_fields(self, request: HttpRequest, obj: Memory | None = None) -> tuple[str, ...]:
        return (*self.readonly_fields, "book") if obj else self.readonly_fields

    def page_context(self, request: HttpRequest, row: Memory) -> dict[str, Any]:
        return {
            **super().page_context(request, row),
            "title": f"Memory {row.number}",
            "history": history_rows(row),
            "state_badge": memory_badge(row),
            "blocked": row.blocked and not row.deleted_at,
            "may_edit": self.has_change_permission(request),
        }

    def save_model(self, request: HttpRequest, obj: Memory, form: MemoryForm, change: bool) -> None:
        """Save through the service. Raises DomainErrors, which the form shows."""
        with book_writing(obj.book, staff_source(request)) as writer:
            if change:
                writer.update(obj.number, form.wanted(), version=form.cleaned_data["version"])
            else:
                # The admin logs and redirects with obj, so it needs the key that the service chose.
                memory = writer.add(form.wanted(), if_known=form.wanted()).memory
                obj.pk, obj.number = memory.pk, memory.number
