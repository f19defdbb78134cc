"""Summaries that a client has a model write of its conversation, to send them in place of it later. Such a request is
not a turn; which sentences its answer holds is noted, as hashes, with the last run of the session that it is about, so
that a conversation that begins with the summary is known. Called by gateway.passthrough and gateway.runs.candidates."""

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from uuid import UUID

from gateway.models import Run
from gateway.runs.comparing import cut, said
from gateway.runs.fingerprint import Message, digest, text_of

MOST_SENTENCES = 12
TRACE_KEY = "summary"
_FIRST_MESSAGES = 4  # of a conversation, in which its summary is looked for
_LONG_SENTENCE = 30  # letters and digits
_SHORTEST = 80
_SENTENCE = re.compile(r"[.!?\n\u3002]+")


def is_about_a_conversation(messages: Sequence[Message], answer: str) -> bool:
    """Return True if a request that is no turn holds a conversation, and its answer may be a summary of that."""
    return len(answer) >= _SHORTEST and any(message.get("role") == "assistant" for message in messages)


def sentences(text: str) -> list[str]:
    """Return hashes of a text's long sentences, by their letters and digits."""
    keys = (said("assistant", sentence).key for sentence in _SENTENCE.split(cut(text)))
    return list(dict.fromkeys(digest(key)[:16] for key in keys if len(key) >= _LONG_SENTENCE))


def first_sentences(messages: Sequence[Message]) -> set[str]:
    """Return hashes of the long sentences that a conversation begins with."""
    spoken = (message for message in messages if message.get("role") in {"user", "assistant"})
    return {key for message in islice(spoken, _FIRST_MESSAGES) for key in sentences(text_of(message.get("content")))}


def summary_note(owner_id: UUID, session_id: UUID, answer: str) -> None:
    """Note a summary of a session."""
    keys = sentences(answer)[:MOST_SENTENCES]
    run = Run.objects.filter(owner_id=owner_id, session=session_id, superseded=False).order_by("-id").first()
    if keys and run is not None and run.state == Run.State.COMPLETED:
        Run.objects.filter(pk=run.pk, state=run.state).update(trace={**run.trace, TRACE_KEY: keys})


def summarised(noted: Iterable[tuple[UUID, Sequence[str]]], begins_with: set[str]) -> UUID | None:
    """Return the one session whose summary a conversation begins with: half of its sentences at least."""
    found = {of for of, keys in noted if keys and 2 * len(begins_with.intersection(keys)) >= len(keys)}
    return found.pop() if len(found) == 1 else None
