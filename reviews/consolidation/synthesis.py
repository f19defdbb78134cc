"""Phase 2 of consolidation: rewrite the documents from all notes and the current documents, in one answer and one
transaction. If a source changed during the model call, nothing is written and the synthesis is repeated, so that a
person's edit wins."""

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

import scanning
from gateway.agents.model_choice import BackgroundModels
from memories.artifacts.cleaning import OutputRejected, clean_output
from memories.artifacts.paths import MEMORY_PATH, SUMMARY_PATH
from memories.artifacts.store import (
    ReplaceResult,
    artifact_usage,
    artifacts_remove,
    artifacts_replace,
    live_artifacts,
    text_of_people,
    versions_of,
)
from memories.database.access import in_thread
from memories.errors import DomainError, RateLimited
from memories.models import Artifact, ChangeSet, WriteOrigin
from memories.services import Source, book_writing
from memories.tokens import text_tokens
from memories.viewers import zone_of
from prompts.consolidation import CurrentDocument, SessionNotes, synthesis_messages
from reviews.consolidation.answers import SynthesisAnswer, parse_synthesis
from reviews.consolidation.extraction import retry_pause
from reviews.consolidation.model_call import ask, is_permanent, parsed
from reviews.consolidation.runs import ConsolidationClaim, fail, finish, lock_claimed, pause
from reviews.consolidation.selection import cooldown_over, needs_synthesis, notes_in
from reviews.errors import AnswerUnusable, SourcesChanged
from reviews.models import ConsolidationRun, ConsolidationState
from search.tokens import tokens_of

ACTOR = "consolidation"
_WORD = re.compile(r"\w+")
_MANY_WORDS = 40  # different words of the current documents; shorter ones may be replaced entirely
_LEAST_KEPT = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What a synthesis read. `changes` and `versions` tell later whether a source changed."""

    changes: int
    versions: dict[str, int]
    documents: tuple[CurrentDocument, ...]
    notes: tuple[SessionNotes, ...]

    @property
    def messages(self) -> tuple[dict[str, Any], ...]:
        return synthesis_messages(documents=self.documents, notes=self.notes)


async def synthesize(claim: ConsolidationClaim) -> None:
    """Rewrite the documents if that is due, and end the run. After an error the run is paused or, if its attempts are
    used up, ended.

    Raises LeaseLost, RunCancelled, QuotaExceeded, RateLimited."""
    sources = await in_thread(read_sources, claim)
    if sources is None:
        await in_thread(_finish_unchanged, claim)
        return
    try:
        output = await _write(claim, sources)
        await in_thread(_apply, claim, sources, output)
    except RateLimited:
        raise
    except DomainError as error:
        await in_thread(fail if is_permanent(error) else _retry, claim, error)


def read_sources(claim: ConsolidationClaim) -> Sources | None:
    """Return the sources, or None if nothing changed, the cool-down is not over, or there is nothing to read."""
    run = ConsolidationRun.objects.select_related("book").get(pk=claim.run.pk)
    book = run.book
    # The state first, so that changes after this point are detected when the answer is stored.
    state = ConsolidationState.objects.filter(book=book).first()
    artifacts = list(live_artifacts(book.owner_id, book.pk))
    versions = versions_of(artifacts)
    if not run.force:
        cooled = run.rebuild or cooldown_over(state, claim.limits)
        if not cooled or not needs_synthesis(state, versions):
            return None
    notes = notes_of(claim)
    from_notes = bool(state and state.from_notes)
    documents = tuple(_documents(artifacts, only_people=from_notes))
    if not notes and not (from_notes and artifacts):
        return None
    return Sources(
        changes=state.changes if state else 0,
        versions=versions,
        documents=tuple(document for document in documents if document.content),
        notes=notes,
    )


def notes_of(claim: ConsolidationClaim) -> tuple[SessionNotes, ...]:
    """Return the book's notes without secrets, newest session first, within the limits of number and tokens. Their
    dates are those of the person's time zone."""
    zone = zone_of(claim.run.owner)
    rows = notes_in(claim.run.book).order_by("-said_at", "-session_id")
    tokens_left = claim.limits.synthesis_token_limit
    notes: list[SessionNotes] = []
    for row in rows[: claim.limits.max_extractions]:
        tokens_left -= text_tokens(row.raw_memory) + text_tokens(row.synopsis)
        if tokens_left < 0 and notes:
            break
        notes.append(
            SessionNotes(
                session_id=str(row.session_id),
                date=f"{row.said_at.astimezone(zone):%Y-%m-%d}",
                raw_memory=scanning.redact(row.raw_memory).text,
                synopsis=scanning.redact(row.synopsis).text,
            )
        )
    return tuple(notes)


def _documents(artifacts: list[Artifact], *, only_people: bool) -> list[CurrentDocument]:
    usage = artifact_usage(artifacts[0].owner_id, artifacts) if artifacts else {}
    documents = []
    for artifact in artifacts:
        read = usage.get(artifact.pk)
        content = text_of_people(artifact) if only_people else artifact.content
        documents.append(
            CurrentDocument(
                path=artifact.path,
                content=scanning.redact(content).text,
                person_lines=artifact.person_lines,
                struck_lines=artifact.struck_lines,
                reads=read.reads if read else 0,
                last_read=f"{read.last_read_at:%Y-%m-%d}" if read and read.last_read_at else "",
            )
        )
    return documents


