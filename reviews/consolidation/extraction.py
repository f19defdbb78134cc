"""Phase 1: the sessions of a run are chosen once, then read one by one, several at a time. Each is a unit that is
committed alone, with its own look at lease, run and epoch: a crash loses at most those that were being read."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from gateway.agents.model_choice import BackgroundModels
from gateway.agents.rows import agent_settings
from gateway.upstream import ModelTarget
from memories.artifacts.cleaning import Cleaned, OutputRejected, clean_output
from memories.database.access import in_thread
from memories.errors import DomainError, RateLimited
from memories.evidence import HeldWrites, Hold
from prompts.consolidation import extraction_messages
from reviews.consolidation.answers import ExtractionAnswer, parse_extraction
from reviews.consolidation.conversation import SessionRecord, read_record
from reviews.consolidation.errors import AnswerUnusable, QuotaExceeded, TriedAgain
from reviews.consolidation.held import held_keep, without_foreign_lines
from reviews.consolidation.model_call import Answer, ask, is_down, is_lasting
from reviews.consolidation.quotas import Meter, Spent
from reviews.consolidation.runs import ConsolidationClaim, hold
from reviews.consolidation.selection import rested, sessions_of
from reviews.models import ConsolidationRun, ConsolidationState, Extraction

Unit = Extraction.State
_RETRY_FACTOR = 4


@dataclass(slots=True)
class Extracted:
    """Why the reading of sessions ended: all done, the slice's time, a pause, or a quota."""

    resume_at: datetime | None = None
    error: DomainError | None = None
    quota: str = ""
    _left: deque[UUID] = field(default_factory=deque)

    @property
    def stops(self) -> bool:
        return self.resume_at is not None or bool(self.quota)


@transaction.atomic
def choose_sessions(claim: ConsolidationClaim) -> int:
    """Choose what this run reads, once, and queue it. Returns how many."""
    run = hold(claim)
    if run.selected:
        return run.sessions_total
    chosen = sessions_of(claim.run.book, claim.limits, timezone.now(), force=run.force, most=run.max_sessions)
    for session in chosen:
        values = {
            "run": run,
            "book": claim.run.book,
            "state": Unit.QUEUED,
            "attempts": 0,
            "not_before": timezone.now(),
            "said_at": session.last_active_at,
        }
        Extraction.objects.update_or_create(session=session, defaults={"owner_id": run.owner_id, **values})
    # A run that somebody joined chooses once more; what it read by then stays counted.
    total = run.sessions_done + len(chosen)
    ConsolidationRun.objects.filter(pk=run.pk).update(selected=True, sessions_total=total)
    return total


async def extract(claim: ConsolidationClaim, meter: Meter, *, until: float) -> Extracted:
    """Read the run's sessions until none is left, something stops it, or the loop's clock passes `until`.

    Raises LeaseLost, RunCancelled, UpstreamUndecided, and a refusal of an upstream that would be the same for every
    session."""
    await in_thread(choose_sessions, claim)
    outcome = Extracted()
    while not outcome.stops:
        due, waiting = await in_thread(_queued, claim.run.pk)
        if not due:
            if waiting is not None:
                outcome.resume_at = waiting.not_before
                outcome.error = TriedAgain(str((waiting.error or {}).get("message", "A session could not be read.")))
            return outcome
        outcome._left.extend(due)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(claim.limits.concurrency, len(due))):
                group.create_task(_reader(claim, meter, outcome, until))
    return outcome


async def _reader(claim: ConsolidationClaim, meter: Meter, outcome: Extracted, until: float) -> None:
    while outcome._left and not outcome.stops:
        if asyncio.get_running_loop().time() >= until:
            outcome.resume_at = timezone.now()
            return
        await _read_one(claim, meter, outcome, outcome._left.popleft())


