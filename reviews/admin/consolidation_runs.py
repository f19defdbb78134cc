"""Consolidation runs in the admin: progress, results, cost and errors; stop and undo. And the notes extracted from
sessions, read-only. Runs are started from the page of a book (consolidation_books)."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from gateway.admin.session_titles import SessionTitles, session_link
from gateway.admin.sessions import SessionIdFilter
from memories.admin.access import action_record
from memories.admin.badges import moment, state_badge
from memories.admin.base import ReadOnlyAdmin
from memories.admin.columns import fieldset
from memories.admin.filters import DayFilter, choice_filter, id_filter
from memories.admin.memory_writes import change_set_undo
from memories.admin.object_actions import ObjectActionAdmin, object_action
from memories.admin.undo_messages import say_undone
from memories.audit.log import Action
from memories.history.undo import change_set_get
from reviews.admin.consolidation_columns import (
    NoteColumns,
    RunColumns,
    error_words,
    progress_bar,
    quotas_of,
    status_text,
)
from reviews.consolidation.runs import cancel
from reviews.models import ConsolidationRun, Extraction

MAX_NOTES = 300


@admin.register(ConsolidationRun)
class ConsolidationRunAdmin(RunColumns, ObjectActionAdmin, ReadOnlyAdmin):
    """Consolidation runs, newest first."""

    audits_access = True
    object_actions = ("stop", "undo")
    list_display = (
        "state_badge", "trigger", "phase", "progress", "tokens_count", "requests", "started", "owner", "book",
    )  # fmt: skip
    list_select_related = ("owner__user", "book")
    list_filter = (
        ("owner", AutocompleteSelectFilter),
        ("book", AutocompleteSelectFilter),
        choice_filter("state", ConsolidationRun.State),
        choice_filter("phase", ConsolidationRun.Phase),
        choice_filter("trigger", ConsolidationRun.Trigger),
        ("created_at", DayFilter),
    )
    search_fields = ("book__name",)
    searched_ids = ("pk",)
    search_help_text = "The book's name, or the id of a run"
    change_form_template = "admin/reviews/consolidationrun/change_form.html"
    fieldsets = (
        fieldset(
            "What it did",
            ("owner", "book"),
            "sessions",
            ("written_paths", "removed_paths"),
            ("kept_paths", "documents"),
            ("taken_out", "change_set_link"),
        ),
        fieldset(
            "How it went",
            ("trigger", "actor"),
            ("rebuild", "force"),
            ("created", "started"),
            ("finished", "attempts"),
            ("failures", "ceiling"),
        ),
    )

    def page_context(self, request: HttpRequest, row: ConsolidationRun) -> dict[str, Any]:
        """Return the run's progress, and the notes of its sessions for users who may view them."""
        return {
            **super().page_context(request, row),
            **progress_context(row),
            "title": f"Consolidation of {moment(row.created_at)}",
            "notes": self._notes(request, row),
        }

    @object_action(
        "Stop",
        "reviews.change_consolidationrun",
        look="danger",
        applies=lambda run: run.state in ConsolidationRun.OPEN,
    )
    def stop(self, request: HttpRequest, row: ConsolidationRun) -> None:
        stopped = cancel(row, "Stopped by an administrator.")
        self.message_user(request, "Stopped. What was done is kept." if stopped else "It had already finished.")
        action_record(request, ConsolidationRun, "Stop.", [row])

    @object_action("Undo", "memories.change_artifact", applies=lambda run: run.change_set is not None)
    def undo(self, request: HttpRequest, row: ConsolidationRun) -> None:
        say_undone(self, request, change_set_undo(request, change_set_get(row.owner_id, row.change_set)))
        action_record(request, ConsolidationRun, "Undo.", [row], Action.UNDO)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.progress_view)
        progress = path("<path:object_id>/progress/", view, name="reviews_consolidationrun_progress")
        return [progress, *super().get_urls()]

    def progress_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Render the part of the page that is polled while the run is open. Once it has ended, make the page reload."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        run = self.get_object(request, unquote(object_id))
        if run is None:
            raise Http404
        answer = render(request, "admin/reviews/consolidationrun/progress.html", progress_context(run))
        if run.state not in ConsolidationRun.OPEN:
            answer.headers["HX-Refresh"] = "true"
        return answer

    @staticmethod
    def _notes(request: HttpRequest, run: ConsolidationRun) -> list[dict[str, Any]]:
        if not request.user.has_perm("reviews.view_extraction"):
            return []
        may_open = request.user.has_perm("gateway.view_session")
        rows = run.extractions.select_related("session").order_by("-said_at", "-pk")[:MAX_NOTES]
        return [
            {
                "state": state_badge(note),
                "session": session_link(note) if may_open else f"Session {note.session_id}",
                "said_at": note.said_at,
                "synopsis": "" if note.cleared_at else note.synopsis,
                "error": error_words(note.error),
                "url": reverse("admin:reviews_extraction_change", args=[note.pk]),
            }
            for note in rows
        ]


def progress_context(run: ConsolidationRun) -> dict[str, Any]:
    """Return the context of progress.html."""
    return {
        "run": run,
        "run_open": run.state in ConsolidationRun.OPEN,
        "run_badge": state_badge(run),
        "stands": status_text(run),
        "bar": progress_bar(run),
        "quotas": quotas_of(run),
    }


@admin.register(Extraction)
class ExtractionAdmin(SessionTitles, NoteColumns, ReadOnlyAdmin):
    """The notes extracted from past sessions. Read-only."""

    audits_access = True
    list_display = ("words", "session_title", "state_badge", "owner", "book", "said", "extracted")
    list_display_links = ("words", "session_title")
    list_select_related = ("owner__user", "book", "session")
    list_defer = ("raw_memory",)
    list_filter = (
        ("owner", AutocompleteSelectFilter),
        ("book", AutocompleteSelectFilter),
        choice_filter("state", Extraction.State),
        SessionIdFilter,
        id_filter("run", "run_id"),
        ("said_at", DayFilter),
    )
    search_fields = ("synopsis", "session__title")
    searched_ids = ("session_id", "pk")
    search_help_text = "Text of the synopsis, the session's title, or its id"
    fieldsets = (
        fieldset(None, "words", "notes"),
        fieldset(
            "Details",
            ("state_badge", "session_link"),
            ("owner", "book"),
            ("said", "extracted"),
            ("model", "attempts"),
            ("redacted", "error"),
            ("through_seq", "floor_seq"),
        ),
    )
