"""Phase 1 of consolidation: choose the run's sessions once, then read them, several concurrently. Each session is
committed separately, after checking lease, run and epoch, so a crash loses only the sessions being read."""

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
from gateway.jobs import LONGEST_PAUSE
from gateway.models import Session
from gateway.steps import ModelStepResult
from gateway.upstream import ModelTarget
from memories.artifacts.cleaning import CleanedOutput, OutputRejected, clean_output
from memories.database.access import in_thread
from memories.errors import DomainError, RateLimited
from memories.evidence import HeldWrites, Hold
from prompts.consolidation import extraction_messages
from reviews.consolidation.answers import ExtractionAnswer, parse_extraction
from reviews.consolidation.conversation import SessionRecord, read_record
from reviews.consolidation.held import held_keep, without_foreign_lines
from reviews.consolidation.model_call import ask, is_down, is_permanent, parsed
from reviews.consolidation.quotas import Usage
from reviews.consolidation.read_marks import marks_after_reading
from reviews.consolidation.runs import ConsolidationClaim, lock_claimed
from reviews.consolidation.selection import readable, sessions_of
from reviews.errors import AnswerUnusable, QuotaExceeded, RetryLater
from reviews.models import ConsolidationRun, ConsolidationState, Extraction

State = Extraction.State
_RETRY_FACTOR = 4


@dataclass(slots=True)
class ExtractionResult:
    """Why extraction stopped: `quota` is used up, or it is to resume at `resume_at` because the slice is over (now) or
    after `error`. Neither is set when all sessions are done."""

    resume_at: datetime | None = None
    error: DomainError | None = None
    quota: str = ""
    _queue: deque[UUID] = field(default_factory=deque)

    @property
    def stopped(self) -> bool:
        return self.resume_at is not None or bool(self.quota)


@transaction.atomic
def choose_sessions(claim: ConsolidationClaim) -> int:
    """Choose and queue the sessions of a run, unless this was done before. Returns the run's number of sessions."""
    run = lock_claimed(claim)
    if run.selected:
        return run.sessions_total
    chosen = sessions_of(claim.run.book, claim.limits, force=run.force, max_sessions=run.max_sessions)
    for session in chosen:
        values = {
            "run": run,
            "book": claim.run.book,
            "state": State.QUEUED,
            "attempts": 0,
            "not_before": timezone.now(),
            "said_at": session.last_active_at,
        }
        Extraction.objects.update_or_create(session=session, defaults={"owner_id": run.owner_id, **values})
    # A run that a request has joined chooses again; the sessions it has read still count.
    total = run.sessions_done + len(chosen)
    ConsolidationRun.objects.filter(pk=run.pk).update(selected=True, sessions_total=total)
    return total


async def extract(claim: ConsolidationClaim, *, until: float) -> ExtractionResult:
    """Read the run's sessions until all are done, a quota or a pause stops it, or the loop's clock passes `until`.

    Raises LeaseLost, RunCancelled, UpstreamUndecided, and permanent errors of an upstream."""
    await in_thread(choose_sessions, claim)
    result = ExtractionResult()
    while not result.stopped:
        due, waiting = await in_thread(_queued, claim.run.pk)
        if not due:
            if waiting is not None:
                result.resume_at = waiting.not_before
                result.error = RetryLater(str((waiting.error or {}).get("message", "A session could not be read.")))
            return result
        result._queue.extend(due)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(claim.limits.concurrency, len(due))):
                group.create_task(_reader(claim, result, until))
    return result


async def _reader(claim: ConsolidationClaim, result: ExtractionResult, until: float) -> None:
    while result._queue and not result.stopped:
        if asyncio.get_running_loop().time() >= until:
            result.resume_at = timezone.now()
            return
        await _read_session(claim, result, result._queue.popleft())


