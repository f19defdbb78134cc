"""Revisions and change sets in the admin: what was written and by whom, and undo."""

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memories.admin.actors import actors_add
from memories.admin.badges import origin_badge
from memories.admin.base import ReadOnlyAdmin
from memories.admin.change_words import sentences_add, shown_change_sets
from memories.admin.columns import column, list_link, moment_column, row_link
from memories.admin.diffs import field_changes, revision_diff
from memories.admin.filters import OWNER_FILTER, ActorFilter, CreatedDayFilter, OriginFilter, choice_filter, id_filter
from memories.admin.memory_writes import change_set_undo, report_undone
from memories.admin.object_actions import ObjectActionAdmin, object_action
from memories.history.revisions import action_words
from memories.ids import parse_uuid
from memories.models import ChangeSet, Revision


def _words(revision: Revision) -> SafeString:
    return format_html('<span class="db-clamp db-words">{}</span>', revision_diff(revision.before, revision.after))


def _other_changes(revision: Revision) -> str:
    changes = field_changes(revision.before, revision.after)
    return "; ".join(f"{change.name}: {change.before} → {change.after}" for change in changes)


def _rests_on(revision: Revision) -> str:
    evidence = revision.evidence
    return f"{evidence.kind.label}: “{evidence.quote}”" if evidence.quote else str(evidence.kind.label)


@admin.register(Revision)
class RevisionAdmin(ReadOnlyAdmin):
    """Every revision of every memory. Read-only."""

    audits_access = True
    list_display = ("change", "memory_link", "owner", "who", "what", "origin", "when")
    sortable_by = ("when",)
    list_select_related = ("owner__user", "memory", "change_set")
    list_filter = (
        OWNER_FILTER,
        choice_filter("action", Revision.Action),
        OriginFilter,
        ActorFilter,
        id_filter("change_set", "change_set_id"),
        id_filter("review", "change_set__review_id"),
        ("created_at", CreatedDayFilter),
    )
    search_fields = ("memory__content",)
    search_help_text = "Current text of the memory, or its number"
    searched_number = "memory__number"
    fields = (
        *("change", "other_changes", ("memory_link", "version"), ("who", "what"), ("origin", "when")),
        *("rests_on", "set_link", "owner"),
    )

    def prepare_rows(self, rows: list[Any]) -> None:
        actors_add(rows)

    change = column("Change", _words)
    other_changes = column("Other changes", _other_changes)
    memory_link = column("Memory", lambda row: row_link("memories_memory", row.memory_id, row.memory.number))
    what = column("What", lambda revision: action_words(revision.action))
    origin = column("Origin", lambda row: origin_badge(row.write_origin))
    rests_on = column("Evidence", _rests_on)
    set_link = column("Change set", lambda revision: _set_link(revision.change_set))
    when = moment_column("created_at", "When", ordering="pk")

    @admin.display(description="Who")
    def who(self, revision: Revision) -> str:
        if not hasattr(revision, "actor_words"):
            actors_add([revision])
        return str(revision.actor_words)  # type: ignore[attr-defined]


@admin.register(ChangeSet)
class ChangeSetAdmin(ObjectActionAdmin, ReadOnlyAdmin):
    """Groups of writes that belong together. Each can be undone, and an undo can be undone too."""

    audits_access = True
    object_actions = ("undo",)
    list_display = ("what", "owner", "book", "origin", "when")
    sortable_by = ("when",)
    list_select_related = ("owner__user", "book", "undoes")
    list_filter = (
        OWNER_FILTER,
        choice_filter("kind", ChangeSet.Kind),
        OriginFilter,
        ActorFilter,
        ("created_at", CreatedDayFilter),
    )
    search_fields = ("pk",)
    search_help_text = "Current text or number of a memory, or the id of a change set, turn, session or review"
    searched_ids = ("pk", "run_id", "session_id", "review_id")
    change_form_template = "admin/memories/changeset/change_form.html"
    what = column("Change", lambda change_set: change_set.sentence)
    undone_set = column("Undoes", lambda change_set: change_set.undoes and _set_link(change_set.undoes))
    changes = column(
        "Changes",
        lambda row: list_link("memories_revision", f"change_set={row.pk}", "the revisions of this change set"),
    )
    origin = column("Origin", lambda row: origin_badge(row.write_origin))
    when = moment_column("created_at", "When", ordering="pk")
    fields = (("owner", "book"), ("kind", "origin"), "where_from", "undone_set", "changes", "documents", "when")

    def prepare_rows(self, rows: list[Any]) -> None:
        sentences_add(rows)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Look up ids directly. Anything else is searched among the revisions, if the user may view them."""
        if not search_term.strip() or parse_uuid(search_term.strip()):
            return super().get_search_results(request, queryset, search_term)
        page = admin.site.get_model_admin(Revision)
        if not page.has_view_permission(request):
            return queryset.none(), False
        changes = Revision.objects.filter(change_set=OuterRef("pk"))
        return queryset.filter(Exists(page.get_search_results(request, changes, search_term)[0])), False

    def page_context(self, request: HttpRequest, row: ChangeSet) -> dict[str, Any]:
        (shown,) = shown_change_sets(row.owner_id, [row])
        context = super().page_context(request, row)
        return {
            **context,
            "title": shown["sentence"],
            "shown": shown if request.user.has_perm("memories.view_revision") else None,
        }

    @admin.display(description="From")
    def where_from(self, change_set: ChangeSet) -> SafeString | str:
        sources = (
            ("gateway_run", change_set.run_id, "the turn"),
            ("gateway_session", change_set.session_id, "the session"),
            ("reviews_reviewrun", change_set.review_id, "the review"),
        )
        return format_html_join(", ", "{}", ((row_link(*source),) for source in sources if source[1])) or "–"

    @object_action("Undo", "memories.change_memory")
    def undo(self, request: HttpRequest, row: ChangeSet) -> None:
        report_undone(self, request, row, change_set_undo(request, row))

    @admin.display(description="Documents")
    def documents(self, change_set: ChangeSet) -> SafeString | str:
        written = change_set.artifact_revisions.select_related("artifact").order_by("artifact__path", "id")
        paths = {revision.artifact_id: revision.artifact.path for revision in written}
        links = ((row_link("memories_artifact", pk, path),) for pk, path in paths.items())
        return format_html_join(", ", "{}", links) or "–"


def _set_link(change_set: ChangeSet) -> SafeString:
    sentences_add([change_set])
    return row_link("memories_changeset", change_set.pk, change_set.sentence)  # type: ignore[attr-defined]
