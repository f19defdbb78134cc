"""Finds the hidden branch of a session that a request continues: clients keep the versions of a conversation, too.
gateway.runs.branches shows it before the run opens."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from gateway.models import Run
from gateway.runs.comparing import ComparableMessage, comparable_message, contains_answer
from gateway.runs.fingerprint import ResentConversation
from gateway.runs.session_rows import MAX_ALIKE, SHORTENED_TEXT


def hidden_runs(session_id: UUID, **filters: Any) -> "QuerySet[Run]":
    """Return the hidden runs of a session that have an answer, newest first."""
    runs = Run.objects.filter(session_id=session_id, superseded=True, state=Run.State.COMPLETED, **filters)
    return runs.order_by("-id")


def hidden_version(session_id: UUID, conversation: ResentConversation, **filters: Any) -> Run | None:
    """Return the newest hidden run of a session that answered the same conversation."""
    return hidden_runs(session_id, **conversation.same_turn(), **filters).first()


def hidden_predecessors(runs: "QuerySet[Run]", conversation: ResentConversation) -> list[Run]:
    """Return the newest of these runs whose answer ends the earlier messages of a request, or none if one is shown."""
    asked = runs.filter(history_hash_before=conversation.hashes[-2], user_key=conversation.previous_user_key)
    # The hash after the answer has no index.
    newest = asked.only("session", "superseded", "state", "history_hash_after").order_by("-id")[:MAX_ALIKE]
    wanted = (Run.State.COMPLETED, conversation.history_hash_before)
    found = [run for run in newest if (run.state, run.history_hash_after) == wanted]
    return found if all(run.superseded for run in found) else []


def hidden_answer(session_id: UUID, given: ComparableMessage, shown: Sequence[ComparableMessage]) -> UUID | None:
    """Return the newest hidden run of a session with the answer `given`, which its client may have changed. Return None
    if one of the answers `shown` is that answer."""
    if given.from_user or any(contains_answer(answer, given) for answer in shown):
        return None
    texts = hidden_runs(session_id).annotate(shortened=SHORTENED_TEXT).values_list("pk", "shortened")[:MAX_ALIKE]
    answers = ((pk, comparable_message("assistant", text)) for pk, text in texts)
    return next((pk for pk, answer in answers if contains_answer(answer, given)), None)
