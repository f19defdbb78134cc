"""Admin columns and texts for consolidation runs and the notes of sessions."""

from typing import Any

from django.contrib import admin
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from gateway.admin.session_titles import session_link, title_of
from gateway.agents.configuration import consolidation_settings
from memories.admin.badges import badge, moment, state_badge
from memories.admin.columns import Column, column, list_link, moment_column, row_link
from reviews.consolidation.health import finished_text, progress_words
from reviews.consolidation.quotas import day_usage
from reviews.models import ConsolidationRun, Extraction

State = ConsolidationRun.State


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
    if run.state == State.FAILED:
        return f"It failed. {problem} What was done is kept."
    if run.state == State.CANCELLED:
        return f"It was stopped. {problem} What was done is kept."
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
    return column(words, lambda run: format_html_join(", ", paths, ((path,) for path in getattr(run, name))) or "–")


class RunColumns:
    """Columns for a ModelAdmin of consolidation runs."""

    created = moment_column("created_at", "Requested")
    started = moment_column("started_at", "Started")
    finished = moment_column("finished_at", "Finished")
    written_paths = _paths_column("written", "Written")
    removed_paths = _paths_column("removed", "Removed")
    kept_paths = _paths_column("kept", "Kept for a person's edits")
    state_badge = column("State", lambda run: state_badge(run))
    tokens_count = column("Tokens", lambda run: f"{run.tokens:,}")
    documents = column(
        "Documents",
        lambda run: list_link("memories_artifact", f"book__id__exact={run.book_id}", "the documents of this book"),
    )
    change_set_link = column(
        "Change set",
        lambda run: row_link("memories_changeset", run.change_set, run.change_set) if run.change_set else "–",
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

    @admin.display(description="Filtered out")
    def taken_out(self, run: ConsolidationRun) -> str:
        return f"{run.redacted} secrets redacted, {run.dropped} lines or skills left out"


class NoteColumns:
    """Columns for a ModelAdmin of extractions."""

    said = moment_column("said_at", "Last active")
    extracted = moment_column("extracted_at", "Read")

    @admin.display(description="State")
    def state_badge(self, note: Extraction) -> SafeString:
        return badge("Cleared", "muted", "delete") if note.cleared_at else state_badge(note)

    session_title = column("Session", title_of)
    session_link = column("Session", lambda note: session_link(note))
    words = column("Synopsis", lambda note: format_html('<span class="db-words">{}</span>', note.synopsis or "–"))
    notes = column("Notes", lambda note: format_html('<span class="db-words">{}</span>', note.raw_memory or "–"))
    error = column("Error", lambda note: error_words(note.error) or "–")