async def _write(claim: ConsolidationClaim, sources: Sources) -> SynthesisAnswer:
    """Raises DomainErrors, QuotaExceeded."""
    if not sources.notes:
        # All notes were forgotten: the documents consist of what people wrote, and no model is needed.
        return SynthesisAnswer(documents={document.path: document.content for document in sources.documents})
    book = claim.run.book.name
    target = await in_thread(lambda: BackgroundModels.now(book).of_book(book, "smol"))
    answer = await ask(claim, sources.messages, target=target)
    output = await asyncio.to_thread(_clean, parsed(answer, parse_synthesis), claim.limits.max_secrets)
    _check_kept(sources.documents, output.documents.values())
    return output


def _clean(answer: SynthesisAnswer, max_secrets: int) -> SynthesisAnswer:
    """Return the answer with its documents scanned. Raises AnswerUnusable."""
    documents: dict[str, str] = {}
    redacted, dropped = 0, answer.dropped
    for path, text in answer.documents.items():
        try:
            cleaned = clean_output(text, max_secrets=max_secrets)
        except OutputRejected as rejected:
            raise AnswerUnusable(f"The model's text for {path} was rejected. {rejected}") from None
        redacted += cleaned.redacted
        dropped += cleaned.dropped
        if cleaned.text:
            documents[path] = cleaned.text
    if MEMORY_PATH not in documents or SUMMARY_PATH not in documents:
        raise AnswerUnusable("The scan removed all lines of a document.")
    return SynthesisAnswer(documents=documents, redacted=redacted, dropped=dropped)


def _check_kept(current: Iterable[CurrentDocument], new: Iterable[str]) -> None:
    """Raise AnswerUnusable if new documents have almost none of the words of the current ones: the model apologised,
    answered in another language, or forgot what it was given. People's lines do not count, as they are kept anyway."""
    lines = [line for document in current for line in set(document.content.splitlines()) - {*document.person_lines}]
    before, after = "\n".join(lines), "\n".join(new)
    # Terms also divide scripts without spaces, but leave out words such as "the", which a rewritten text still has.
    divided = [(_words(before), _words(after)), (_terms(before), _terms(after))]
    if max(len(parts) for parts, _ in divided) < _MANY_WORDS:
        return
    if max(len(parts & kept) / max(1, len(parts)) for parts, kept in divided) < _LEAST_KEPT:
        raise AnswerUnusable("The model's documents keep almost nothing of the current ones, which stay as they are.")


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _terms(text: str) -> set[str]:
    return {token.term for token in tokens_of(text)}


@transaction.atomic
def _apply(claim: ConsolidationClaim, sources: Sources, output: SynthesisAnswer) -> None:
    """Replace the documents in one transaction and end the run. Raises SourcesChanged, LeaseLost, RunCancelled."""
    run = lock_claimed(claim)
    ConsolidationState.objects.get_or_create(book_id=run.book_id, defaults={"owner_id": run.owner_id})
    state = ConsolidationState.objects.select_for_update().get(book_id=run.book_id)
    current = live_artifacts(run.owner_id, run.book_id).select_for_update()
    if state.changes != sources.changes or versions_of(current) != sources.versions:
        raise SourcesChanged("A document or a note was changed meanwhile; it is read again.")
    source = Source(actor=ACTOR, origin=WriteOrigin.CONSOLIDATION, kind=ChangeSet.Kind.SYSTEM)
    with book_writing(claim.run.book, source) as writer:
        replaced: ReplaceResult = artifacts_replace(writer, output.documents)
        if not sources.notes:
            removed = artifacts_remove(writer, sources.versions.keys() - output.documents.keys())
            replaced = replace(replaced, removed=(*replaced.removed, *removed))
    state.synthesized, state.last_synthesis_at, state.from_notes = state.changes, timezone.now(), False
    state.artifact_versions = versions_of(live_artifacts(run.owner_id, run.book_id))
    state.save()
    finish(
        claim,
        written=list(replaced.written),
        removed=list(replaced.removed),
        kept=list(replaced.kept),
        change_set=writer.change_set.pk if writer.change_set else None,
        redacted=F("redacted") + output.redacted,
        dropped=F("dropped") + output.dropped,
        error=None,
    )


@transaction.atomic
def _finish_unchanged(claim: ConsolidationClaim) -> None:
    lock_claimed(claim)
    finish(claim, error=None)


def _retry(claim: ConsolidationClaim, error: DomainError) -> None:
    """Count a failed attempt and pause the run, longer each time, or fail it after the last one. Changed sources are
    read again at once."""
    claim.row.update(failures=F("failures") + 1)
    failures = claim.row.values_list("failures", flat=True).get()
    if failures > claim.limits.max_retries:
        fail(claim, error)
        return
    delay = retry_pause(failures, claim.limits.retry_seconds)
    pause(claim, timezone.now() + (timedelta() if isinstance(error, SourcesChanged) else delay), error)
