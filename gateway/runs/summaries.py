"""Recognises summaries by which clients replace their conversation. The request for a summary is not a turn. Hashes of
the summary's sentences are stored in the trace of the session's last run, so that a later conversation that begins with
the summary can be matched. Called by gateway.passthrough and gateway.runs.candidates."""

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from uuid import UUID

from gateway.digests import digest
from gateway.messages import ChatMessage, text_of
from gateway.models import Run
from gateway.runs.comparing import comparable_message, cut
from gateway.runs.context import SystemContent

MAX_SENTENCES = 12
TRACE_KEY = "summary"
_OF_CONVERSATION = re.compile(r"\bsummar\w{1,4}\b[^.\n]{0,40}\b(?:conversation|chat|dialog|discussion)", re.IGNORECASE)
_FIRST_MESSAGES = 4  # messages of a conversation that are searched for a summary
_MAX_SEARCHED = 40_000  # characters of system messages at each end, since a summary may follow long instructions
_MIN_SENTENCE_CHARS = 30  # letters and digits
_MIN_SUMMARY_CHARS = 80
_SENTENCE = re.compile(r"[.!?\n\u3002]+")


def may_be_summary(messages: Sequence[ChatMessage], answer: str) -> bool:
    """Return True if the messages of a passthrough request contain a conversation that the answer may summarise."""
    return len(answer) >= _MIN_SUMMARY_CHARS and any(message.get("role") == "assistant" for message in messages)


def sentence_hashes(text: str) -> list[str]:
    """Return hashes of the letters and digits of a text's long sentences."""
    keys = (comparable_message("assistant", sentence).key for sentence in _SENTENCE.split(cut(text)))
    return list(dict.fromkeys(digest(key)[:16] for key in keys if len(key) >= _MIN_SENTENCE_CHARS))


def may_contain_summary(client_system: SystemContent) -> bool:
    """Return True if a client's system messages may contain a summary of the conversation: LangMem, LibreChat. Only
    their beginning and end are searched."""
    text = text_of(client_system)
    return any(_OF_CONVERSATION.search(part) for part in (text[:_MAX_SEARCHED], text[-_MAX_SEARCHED:]))


def first_sentence_hashes(client_system: SystemContent, messages: Sequence[ChatMessage]) -> set[str]:
    """Return hashes of the long sentences in a client's system messages and the first messages of a conversation."""
    spoken = (message for message in messages if message.get("role") in {"user", "assistant"})
    contents = (client_system, *(message.get("content") for message in islice(spoken, _FIRST_MESSAGES)))
    return {key for content in contents for key in hashes_after_title(text_of(content))}


def hashes_after_title(text: str) -> set[str]:
    """Return hashes of a text's long sentences. A client may put "Summary of the conversation:" before them."""
    return {*sentence_hashes(text), *sentence_hashes(text.partition(":")[2])}


def summary_store(owner_id: UUID, session_id: UUID, answer: str) -> None:
    """Store the hashes of a session's summary with its last run."""
    keys = sentence_hashes(answer)[:MAX_SENTENCES]
    run = Run.objects.filter(owner_id=owner_id, session=session_id, superseded=False).order_by("-id").first()
    if keys and run is not None and run.state == Run.State.COMPLETED:
        Run.objects.filter(pk=run.pk, state=run.state).update(trace={**run.trace, TRACE_KEY: keys})


def stored_summaries(owner_id: UUID, sessions: Collection[UUID]) -> list[tuple[UUID, Sequence[str]]]:
    """Return the sessions of stored summaries, with the hashes of their sentences. One query."""
    runs = Run.objects.filter(owner_id=owner_id, session__in=sessions, superseded=False, trace__has_key=TRACE_KEY)
    return list(runs.values_list("session_id", f"trace__{TRACE_KEY}"))


def summarised_session(noted: Iterable[tuple[UUID, Sequence[str]]], begins_with: set[str]) -> UUID | None:
    """Return the only session of whose summary the conversation begins with at least half of the sentences, or None."""
    found = {pk for pk, keys in noted if keys and 2 * len(begins_with.intersection(keys)) >= len(keys)}
    return found.pop() if len(found) == 1 else None