async def _read_session(claim: ConsolidationClaim, result: ExtractionResult, extraction_id: UUID) -> None:
    prepared = await in_thread(_prepare, claim, extraction_id)
    if prepared is None:
        return
    extraction, record, target = prepared
    # Leave enough of the run's quota for the synthesis.
    keep_free = Usage(requests=1, tokens=min(claim.limits.synthesis_token_limit, claim.limits.max_tokens_per_run // 4))
    messages = extraction_messages(thread_id=str(extraction.session_id), items=record.items)
    try:
        answer = await ask(claim, messages, target=target, keep_free=keep_free)
        notes = parsed(answer, parse_extraction)
        cleaned, held = await asyncio.to_thread(_clean, notes, claim.limits.max_secrets, extraction, record)
    except QuotaExceeded as reached:
        result.quota = reached.scope
    except RateLimited as error:
        result.resume_at, result.error = claim.after_rest(error), error
    except DomainError as error:
        if is_permanent(error):
            raise
        await in_thread(_store_failure, claim, extraction, record, error)
    else:
        await in_thread(_store, claim, extraction, record, answer, cleaned, held)


def _queued(run_id: UUID) -> tuple[list[UUID], Extraction | None]:
    """Return the extractions that are due, newest session first, or, if none is, the next one to retry."""
    rows = Extraction.objects.filter(run_id=run_id, state=State.QUEUED)
    now = timezone.now()
    due = list(rows.filter(not_before__lte=now).order_by("-said_at", "-session_id").values_list("pk", flat=True))
    return due, None if due else rows.order_by("not_before").first()


def _prepare(claim: ConsolidationClaim, extraction_id: UUID) -> tuple[Extraction, SessionRecord, ModelTarget] | None:
    """Return the extraction, its session's conversation and the model that reads it. Returns None if the session was
    deleted, is in use again, or has nothing to read. Raises UpstreamUndecided."""
    rows = Extraction.objects.filter(pk=extraction_id, run=claim.run, state=State.QUEUED)
    extraction = rows.select_related("session__agent").first()
    if extraction is None:
        return None
    if not readable(claim.limits).filter(pk=extraction.session_id).exists():
        _pass_over(claim, extraction)
        return None
    limit = claim.limits.extraction_token_limit
    record = read_record(extraction.owner_id, extraction.session_id, floor=extraction.floor_seq, token_limit=limit)
    if not record.items:
        _pass_over(claim, extraction, through_seq=record.through_seq)
        return None
    book = claim.run.book.name
    target = BackgroundModels.now(book).of_session(book, agent_settings(extraction.session.agent), "default")
    return extraction, record, target


def _clean(
    notes: ExtractionAnswer, max_secrets: int, extraction: Extraction, record: SessionRecord
) -> tuple[tuple[CleanedOutput, CleanedOutput], HeldWrites]:
    """Return both texts, cleaned for storage, and their lines that must wait for approval. Raises AnswerUnusable."""
    try:
        raw = clean_output(notes.raw_memory, max_secrets=max_secrets)
        synopsis = clean_output(notes.synopsis, max_secrets=max_secrets)
    except OutputRejected as rejected:
        raise AnswerUnusable(f"The model's answer was rejected. {rejected}") from None
    agent = extraction.session.agent
    held = HeldWrites(session_id=extraction.session_id, agent=agent.name)
    hold = Hold(agent_settings(agent).memory_hold)
    return (
        without_foreign_lines(raw, record.conversation, hold, held),
        without_foreign_lines(synopsis, record.conversation, hold, None),
    ), held


@transaction.atomic
def _store(
    claim: ConsolidationClaim,
    extraction: Extraction,
    record: SessionRecord,
    answer: ModelStepResult,
    cleaned: tuple[CleanedOutput, CleanedOutput],
    held: HeldWrites,
) -> None:
    """Store a session's notes and propose its held lines, unless the session was deleted meanwhile."""
    Session.objects.select_for_update(no_key=True).filter(pk=extraction.session_id).first()  # before the book
    lock_claimed(claim)
    raw, synopsis = cleaned
    empty = not (raw.text or synopsis.text)
    queued = Extraction.objects.filter(pk=extraction.pk, run=claim.run, state=State.QUEUED)
    row = queued.first()
    if row is None:
        return
    queued.update(
        state=State.EMPTY if empty else State.EXTRACTED,
        raw_memory=raw.text,
        synopsis=synopsis.text,
        through_seq=record.through_seq,
        attempts=F("attempts") + 1,
        model=answer.model,
        usage=answer.usage,
        redacted=raw.redacted + synopsis.redacted,
        error=None,
        extracted_at=timezone.now(),
        **marks_after_reading(row),
    )
    if not empty or extraction.raw_memory or extraction.synopsis:
        record_change(claim.run.owner_id, claim.run.book_id)
    claim.row.update(
        sessions_done=F("sessions_done") + 1,
        sessions_empty=F("sessions_empty") + int(empty),
        redacted=F("redacted") + raw.redacted + synopsis.redacted,
        dropped=F("dropped") + raw.dropped + synopsis.dropped,
        attempts=0,
    )
    held_keep(claim.run.book, held)


@transaction.atomic
def _store_failure(
    claim: ConsolidationClaim, extraction: Extraction, record: SessionRecord, error: DomainError
) -> None:
    """Record a failed attempt. After the last one the session is not read again until it changes or, if the failure was
    a server that was down, until the next run."""
    lock_claimed(claim)
    attempts = extraction.attempts + 1
    given_up = attempts > claim.limits.max_retries
    rows = Extraction.objects.filter(pk=extraction.pk, run=claim.run, state=State.QUEUED)
    changed = rows.update(
        state=State.FAILED if given_up else State.QUEUED,
        through_seq=record.through_seq if given_up and not is_down(error) else extraction.through_seq,
        attempts=attempts,
        not_before=timezone.now() + retry_pause(attempts, claim.limits.retry_seconds),
        error={"code": error.code, "message": str(error)},
    )
    if changed and given_up:
        claim.row.update(sessions_done=F("sessions_done") + 1, sessions_failed=F("sessions_failed") + 1)


@transaction.atomic
def _pass_over(claim: ConsolidationClaim, extraction: Extraction, *, through_seq: int = 0) -> None:
    lock_claimed(claim)
    rows = Extraction.objects.filter(pk=extraction.pk, run=claim.run, state=State.QUEUED)
    if rows.update(state=State.PASSED, through_seq=max(extraction.through_seq, through_seq)):
        claim.row.update(sessions_total=F("sessions_total") - 1)


def record_change(owner_id: UUID, book_id: UUID, *, forgotten: bool = False) -> None:
    """Record that a book's extractions changed, so that its documents are rewritten; in the caller's transaction.
    `forgotten`: texts were erased, so the documents are rewritten from the remaining notes alone."""
    ConsolidationState.objects.get_or_create(book_id=book_id, defaults={"owner_id": owner_id})
    row = ConsolidationState.objects.filter(book_id=book_id)
    row.update(changes=F("changes") + 1)
    if forgotten:
        row.update(from_notes=True)


def retry_pause(attempts: int, seconds: float) -> timedelta:
    """Return the pause after a failed attempt, each four times as long as the previous one, at most LONGEST_PAUSE."""
    return timedelta(seconds=min(seconds * _RETRY_FACTOR ** (attempts - 1), LONGEST_PAUSE.total_seconds()))
