"""The notes extracted from past sessions, and leases such as those of consolidation: which worker has which book, and
until when. Read-only: the next worker takes an overdue lease by itself."""

from django.contrib import admin
from django.db.models import Q
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from gateway.admin.sessions import SessionIdFilter
from gateway.admin.visibility import SessionTitles, session_link, title_of
from memories.admin.badges import badge, moment, state_badge
from memories.admin.base import ReadOnlyAdmin
from memories.admin.columns import column, fieldset, list_link, moment_column
from memories.admin.filters import BOOK_FILTER, OWNER_FILTER, DayFilter, StateFilter, choice_filter, id_filter
from memories.ids import parse_uuid
from memories.models import Lease
from reviews.admin.consolidation_runs import error_words
from reviews.models import Extraction


class LeaseStateFilter(StateFilter):
    words = {"held": "Held", "overdue": "Overdue"}

    def conditions(self) -> dict[str, Q]:
        now = timezone.now()
        return {"held": Q(expires_at__gt=now), "overdue": Q(expires_at__lte=now)}


@admin.register(Lease)
class LeaseAdmin(ReadOnlyAdmin):
    """Claims that expire. Released leases are deleted."""

    list_display = ("what", "holder", "state_badge", "until", "runs")
    list_filter = (LeaseStateFilter,)
    search_fields = ("name", "holder")
    search_help_text = "The lease's name, or who holds it"
    fields = ("name", "what", "holder", ("state_badge", "until"), "runs")

    what = column("What", lambda lease: "Consolidation" if _runs_link(lease) else lease.name)
    runs = column("Of", lambda lease: _runs_link(lease))

    @admin.display(description="State")
    def state_badge(self, lease: Lease) -> SafeString:
        overdue = lease.expires_at <= timezone.now()
        return badge("Overdue", "danger", "schedule") if overdue else badge("Held", "ok", "check")

    until = column("Expires", lambda lease: f"{moment(lease.expires_at)}:{timezone.localtime(lease.expires_at):%S}")


def _runs_link(lease: Lease) -> SafeString | None:
    """Return a link to the runs of the book whose consolidation the lease is for; None for any other lease."""
    prefix, _, book = lease.name.rpartition(":")
    if prefix != "consolidation" or not parse_uuid(book):
        return None
    return list_link("reviews_consolidationrun", f"book__id__exact={book}", "the runs of its book")


@admin.register(Extraction)
class ExtractionAdmin(SessionTitles, ReadOnlyAdmin):
    """The notes extracted from past sessions. Read-only."""

    audits_access = True
    list_display = ("words", "session_title", "state_badge", "owner", "book", "said", "extracted")
    list_display_links = ("words", "session_title")
    list_select_related = ("owner__user", "book", "session")
    list_defer = ("raw_memory",)
    list_filter = (
        OWNER_FILTER,
        BOOK_FILTER,
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
            ("redacted", "problem"),
            ("messages_read", "messages_cleared"),
        ),
    )

    said = moment_column("said_at", "Last active")
    extracted = moment_column("extracted_at", "Read")

    state_badge = column(
        "State", lambda note: badge("Cleared", "muted", "delete") if note.cleared_at else state_badge(note)
    )
    session_title = column("Session", title_of)
    session_link = column("Session", lambda note: session_link(note))
    words = column("Synopsis", lambda note: format_html('<span class="db-words">{}</span>', note.synopsis or "–"))
    notes = column("Notes", lambda note: format_html('<span class="db-words">{}</span>', note.raw_memory or "–"))
    messages_read = column("Messages read", lambda note: _first_messages(note.through_seq) or "None yet")
    messages_cleared = column("Never read again", lambda note: _cleared_words(note.floor_seq))
    # Not `error`: the admin would show the column of that name.
    problem = column("Error", lambda note: error_words(note.error))


def _first_messages(last: int) -> str:
    """Return text such as `Messages 1 to 6 of the session`, or "" for 0."""
    if last == 0:
        return ""
    return f"Messages 1 to {last} of the session" if last > 1 else "Message 1 of the session"


def _cleared_words(last: int) -> str:
    """Return which messages are never read again, because they were cleared or forgotten."""
    if last == 0:
        return "None were cleared"
    return f"{_first_messages(last)} {'were' if last > 1 else 'was'} cleared"
