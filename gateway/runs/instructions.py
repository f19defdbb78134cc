"""What a client tells the model around a conversation, in leading system messages and definitions of tools. It may
repeat a page, but is not stored: its hashes let later turns, reviews and consolidation recognise what comes from it."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from gateway.digests import digest
from gateway.messages import text_of
from gateway.models import InstructionHashes, Run, Session
from gateway.runs import active
from gateway.runs.context import NewHashes, RunOutput, TurnContext
from gateway.runs.utterances import READ_ELSEWHERE, UNSTORED
from gateway.upstream.paths import texts_in
from memories.database.access import in_read_thread
from memories.evidence.instructions import HashedInstructions, hashed_instructions
from memories.lru_cache import LRUCache
from memories.recall.failures import contained

MAX_BYTES = 400_000
"""Hashes that are stored of a session, about 100,000 words without function words."""
_WITH_TEXTS = ("functions", "response_format", "prediction")  # parameters that describe something, or contain a text
_MAX_REMEMBERED = 2_000
_IDLE_SECONDS = 3600
_stored: LRUCache[UUID, str] = LRUCache()
"""Digests of the texts of sessions in this process whose hashes are all stored. Used on the event loop."""


def instructions_of(
    context: TurnContext, client_tools: Sequence[dict[str, Any]], parameters: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the texts of a request around its conversation."""
    defined = [*client_tools, *(parameters[name] for name in _WITH_TEXTS if name in parameters)]
    return tuple(filter(None, [text_of(context.client_system), *texts_in(defined)]))


def new_hashes(owner_id: UUID, session_id: UUID, texts: Sequence[str]) -> NewHashes | None:
    """Return the hashes of the sentences in these texts that a session lacks, or None if it lacks none. One query, none
    without texts."""
    if not texts:
        return None
    kept = _hashes_of(owner_id, session_id)
    salt = kept[0][0] if kept else session_id
    if any(not hashes for _, hashes in kept):
        return None
    found = hashed_instructions(texts, salt.bytes, [hashes for other, hashes in kept if other == salt])
    if len(found) + sum(len(hashes) for _, hashes in kept) > MAX_BYTES:
        return NewHashes(salt, b"")
    return NewHashes(salt, found) if found else None


async def hashes_gather(context: TurnContext, output: RunOutput) -> None:
    """Add to the output the hashes that its run stores. They are computed in a reading thread, since a long text takes
    40 ms, and not again for the same texts, as in the steps of a tool loop. After an error, and at the end of the
    process, the trace notes that they are missing."""
    if context.book is None or not output.instructions:
        return
    with contained("instructions", output.trace):
        texts = digest(*output.instructions)
        if _stored.touch(context.session_id) == texts:
            return
        if not active.is_ending():
            output.hashes = await in_read_thread(new_hashes, context.owner_id, context.session_id, output.instructions)
            if output.hashes is None:
                _stored.put(context.session_id, texts)
                _stored.trim(_IDLE_SECONDS, _MAX_REMEMBERED)
            return
    output.trace[UNSTORED] = True


def hashes_store(session: Session, found: NewHashes | None) -> None:
    """Add hashes to a session, in the caller's transaction."""
    if found:
        InstructionHashes.objects.create(
            owner_id=session.owner_id, session=session, salt=found.salt, hashes=found.hashes
        )


def hashes_missing(sessions: Sequence[Session]) -> None:
    """Note that the models of these new sessions read something that is not known, so that what they say counts as
    foreign, in the caller's transaction. One query, none without sessions."""
    InstructionHashes.objects.bulk_create(
        [
            InstructionHashes(owner_id=session.owner_id, session=session, salt=session.pk, hashes=b"")
            for session in sessions
        ]
    )


def hashes_copy(parent_id: UUID, fork: Session) -> None:
    """Copy the hashes of the session that a new one was forked from, in the caller's transaction. If its model read
    something that the client does not send again, such as results of tools, the copy is incomplete. Two queries, three
    if anything is copied."""
    known = earlier_instructions(fork.owner_id, parent_id)
    copied = [(UUID(bytes=salt), hashes) for salt, hashes in known.joined.items() if hashes]
    runs = Run.objects.filter(owner_id=fork.owner_id, session_id=parent_id, trace__has_any_keys=READ_ELSEWHERE)
    if known.incomplete or runs.exists():
        copied.append((fork.pk, b""))
    InstructionHashes.objects.bulk_create(
        [InstructionHashes(owner_id=fork.owner_id, session=fork, salt=salt, hashes=hashes) for salt, hashes in copied]
    )


def earlier_instructions(owner_id: UUID, session_id: UUID) -> HashedInstructions:
    """Return the hashes of a session, with those of the sessions that it was forked from. One query."""
    return HashedInstructions([(salt.bytes, kept) for salt, kept in _hashes_of(owner_id, session_id)])


def _hashes_of(owner_id: UUID, session_id: UUID) -> list[tuple[UUID, bytes]]:
    rows = InstructionHashes.objects.filter(owner_id=owner_id, session_id=session_id).order_by("pk")
    return [(salt, bytes(kept)) for salt, kept in rows.values_list("salt", "hashes")]