async def _read_one(claim: ConsolidationClaim, meter: Meter, outcome: Extracted, unit_id: UUID) -> None:
    unit = await in_thread(_prepare, claim, unit_id)
    if unit is None:
        return
    extraction, record, target = unit
    # What the synthesis will need of the run is left for it.
    leave = Spent(requests=1, tokens=min(claim.limits.synthesis_token_limit, claim.limits.max_tokens_per_run // 4))
    messages = extraction_messages(thread_id=str(extraction.session_id), items=record.items)
    try:
        answer = await ask(claim, meter, messages, target=target, leave=leave)
        found = parse_extraction(answer.text)
        cleaned, held = await asyncio.to_thread(_clean, found, claim.limits.max_secrets, extraction, record)
    except QuotaExceeded as reached:
        outcome.quota = reached.scope
    except RateLimited as error:
        outcome.resume_at, outcome.error = claim.after_rest(error), error
    except DomainError as error:
        if is_lasting(error):
            raise
        await in_thread(_store_failure, claim, extraction, record, error)
    else:
        if await in_thread(_store, claim, extraction, record, answer, cleaned) and held.proposals:
            await in_thread(held_keep, claim.run.book, held)


def _queued(run_id: UUID) -> tuple[list[UUID], Extraction | None]:
    """Return the units that may be read now, newest session first; if there are none, the one that may be tried
    next."""
    rows = Extraction.objects.filter(run_id=run_id, state=Unit.QUEUED)
    now = timezone.now()
    due = list(rows.filter(not_before__lte=now).order_by("-said_at", "-session_id").values_list("pk", flat=True))
    return due, None if due else rows.order_by("not_before").first()


def _prepare(claim: ConsolidationClaim, unit_id: UUID) -> tuple[Extraction, SessionRecord, ModelTarget] | None:
    """Return the unit, its conversation and the model that reads it, or None where there is nothing to ask: the session
    was deleted, somebody goes on with it, or nothing is left to read. Raises UpstreamUndecided."""
    units = Extraction.objects.filter(pk=unit_id, run=claim.run, state=Unit.QUEUED)
    unit = units.select_related("session__agent").first()
    if unit is None:
        return None
    if not rested(claim.limits, timezone.now()).filter(pk=unit.session_id).exists():
        _let_go(claim, unit)
        return None
    record = read_record(
        unit.owner_id, unit.session_id, floor=unit.floor_seq, token_limit=claim.limits.extraction_token_limit
    )
    if not record.items:
        _let_go(claim, unit, through_seq=record.through_seq)
        return None
    book = claim.run.book.name
    target = BackgroundModels.now(book).of_session(book, agent_settings(unit.session.agent), "default")
    return unit, record, target


def _clean(
    found: ExtractionAnswer, most_secrets: int, unit: Extraction, record: SessionRecord
) -> tuple[tuple[Cleaned, Cleaned], HeldWrites]:
    """Return both texts, fit to be stored, and the lines of them that wait for a person. Raises AnswerUnusable."""
    try:
        raw = clean_output(found.raw_memory, most_secrets=most_secrets)
        synopsis = clean_output(found.synopsis, most_secrets=most_secrets)
    except OutputRejected as rejected:
        raise AnswerUnusable(f"What the model wrote was rejected. {rejected}") from None
    agent = unit.session.agent
    held = HeldWrites(session_id=unit.session_id, agent=agent.name)
    hold = Hold(agent_settings(agent).memory_hold)
    return (
        without_foreign_lines(raw, record.conversation, hold, held),
        without_foreign_lines(synopsis, record.conversation, hold, None),
    ), held


@transaction.atomic
def _store(
    claim: ConsolidationClaim, unit: Extraction, record: SessionRecord, answer: Answer, cleaned: tuple[Cleaned, Cleaned]
) -> bool:
    """Store what a session gave. False if it was deleted meanwhile."""
    hold(claim)
    raw, synopsis = cleaned
    empty = not (raw.text or synopsis.text)
    now = timezone.now()
    stored = Extraction.objects.filter(pk=unit.pk, run=claim.run, state=Unit.QUEUED).update(
        state=Unit.EMPTY if empty else Unit.EXTRACTED,
        raw_memory=raw.text,
        synopsis=synopsis.text,
        through_seq=record.through_seq,
        attempts=F("attempts") + 1,
        model=answer.model,
        usage=answer.usage,
        redacted=raw.redacted + synopsis.redacted,
        error=None,
        before_clear=None,
        cleared_at=None,
        cleared_by=None,
        extracted_at=now,
    )
    if not stored:
        return False
    if not empty or unit.raw_memory or unit.synopsis:
        note_change(claim.run.owner_id, claim.run.book_id)
    ConsolidationRun.objects.filter(pk=claim.run.pk).update(
        sessions_done=F("sessions_done") + 1,
        sessions_empty=F("sessions_empty") + int(empty),
        redacted=F("redacted") + raw.redacted + synopsis.redacted,
        dropped=F("dropped") + raw.dropped + synopsis.dropped,
        attempts=0,
    )
    return True


@transaction.atomic
def _store_failure(claim: ConsolidationClaim, unit: Extraction, record: SessionRecord, error: DomainError) -> None:
    """Note a failed try; after the last one the session is left alone until it changes, or until the next run if the
    server was down, which says nothing about the session."""
    hold(claim)
    attempts = unit.attempts + 1
    given_up = attempts > claim.limits.max_retries
    rows = Extraction.objects.filter(pk=unit.pk, run=claim.run, state=Unit.QUEUED)
    changed = rows.update(
        state=Unit.FAILED if given_up else Unit.QUEUED,
        through_seq=record.through_seq if given_up and not is_down(error) else unit.through_seq,
        attempts=attempts,
        not_before=timezone.now() + retry_pause(attempts, claim.limits.retry_seconds),
        error={"code": error.code, "message": str(error)},
    )
    if changed and given_up:
        runs = ConsolidationRun.objects.filter(pk=claim.run.pk)
        runs.update(sessions_done=F("sessions_done") + 1, sessions_failed=F("sessions_failed") + 1)


@transaction.atomic
def _let_go(claim: ConsolidationClaim, unit: Extraction, *, through_seq: int | None = None) -> None:
    hold(claim)
    rows = Extraction.objects.filter(pk=unit.pk, run=claim.run, state=Unit.QUEUED)
    through = max(unit.through_seq, through_seq or 0)
    if rows.update(state=Unit.PASSED, through_seq=through):
        ConsolidationRun.objects.filter(pk=claim.run.pk).update(sessions_total=F("sessions_total") - 1)


def note_change(owner_id: UUID, book_id: UUID, *, forgotten: bool = False) -> None:
    """Note that a book's extractions changed, so that its documents are written again; in the caller's transaction.
    `forgotten`: words were erased, so the documents are made from the remaining notes alone."""
    ConsolidationState.objects.get_or_create(book_id=book_id, defaults={"owner_id": owner_id})
    row = ConsolidationState.objects.filter(book_id=book_id)
    row.update(changes=F("changes") + 1)
    if forgotten:
        row.update(from_notes=True)


def retry_pause(attempts: int, seconds: float) -> timedelta:
    """Return the pause after a failed try: each one four times as long as the one before."""
    return timedelta(seconds=seconds * _RETRY_FACTOR ** (attempts - 1))
