"""Ingesting messages of a conversation that took place elsewhere: they are stored as history of a session, and a review
of it is scheduled, which behaves like any other review. Called by reviews.api.ingest."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils.crypto import salted_hmac

from gateway.models import Message, Session
from gateway.runs.context import NewHashes
from gateway.runs.ingested import messages_add
from gateway.runs.instructions import hashes_store, new_hashes
from gateway.runs.participants import other_participants
from gateway.runs.rows import message_rows
from gateway.runs.session_rows import named
from memories.caller import Caller
from memories.errors import Conflict
from memories.ids import uuid7
from reviews.models import ReviewRun
from reviews.schedule import review_session
from reviews.selectors import review_get


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingest:
    """A client's request, prepared for its transaction: text messages of the person and the assistant, the texts of
    system messages before them, and those of their hashes that the session `session_id` lacks, or None for a new
    one."""

    messages: Sequence[Message]
    instructions: Sequence[str]
    session_id: UUID | None
    hashes: NewHashes | None
    book: str | None
    session_ref: str
    idempotency_key: str
    request_hash: str


def ingest_prepare(
    caller: Caller,
    messages: Sequence[dict[str, str]],
    *,
    instructions: Sequence[str] = (),
    book: str | None = None,
    session_ref: str = "",
    idempotency_key: str = "",
) -> Ingest:
    """Prepare messages for storage, without locks. Two queries with instructions, otherwise none."""
    session_id = None
    if instructions and session_ref:
        found = Session.objects.filter(named(session_ref), owner_id=caller.owner_id)
        session_id = found.values_list("pk", flat=True).first()
    return Ingest(
        messages=message_rows(
            caller.owner_id, None, messages, history=len(messages), others=other_participants(messages)
        ),
        instructions=instructions,
        session_id=session_id,
        hashes=new_hashes(caller.owner_id, session_id or uuid7(), instructions),
        book=book,
        session_ref=session_ref,
        idempotency_key=idempotency_key,
        request_hash=_hash(caller, [*messages, *instructions], book, session_ref) if idempotency_key else "",
    )


def review_ingest(caller: Caller, ingest: Ingest) -> ReviewRun:
    """Store the messages and schedule their review. For an idempotency key that was used before, return its review.

    Raises the errors of gateway.runs.ingested.messages_add, InvalidRequest for a temporary session, and Conflict for
    a key that was used for a different request."""
    try:
        return _ingest(caller, ingest)
    except IntegrityError:
        # A concurrent request inserted the same session or the same idempotency key.
        return _ingest(caller, ingest)


@transaction.atomic
def _ingest(caller: Caller, ingest: Ingest) -> ReviewRun:
    if ingest.idempotency_key and (earlier := _earlier(caller, ingest.idempotency_key, ingest.request_hash)):
        return earlier
    session = messages_add(caller, ingest.messages, book=ingest.book, session_ref=ingest.session_ref)
    is_other = ingest.session_id not in (None, session.pk)  # the one that was looked up has been deleted
    hashes_store(session, new_hashes(caller.owner_id, session.pk, ingest.instructions) if is_other else ingest.hashes)
    review = review_session(caller.owner_id, session.pk, ReviewRun.Trigger.INGEST)
    if ingest.idempotency_key:
        review.idempotency_key, review.request_hash = ingest.idempotency_key, ingest.request_hash
        review.save(update_fields=["idempotency_key", "request_hash"])
    return review


def _earlier(caller: Caller, key: str, request_hash: str) -> ReviewRun | None:
    found = ReviewRun.objects.filter(owner_id=caller.owner_id, idempotency_key=key).first()
    if found is None:
        return None
    if found.request_hash != request_hash:
        raise Conflict("This Idempotency-Key was used for another request. Use a new key for each set of messages.")
    return review_get(caller.owner_id, found.pk, limits=caller.limits)


def _hash(caller: Caller, said: Sequence[dict[str, str] | str], book: str | None, session_ref: str) -> str:
    # Keyed, because the hash outlives the messages and must not let anyone confirm a guess of their contents.
    request = json.dumps([said, book if session_ref else caller.limits.book_name(book), session_ref])
    return salted_hmac("daybook.ingest", request, algorithm="sha256").hexdigest()
