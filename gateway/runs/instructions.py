"""What a client tells the model around a conversation, in leading system messages and definitions of tools. It may
repeat a page, but is not stored: its hashes let later turns, reviews and consolidation recognise what comes from it."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q

from gateway.messages import text_of
from gateway.models import InstructionHashes, Session
from gateway.runs.context import RunOutput, TurnContext
from gateway.upstream.paths import texts_in
from memories.database.access import in_read_thread
from memories.evidence.instructions import HashedInstructions, hashed_instructions
from memories.recall.failures import contained

MAX_BYTES = 400_000
"""Hashes that are stored of a session, about 100,000 words without function words."""


def instructions_of(context: TurnContext, client_tools: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return the texts of a request around its conversation."""
    return tuple(filter(None, [text_of(context.client_system), *texts_in(client_tools)]))


def new_hashes(session_id: UUID, texts: Sequence[str]) -> bytes | None:
    """Return the hashes of the sentences in these texts that a session lacks, or None if it lacks none. One query, none
    without texts."""
    if not texts:
        return None
    rows = InstructionHashes.objects.filter(session_id=session_id)
    known = [bytes(kept) for kept in rows.values_list("hashes", flat=True)]
    if b"" in known:
        return None
    found = hashed_instructions(texts, session_id.bytes, known)
    if len(found) + sum(map(len, known)) > MAX_BYTES:
        return b""
    return found or None


async def hashes_to_store(context: TurnContext, output: RunOutput) -> bytes | None:
    """Return the hashes that a run adds to its session. They are computed in a reading thread, since a long text takes
    40 ms. After an error a later turn adds them."""
    if context.book is None or not output.instructions:
        return None  # saves a thread hop
    with contained("instructions", output.trace):
        return await in_read_thread(new_hashes, context.session_id, output.instructions)
    return None


def hashes_store(session: Session, hashes: bytes | None) -> None:
    """Add hashes to a session, in the caller's transaction."""
    if hashes is not None:
        InstructionHashes.objects.create(owner_id=session.owner_id, session=session, hashes=hashes)


def earlier_instructions(session_id: UUID) -> HashedInstructions:
    """Return the hashes of a session and of the one that it was forked from. One query."""
    parents = Session.with_deleted.filter(pk=session_id).values("parent_id")
    rows = InstructionHashes.objects.filter(Q(session_id=session_id) | Q(session_id__in=parents)).order_by("pk")
    return HashedInstructions([(of.bytes, bytes(kept)) for of, kept in rows.values_list("session_id", "hashes")])
