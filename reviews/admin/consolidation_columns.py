"""What lists and pages of consolidations, notes and artifacts say, each value in words."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from gateway.admin.session_titles import session_link, title_of
from gateway.agents.configuration import consolidation_settings
from memories.admin.badges import badge, moment, state_badge
from memories.admin.columns import moment_column, page_link
from memories.admin.filters import choice_filter
from reviews.consolidation.health import finished_text, progress_words
from reviews.consolidation.quotas import day_spent
from reviews.models import ConsolidationRun, Extraction

State = ConsolidationRun.State


RunStateFilter = choice_filter("state", State)
PhaseFilter = choice_filter("phase", ConsolidationRun.Phase)
TriggerFilter = choice_filter("trigger", ConsolidationRun.Trigger)
NoteStateFilter = choice_filter("state", Extraction.State)


def quotas_of(run: ConsolidationRun) -> list[tuple[str, str]]:
    """Return the quotas of the run and of its owner's day, with what was used of each in words."""
    limits, today = consolidation_settings(), day_spent(run.owner_id)
    used = (
        ("Tokens of this run", run.tokens, limits.max_tokens_per_run),
        ("Requests of this run", run.requests, limits.max_requests_per_run),
        ("Tokens of the owner today", today.tokens, limits.max_tokens_per_day),
        ("Requests of the owner today", today.requests, limits.max_requests_per_day),
    )
    return [(name, f"{number:,} of at most {most:,}") for name, number, most in used]


def how_it_stands(run: ConsolidationRun) -> str:
    """Return a run in a sentence or two: its progress, its outcome, or why it came to nothing."""
    problem = error_words(run.error)
    if run.state == State.PAUSED:
        return f"{progress_words(run)} It is paused until {moment(run.not_before)}. {problem}".strip()
    if run.state in ConsolidationRun.OPEN:
        return progress_words(run)
    if run.state == State.FAILED:
        return f"It failed. {problem} What was done is kept."
    if run.state == State.CANCELLED:
        return f"It was stopped. {problem} What was done is kept."
    ceiling = " It reached its limit; the next run continues." if run.ceiling else ""
    return f"{finished_text(run)}{ceiling}"


def bar_of(run: ConsolidationRun) -> tuple[int, int]:
    """Value and maximum of the bar; with no session to read it is full."""
    return (run.sessions_done, run.sessions_total) if run.sessions_total else (1, 1)


def error_words(error: Any) -> str:
    """Return the message of a stored error, "" for none."""
    return str(error.get("message") or error.get("code") or "") if isinstance(error, dict) else ""


def _paths_column(name: str, words: str) -> Callable[[Any, ConsolidationRun], SafeString | str]:
    """Return a column for a run's list of documents."""

    @admin.display(description=words)
    def column(page: Any, run: ConsolidationRun) -> SafeString | str:
        return format_html_join(", ", "<code>{}</code>", ((path,) for path in getattr(run, name))) or "–"

    return column


class RunColumns:
    """Columns by name, for a ModelAdmin of consolidation runs."""

    created = moment_column("created_at", "Asked for")
    started = moment_column("started_at", "Started")
    finished = moment_column("finished_at", "Finished")
    written_paths = _paths_column("written", "Written")
    removed_paths = _paths_column("removed", "Removed")
    kept_paths = _paths_column("kept", "Kept for a person's edits")

    @admin.display(description="State")
    def state_badge(self, run: ConsolidationRun) -> SafeString:
        return state_badge(run)

    @admin.display(description="Progress")
    def progress(self, run: ConsolidationRun) -> SafeString | str:
        if not run.selected:
            return "–"
        done, most = bar_of(run)
        return format_html(
            '<span class="db-number">{} of {}</span>'
            '<progress class="db-progress" max="{}" value="{}" aria-label="Sessions read"></progress>',
            run.sessions_done,
            run.sessions_total,
            most,
            done,
        )

    @admin.display(description="Tokens")
    def tokens_count(self, run: ConsolidationRun) -> str:
        return f"{run.tokens:,}"

    @admin.display(description="Sessions")
    def sessions(self, run: ConsolidationRun) -> str:
        return (
            f"{run.sessions_done} of {run.sessions_total} read, {run.sessions_empty} with nothing durable, "
            f"{run.sessions_failed} failed"
        )

    @admin.display(description="Taken out")
    def taken_out(self, run: ConsolidationRun) -> str:
        return f"{run.redacted} secrets redacted, {run.dropped} lines or skills left out"

    @admin.display(description="Documents")
    def documents(self, run: ConsolidationRun) -> SafeString:
        address = f"{reverse('admin:memories_artifact_changelist')}?book__id__exact={run.book_id}"
        return page_link(address, "the documents of this book")

    @admin.display(description="Change set")
    def change_set_link(self, run: ConsolidationRun) -> SafeString | str:
        if run.change_set is None:
            return "–"
        return page_link(reverse("admin:memories_changeset_change", args=[run.change_set]), run.change_set)


class NoteColumns:
    """Columns by name, for a ModelAdmin of extractions."""

    said = moment_column("said_at", "Last said")
    extracted = moment_column("extracted_at", "Read")

    @admin.display(description="State")
    def state_badge(self, note: Extraction) -> SafeString:
        return badge("Cleared", "muted", "delete") if note.cleared_at else state_badge(note)

    @admin.display(description="Session")
    def session_title(self, note: Extraction) -> str:
        return title_of(note)

    @admin.display(description="Session")
    def session_link(self, note: Extraction) -> SafeString | str:
        return session_link(note)

    @admin.display(description="Synopsis")
    def words(self, note: Extraction) -> SafeString:
        return format_html('<span class="db-words">{}</span>', note.synopsis or "–")

    @admin.display(description="Notes")
    def notes(self, note: Extraction) -> SafeString:
        return format_html('<span class="db-words">{}</span>', note.raw_memory or "–")

    @admin.display(description="Error")
    def error(self, note: Extraction) -> str:
        return error_words(note.error) or "–"
