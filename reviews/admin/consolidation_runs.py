"""Consolidation runs in the admin: progress, results, cost and errors; stop and undo. Runs are started from the page of
a book (consolidation_books)."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from gateway.admin.visibility import session_link
from gateway.agents.configuration import consolidation_settings
from memories.admin.access import action_record
from memories.admin.badges import moment, state_badge
from memories.admin.base import ReadOnlyAdmin
from memories.admin.columns import Column, column, fieldset, list_link, moment_column, row_link
from memories.admin.filters import BOOK_FILTER, OWNER_FILTER, DayFilter, choice_filter
from memories.admin.memory_writes import change_set_undo, report_undone
from memories.admin.object_actions import ObjectActionAdmin, object_action
from memories.history.undo import change_set_get
from memories.number_words import counted
from reviews.consolidation.health import finished_text, progress_words
from reviews.consolidation.quotas import day_usage
from reviews.consolidation.runs import cancel
from reviews.models import ConsolidationRun

State = ConsolidationRun.State
MAX_NOTES = 300


def quotas_of(run: ConsolidationRun) -> list[tuple[str, str]]:
    """Return the quotas of the run and of its owner's day: name, and use as text."""
    limits, today = consolidation_settings(), day_usage(run.owner_id)
    used = (
        ("Tokens of this run", run.tokens, limits.max_tokens_per_run),
        ("Requests of this run", run.requests, limits.max_requests_per_run),
        ("Tokens of the owner today", today.tokens, limits.max_tokens_per_day),
        ("Requests of the owner today", today.requests, limits.max_requests_per_day),
    )
    return [(name, f"{number:,} of at most {limit:,}") for name, number, limit in used]


def status_text(run: ConsolidationRun) -> str:
    """Return the run's progress, outcome or failure in a sentence or two."""
    problem = error_words(run.error)
    if run.state == State.PAUSED:
        return f"{progress_words(run)} It is paused until {moment(run.not_before)}. {problem}".strip()
    if run.state in ConsolidationRun.OPEN:
        return progress_words(run)
    if run.state in {State.FAILED, State.CANCELLED}:
        how = "It failed." if run.state == State.FAILED else "It was stopped."
        return " ".join(filter(None, (how, problem, "What was done is kept.")))
    ceiling = " It reached its limit; the next run continues." if run.ceiling else ""
    return f"{finished_text(run)}{ceiling}"


def progress_bar(run: ConsolidationRun) -> tuple[int, int]:
    """Return the value and maximum of the progress bar. It is full if there is no session to read."""
    return (run.sessions_done, run.sessions_total) if run.sessions_total else (1, 1)


def error_words(error: Any) -> str:
    """Return the message of a stored error, or "" for none."""
    return str(error.get("message") or error.get("code") or "") if isinstance(error, dict) else ""


def _paths_column(name: str, words: str) -> Column:
    paths = "<code>{}</code>"
    return column(words, lambda run: format_html_join(", ", paths, ((path,) for path in getattr(run, name))))


@admin.register(ConsolidationRun)
class ConsolidationRunAdmin(ObjectActionAdmin, ReadOnlyAdmin):
    """Consolidation runs, newest first."""

    audits_access = True
    object_actions = ("stop", "undo")
    list_display = (
        "state_badge", "trigger", "phase", "progress", "tokens_count", "requests", "started", "owner", "book",
    )  # fmt: skip
    list_select_related = ("owner__user", "book")
    list_filter = (
        OWNER_FILTER,
        BOOK_FILTER,
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

    created = moment_column("created_at", "Requested")
    started = moment_column("started_at", "Started")
    finished = moment_column("finished_at", "Finished")
    written_paths = _paths_column("written", "Written")
    removed_paths = _paths_column("removed", "Removed")
    kept_paths = _paths_column("kept", "Kept for a person's edits")
    state_badge = column("State", lambda run: state_badge(run))
    tokens_count = column("Tokens", lambda run: f"{run.tokens:,}")
    taken_out = column(
        "Filtered out",
        lambda run: (
            f"{counted(run.redacted, 'secret')} redacted, "
            f"{counted(run.dropped, 'line or skill', 'lines or skills')} left out"
        ),
    )
    documents = column(
        "Documents",
        lambda run: list_link("memories_artifact", f"book__id__exact={run.book_id}", "the documents of this book"),
    )
    change_set_link = column(
        "Change set",
        lambda run: run.change_set and row_link("memories_changeset", run.change_set, run.change_set),
    )

    @admin.display(description="Progress")
    def progress(self, run: ConsolidationRun) -> SafeString | str:
        if not run.selected:
            return "–"
        done, maximum = progress_bar(run)
        return format_html(
            '<span class="db-number">{} of {}</span>'
            '<progress class="db-progress" max="{}" value="{}" aria-label="Sessions read"></progress>',
            run.sessions_done,
            run.sessions_total,
            maximum,
            done,
        )

    @admin.display(description="Sessions")
    def sessions(self, run: ConsolidationRun) -> str:
        return (
            f"{run.sessions_done} of {run.sessions_total} read, {run.sessions_empty} with nothing durable, "
            f"{run.sessions_failed} failed"
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
        report_undone(self, request, row, change_set_undo(request, change_set_get(row.owner_id, row.change_set)))

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
    return {
        "run": run,
        "run_open": run.state in ConsolidationRun.OPEN,
        "run_badge": state_badge(run),
        "stands": status_text(run),
        "bar": progress_bar(run),
        "quotas": quotas_of(run),
    }
