"""Selecting the sessions to read and the books that are due. The rules are part of the queries, so that few rows are
fetched in vain."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from gateway.agents.model_choice import BackgroundModels
from gateway.agents.settings import ConsolidationSettings
from gateway.models import Message, Run, Session
from memories.clocks import long_ago, long_since
from memories.models import Artifact, Book
from memories.selectors import of_active_accounts
from memories.services import book_get_or_create
from reviews.frozen import reviewable
from reviews.models import ConsolidationRun, ConsolidationState, Extraction

CHANGED = Q(extraction__isnull=True) | Q(extraction__through_seq__lt=F("end_seq"))
"""Sessions with messages after their last extraction. Requires the annotation `end_seq` (see `end_seq()`)."""


def eligible(limits: ConsolidationSettings, *, force: bool = False) -> "QuerySet[Session]":
    """Return the readable sessions of all owners that changed since their last extraction, newest first. `force`
    includes those whose extraction failed."""
    rows = readable(limits).annotate(end_seq=end_seq())
    changed = CHANGED | Q(extraction__state=Extraction.State.FAILED) if force else CHANGED
    return rows.filter(changed, end_seq__isnull=False).order_by("-last_active_at", "-id")


def readable(limits: ConsolidationSettings) -> "QuerySet[Session]":
    """Return the sessions of all owners that may be read: idle for long enough, not too old, not in use, not temporary.
    A chosen session is checked again before it is read, since it may be in use again."""
    now = timezone.now()
    return Session.objects.filter(
        ~in_use(),
        temporary=False,
        last_active_at__gte=now - timedelta(days=limits.max_rollout_age_days),
    ).filter(rested(limits, now))


def rested(limits: ConsolidationSettings, now: datetime) -> Q:
    """Return the condition for sessions that have been idle for long enough."""
    return long_ago("last_active_at", now, age=timedelta(hours=limits.min_rollout_idle_hours))


def sessions_in(book: Book) -> "QuerySet[Session]":
    """Return the sessions whose agent uses the book, without temporary ones."""
    return Session.objects.filter(owner_id=book.owner_id, agent__book=book.name, temporary=False)


def sessions_of(
    book: Book, limits: ConsolidationSettings, *, force: bool = False, max_sessions: int | None = None
) -> list[Session]:
    """Return the sessions that one run reads: at most `max_sessions` and `max_rollouts_per_startup` of the newest
    `scan_limit`."""
    if max_sessions is None:
        max_sessions = limits.max_rollouts_per_startup
    rows = eligible(limits, force=force).filter(owner_id=book.owner_id, agent__book=book.name)
    rows = rows.annotate(has_new=has_user_message()).select_related("agent", "extraction")
    found: list[Session] = [session for session in rows[: limits.scan_limit] if session.has_new]
    return found[: min(max_sessions, limits.max_rollouts_per_startup)]


def notes_in(book: Book) -> "QuerySet[Extraction]":
    """Return the notes on the book's sessions that are neither empty nor cleared."""
    rows = Extraction.objects.filter(owner_id=book.owner_id, book=book, cleared_at=None)
    return rows.exclude(raw_memory="", synopsis="")


def due_books(limits: ConsolidationSettings, *, max_books: int) -> list[Book]:
    """Return up to `max_books` books that have sessions to read or documents to write, are past the cool-down, have no
    open run, belong to an active account, and may be given to an upstream. Books with sessions come first, ordered by
    the time of their last run, so that none waits forever."""
    models = BackgroundModels.now()
    open_runs = ConsolidationRun.objects.filter(
        owner_id=OuterRef("owner_id"), book__name=OuterRef("agent__book"), state__in=ConsolidationRun.OPEN
    )
    sessions = eligible(limits).filter(of_active_accounts(), has_user_message(), ~Exists(open_runs))
    sessions = models.readable(sessions, "agent__book")
    latest = ConsolidationRun.objects.filter(owner_id=OuterRef("owner_id"), book__name=OuterRef("agent__book"))
    sessions = sessions.annotate(last_run=Subquery(latest.order_by("-id").values("created_at")[:1]))
    waiting = sessions.order_by(F("last_run").asc(nulls_first=True), "owner_id", "agent__book")
    names = waiting.values_list("owner_id", "agent__book", "last_run").distinct()[:max_books]
    found = {book.pk: book for book in (book_get_or_create(owner_id, name) for owner_id, name, _ in names)}
    for state in _synthesis_due(models, limits, max_books):
        found.setdefault(state.book_id, state.book)
    return list(found.values())[:max_books]


def waiting_sessions(books: Sequence[Book], limits: ConsolidationSettings) -> dict[tuple[UUID, str], int]:
    """Return the number of sessions to read by owner and name of the book, for the owners of these books. One query."""
    rows = eligible(limits).filter(has_user_message(), owner_id__in={book.owner_id for book in books})
    counts = rows.order_by().values_list("owner_id", "agent__book").annotate(Count("pk"))
    return {(owner_id, name): number for owner_id, name, number in counts}


def needs_synthesis(state: ConsolidationState | None, versions: dict[str, int]) -> bool:
    """Return True if an extraction or a document changed since the last synthesis."""
    if state is None:
        return False
    return state.changes > state.synthesized or versions != state.artifact_versions


def cooldown_over(state: ConsolidationState | None, limits: ConsolidationSettings) -> bool:
    """Return True if the last synthesis was long enough ago."""
    if state is None or state.last_synthesis_at is None:
        return True
    cooldown = timedelta(hours=limits.synthesis_cooldown_hours)
    return long_since(state.last_synthesis_at, timezone.now(), age=cooldown)


def end_seq() -> Subquery:
    """Return a subquery for the number of a session's last readable message; null if there is none."""
    return Subquery(reviewable(OuterRef("owner_id"), OuterRef("pk")).order_by("-seq").values("seq")[:1])


def in_use() -> Exists:
    """Return the condition that a turn of the session is open."""
    open_states = (Run.State.RUNNING, Run.State.AWAITING_CLIENT_TOOLS)
    return Exists(Run.objects.filter(session=OuterRef("pk"), state__in=open_states))


def has_user_message() -> Exists:
    """Return the condition that the session has a user message which was not cleared."""
    floor = Coalesce(OuterRef("extraction__floor_seq"), 0)
    messages = reviewable(OuterRef("owner_id"), OuterRef("pk"))
    return Exists(messages.filter(role=Message.Role.USER, seq__gt=floor))


def _synthesis_due(
    models: BackgroundModels, limits: ConsolidationSettings, max_books: int
) -> Iterable[ConsolidationState]:
    cooldown = timedelta(hours=limits.synthesis_cooldown_hours)
    cooled = Q(last_synthesis_at__isnull=True) | long_ago("last_synthesis_at", timezone.now(), age=cooldown)
    open_runs = ConsolidationRun.objects.filter(book_id=OuterRef("book_id"), state__in=ConsolidationRun.OPEN)
    cooled_states = ConsolidationState.objects.filter(of_active_accounts(), cooled, ~Exists(open_runs))
    states = list(models.readable(cooled_states.select_related("book"), "book__name"))
    rows = Artifact.objects.filter(book__in=[state.book_id for state in states], deleted_at__isnull=True)
    versions: dict[UUID, dict[str, int]] = {state.book_id: {} for state in states}
    for book_id, path, version in rows.values_list("book_id", "path", "version"):
        versions[book_id][path] = version
    return [state for state in states if needs_synthesis(state, versions[state.book_id])][:max_books]
