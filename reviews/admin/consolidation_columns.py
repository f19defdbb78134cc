"""What lists and pages of consolidations, notes and artifacts say, each value in words."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from gateway.admin.session_titles import title_of
from gateway.agents.configuration import consolidation_settings
from memories.admin.badges import badge, moment, state_badge
from memories.admin.filters import choice_filter
from reviews.consolidation.health import finished_text, progress_words
from reviews.consolidation.quotas import day_spent
from reviews.models import ConsolidationRun, Extraction

State = ConsolidationRun.State


RunStateFilter = choice_filter("state", State)
PhaseFilter = choice_filter("phase", ConsolidationRun.Phase)
TriggerFilter = choice_filter("trigger", ConsolidationRun.Trigger)
NoteStateFilter = choice_filter("state", Extraction.State)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """How much of a quota was used."""

    name: str
    used: int
    most: int

    @property
    def words(self) -> str:
        return f"{self.used:,} of at most {self.most:,}"


def quotas_of(run: ConsolidationRun) -> list[QuotaUse]:
    """Return the quotas of the run and of its owner's day, with what was used."""
    limits, today = consolidation_settings(), day_spent(run.owner_id)
    return [
        QuotaUse(name="Tokens of this run", used=run.tokens, most=limits.max_tokens_per_run),
        QuotaUse(name="Requests of this run", used=run.requests, most=limits.max_requests_per_run),
        QuotaUse(name="Tokens of the owner today", used=today.tokens, most=limits.max_tokens_per_day),
        QuotaUse(name="Requests of the owner today", used=today.requests, most=limits.max_requests_per_day),
    ]


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


def session_link(session_id: UUID | None, title: str) -> SafeString | str:
    """Return the session's page by its title."""
    if session_id is None:
        return "Deleted"
    return format_html(
        '<a class="db-link" href="{}">{}</a>',
        reverse("admin:gateway_session_change", args=[session_id]),
        title or "Untitled",
    )


class RunColumns:
    """Columns by name, for a ModelAdmin of consolidation runs."""

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

    @admin.display(description="Asked for")
    def created(self, run: ConsolidationRun) -> str:
        return moment(run.created_at)

    @admin.display(description="Started")
    def started(self, run: ConsolidationRun) -> str:
        return moment(run.started_at)

    @admin.display(description="Finished")
    def finished(self, run: ConsolidationRun) -> str:
        return moment(run.finished_at)

    @admin.display(description="Sessions")
    def sessions(self, run: ConsolidationRun) -> str:
        return (
            f"{run.sessions_done} of {run.sessions_total} read, {run.sessions_empty} with nothing durable, "
            f"{run.sessions_failed} failed"
        )

    @admin.display(description="Taken out")
    def taken_out(self, run: ConsolidationRun) -> str:
        return f"{run.redacted} secrets redacted, {run.dropped} lines or skills left out"

    @admin.display(description="Written")
    def written_paths(self, run: ConsolidationRun) -> SafeString | str:
        return _paths(run.written)

    @admin.display(description="Removed")
    def removed_paths(self, run: ConsolidationRun) -> SafeString | str:
        return _paths(run.removed)

    @admin.display(description="Kept for a person's edits")
    def kept_paths(self, run: ConsolidationRun) -> SafeString | str:
        return _paths(run.kept)

    @admin.display(description="Documents")
    def documents(self, run: ConsolidationRun) -> SafeString:
        link = f"{reverse('admin:memories_artifact_changelist')}?book__id__exact={run.book_id}"
        return format_html('<a class="db-link" href="{}">the documents of this book</a>', link)

    @admin.display(description="Change set")
    def change_set_link(self, run: ConsolidationRun) -> SafeString | str:
        if run.change_set is None:
            return "–"
        link = reverse("admin:memories_changeset_change", args=[run.change_set])
        return format_html('<a class="db-link" href="{}">{}</a>', link, run.change_set)


class NoteColumns:
    """Columns by name, for a ModelAdmin of extractions."""

    @admin.display(description="State")
    def state_badge(self, note: Extraction) -> SafeString:
        if note.cleared_at:
            return badge("Cleared", "muted", "delete")
        return state_badge(note)

    @admin.display(description="Session")
    def session_title(self, note: Extraction) -> str:
        return title_of(note)

    @admin.display(description="Session")
    def session_link(self, note: Extraction) -> SafeString | str:
        return session_link(note.session_id, title_of(note))

    @admin.display(description="Synopsis")
    def words(self, note: Extraction) -> SafeString:
        return format_html('<span class="db-words">{}</span>', note.synopsis or "–")

    @admin.display(description="Notes")
    def notes(self, note: Extraction) -> SafeString:
        return format_html('<span class="db-words">{}</span>', note.raw_memory or "–")

    @admin.display(description="Last said")
    def said(self, note: Extraction) -> str:
        return moment(note.said_at)

    @admin.display(description="Read")
    def extracted(self, note: Extraction) -> str:
        return moment(note.extracted_at)

    @admin.display(description="Error")
    def error(self, note: Extraction) -> str:
        return error_words(note.error) or "–"


def _paths(paths: list[str]) -> SafeString | str:
    return format_html_join(", ", "<code>{}</code>", ((path,) for path in paths)) or "–"
