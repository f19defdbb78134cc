"""Determines which messages at the end of a request are new, and whose they are: the person may write several in a row,
and clients write some themselves after the results of their tools."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile

from django.db.models import Q, QuerySet

from gateway.messages import SYSTEM_ROLES, ChatMessage, text_of
from gateway.models import Message, Run, Session
from gateway.runs.comparing import comparable_message
from gateway.runs.fingerprint import ResentConversation
from gateway.runs.requested import MatchedSession, Rule
from gateway.runs.session_rows import SHORTENED_TEXT, from_run, shown_messages
from gateway.runs.summaries import hashes_after_title, stored_summaries, summarised_session
from gateway.runs.wrappers import own_words
from memories.evidence.client_texts import begins_with_summary

_NOTE_ROLES = SYSTEM_ROLES | {"user"}
_MAX_KNOWN = 200  # stored messages that are compared


def split_client_notes(messages: tuple[ChatMessage, ...]) -> tuple[tuple[ChatMessage, ...], tuple[ChatMessage, ...]]:
    """Split off messages after the last tool results that are not the user's own words: system messages, and user
    messages that contain only text of the client itself (editor state, a reminder) or pictures (those that the tool
    returned: a tool message cannot hold them). If the user's own words are among them they are a new turn, and nothing
    is split off."""
    notes = list(_at_end(messages))
    end = len(messages) - len(notes)
    if end and messages[end - 1].get("role") == "tool" and not any(map(_is_own, notes)):
        return messages[:end], messages[end:]
    return messages, ()


def unstored_messages(
    match: MatchedSession, conversation: ResentConversation, before: Sequence[ChatMessage], limit: int
) -> list[ChatMessage]:
    """Return the person's messages directly before the newest one that the matched session does not contain, oldest
    first. `before` are the request's messages before the newest one, of which the latest `limit` are examined.

    If these end with the session's whole transcript, only messages that it did not answer are compared, so that what
    was said before can be said again. Otherwise the client left something out, so messages that were ever stored, or
    precede a summary, are old. No query if an answer precedes the newest message; three at most."""
    said = list(_own_messages(islice(_at_end(before), limit)))
    if not said or match.rule == Rule.SUMMARY:
        return []
    session, replaced = match.session, match.regenerates
    rows = shown_messages(session.owner_id, session.pk)
    if replaced:
        rows = rows.exclude(from_run(replaced, "run__"))
    history_hash = replaced.history_hash_before if replaced else session.history_hash
    if conversation.turns_before and conversation.history_hash_before == history_hash:
        rows = rows.filter(seq__gt=_last_answer(rows))
    else:
        said = list(_after_summary(session, said))
    stored = rows.filter(role=Message.Role.USER).annotate(shortened=SHORTENED_TEXT).order_by("-seq")
    known = set(map(_key, stored.values_list("shortened", flat=True)[:_MAX_KNOWN]))
    return [message for message in reversed(said) if _key(text_of(message.get("content"))) not in known]


def _own_messages(latest: Iterable[ChatMessage]) -> Iterator[ChatMessage]:
    """Yield the person's own messages among these, the latest first, up to a summary."""
    for message in latest:
        if begins_with_summary(text_of(message.get("content"))):
            return
        if _is_own(message):
            yield message


def _after_summary(session: Session, said: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    """Yield messages, the latest first, up to a summary of the session that was requested through Daybook."""
    noted = stored_summaries(session.owner_id, [session.pk])
    for message in said:
        if noted and summarised_session(noted, hashes_after_title(text_of(message.get("content")))):
            return
        yield message


def _at_end(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    """Yield the user and system messages at the end, the latest first."""
    return takewhile(lambda message: message.get("role") in _NOTE_ROLES, reversed(messages))


def _is_own(message: ChatMessage) -> bool:
    """Return True if a user message contains the user's own words, or a part other than text and pictures."""
    content = message.get("content")
    parts = content if isinstance(content, list) else ()
    has_other = any(part.get("type") not in ("text", "image_url") for part in parts)
    return message["role"] == "user" and (has_other or bool(own_words(text_of(content))))


def _last_answer(rows: QuerySet[Message]) -> int:
    """Return the number of the last message that answered a person, or 0."""
    answers = rows.filter(
        Q(run=None) | Q(run__state=Run.State.COMPLETED), role=Message.Role.ASSISTANT, text__regex=r"\S"
    )
    return answers.order_by("-seq").values_list("seq", flat=True).first() or 0


def _key(text: str) -> str:
    """Return the letters and digits of a message's own words, whatever its client wraps around them."""
    return comparable_message("user", text).key
