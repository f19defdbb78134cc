"""Sessions in the admin, with their transcripts and the state of their snapshots. Read-only.

The state is known from the last run's trace, the current book, and this process's cache: snapshots are cached per
process, so those of other processes are unknown."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, BooleanRadioFilter

from gateway.admin.transcript import transcript
from gateway.admin.turn_given import recall_trace
from gateway.agents.configuration import consolidation_settings_of
from gateway.agents.rows import agent_settings
from gateway.models import Run, Session
from memories.admin.badges import moment, state_badge
from memories.admin.base import ReadOnlyAdmin
from memories.admin.columns import column, list_link, moment_column, yes_no_column
from memories.admin.filters import OWNER_FILTER, DayFilter, choice_filter, id_filter
from memories.models import Book
from memories.number_words import counted, memories, times
from memories.pagination import parse_number
from memories.recall.snapshot import snapshots

SessionIdFilter = id_filter("session", "session_id")


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    """Conversations and the number of turns since their last review."""

    audits_access = True
    list_display = ("name", "owner", "agent", "state_badge", "turns", "turns_since_memory_review", "last_active")
    list_select_related = ("owner__user", "agent")
    list_filter = (
        OWNER_FILTER,
        ("agent", AutocompleteSelectFilter),
        choice_filter("state", Session.State),
        ("temporary", BooleanRadioFilter),
        ("last_active_at", DayFilter),
    )
    search_fields = ("title", "external_id")
    search_help_text = "Title, external id or id"
    searched_ids = ("pk",)
    change_form_template = "admin/gateway/session/change_form.html"
    fields = (
        ("owner", "agent"),
        ("state_badge", "is_temporary"),
        ("turns", "turns_since_memory_review"),
        ("reviewed_through", "message_seq"),
        ("created", "last_active"),
        "snapshot",
        ("id", "external_id"),
        "related",
    )
    is_temporary = yes_no_column("temporary", "Temporary")
    last_active = moment_column("last_active_at", "Last active")
    created = moment_column("created_at", "Started")
    state_badge = column("State", lambda session: state_badge(session))
    name = column("Session", lambda session: session.title or f"Untitled, {moment(session.created_at)}")

    @admin.display(description="See also")
    def related(self, session: Session) -> SafeString:
        lists = (
            ("gateway_run", f"session={session.pk}", "its runs"),
            ("reviews_reviewrun", f"session={session.pk}", "its reviews"),
            ("memories_changeset", f"q={session.pk}", "its changes to memory"),
        )
        return format_html_join(", ", "{}", ((list_link(*link),) for link in lists))

    @admin.display(description="Snapshot")
    def snapshot(self, session: Session) -> SafeString:
        lines = format_html_join("", "<li>{}</li>", ((line,) for line in snapshot_lines(session)))
        return format_html('<ul class="db-list">{}</ul>', lines)

    def page_context(self, request: HttpRequest, row: Session) -> dict[str, Any]:
        """Add a page of the transcript, starting at the message number `?from=`."""
        lines = transcript(row, first=parse_number(request.GET.get("from", "")) or 1)
        return {**super().page_context(request, row), "transcript": lines, "title": self.name(row)}


def snapshot_lines(session: Session) -> list[str]:
    """Return sentences for the session's page. Two queries: the last finished run, and the book."""
    if session.temporary:
        return ["None: a temporary session reads no memory."]
    if session.state == Session.State.ENDED:
        return ["None: the session has ended."]
    if not (agent_settings(session.agent).inject_memories or consolidation_settings_of(session.agent).enabled):
        return ["None: its agent is given no memory."]
    book = Book.objects.filter(owner_id=session.owner_id, name=session.agent.book).first()
    finished = Run.objects.filter(owner_id=session.owner_id, session=session).exclude(state=Run.State.RUNNING)
    run = finished.order_by("-pk").first()
    lines = [*_given(session, book, run)]
    if session.compaction_epoch:
        lines.append(f"Compacted {times(session.compaction_epoch)}.")
    if cached := snapshots.peek(session.pk):
        return [*lines, f"This process has one of generation {cached.view.state.generation} cached."]
    return [*lines, "This process has none cached; another one may."]


def _given(session: Session, book: Book | None, run: Run | None) -> Iterator[str]:
    now = f"Book {book.name} is at generation {book.generation}." if book else "Its book does not exist yet."
    if run is None:
        yield f"No turn has run yet; the first one builds it. {now}"
        return
    snapshot = recall_trace(run).get("snapshot", {})
    if "generation" not in snapshot:  # it failed
        yield f"Turn {run.turn} was given no snapshot, or recorded none. {now}"
        return
    yield f"Turn {run.turn} was given a snapshot of generation {snapshot['generation']}."
    reasons = [*_rebuild_reasons(session, book, snapshot)]
    yield " ".join(reasons) + " The next turn builds a new one." if reasons else f"It is current. {now}"
    lanes = [item.get("lane") for item in run.recalled if isinstance(item, dict)]
    long, short = lanes.count("long_term"), lanes.count("short_term")
    turns = f" and {counted(short, 'earlier turn')}" if short else ""
    yield f"In that run: {memories(snapshot['frozen'])} frozen, {long} recalled{turns}."


def _rebuild_reasons(session: Session, book: Book | None, snapshot: Mapping[str, int]) -> Iterator[str]:
    """Yield the reasons why the next turn cannot reuse the last run's snapshot."""
    if book is None:
        yield "Its book is gone."
    elif book.epoch != snapshot["epoch"]:
        yield f"Book {book.name} was cleared since; it is at generation {book.generation}."
    elif book.generation != snapshot["generation"]:
        yield f"Book {book.name} is at generation {book.generation}."
    elif book.next_expiry_at and book.next_expiry_at <= timezone.now():
        yield "A memory has expired since."
    if session.agent.version != snapshot["agent_version"]:
        yield "The settings were changed since."
    if session.compaction_epoch != snapshot["compaction_epoch"]:
        yield "The session was compacted since."
