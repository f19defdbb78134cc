"""Memories from messages that were said elsewhere: they become history of a session, and a review of it is scheduled.
All else (limits, attempts, approval, undo, forgetting) is that of any review. Called by reviews.api.ingest."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.utils.crypto import salted_hmac

from gateway.models import Message
from gateway.runs.brought import messages_bring
from gateway.runs.rows import message_rows
from memories.caller import Caller
from memories.errors import Conflict
from reviews.models import ReviewRun
from reviews.schedule import review_session
from reviews.selectors import review_get


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestRequest:
    """What a client brings: messages of person and assistant, words only."""

    messages: Sequence[dict[str, str]]
    book: str | None = None
    session_ref: str = ""
    idempotency_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingest:
    """A request with what its transaction stores."""

    request: IngestRequest
    messages: Sequence[Message]
    request_hash: str


def ingest_prepare(caller: Caller, request: IngestRequest) -> Ingest:
    """Return what is to be stored. Nothing is asked of the database, and nobody waits for it."""
    return Ingest(
        request=request,
        messages=message_rows(caller.owner_id, None, request.messages, history=len(request.messages)),
        request_hash=_hash(caller, request) if request.idempotency_key else "",
    )


def review_ingest(caller: Caller, ingest: Ingest) -> ReviewRun:
    """Store the messages and schedule their review; for a key that was used before, return the review it made.

    Raises what gateway.runs.brought.messages_bring raises, InvalidRequest for a temporary session, and Conflict for a
    key that came with another request."""
    try:
        return _ingest(caller, ingest)
    except IntegrityError:
        # Another request made the session of that name, or came with the same key, between our look and our insert.
        return _ingest(caller, ingest)


@transaction.atomic
def _ingest(caller: Caller, ingest: Ingest) -> ReviewRun:
    request, request_hash = ingest.request, ingest.request_hash
    if request_hash and (earlier := _earlier(caller, request.idempotency_key, request_hash)):
        return earlier
    session = messages_bring(caller, ingest.messages, book=request.book, session_ref=request.session_ref)
    review = review_session(caller.owner_id, session.pk, ReviewRun.Trigger.INGEST)
    if request_hash:
        review.idempotency_key, review.request_hash = request.idempotency_key, request_hash
        review.save(update_fields=["idempotency_key", "request_hash"])
    return review


def _earlier(caller: Caller, key: str, request_hash: str) -> ReviewRun | None:
    found = ReviewRun.objects.filter(owner_id=caller.owner_id, idempotency_key=key).first()
    if found is None:
        return None
    if found.request_hash != request_hash:
        raise Conflict("This Idempotency-Key came with another request. Use a new key for each set of messages.")
    return review_get(caller.owner_id, found.pk, limits=caller.limits)


def _hash(caller: Caller, request: IngestRequest) -> str:
    # Keyed: it outlives the messages, and must not tell anybody who guesses what they said.
    book = request.book if request.session_ref else caller.limits.book_name(request.book)
    said = json.dumps([request.messages, book, request.session_ref])
    return salted_hmac("daybook.ingest", said, algorithm="sha256").hexdigest()
