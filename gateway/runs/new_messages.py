"""Determines which of the person's messages at the end of a request are new: a person may write several in a row."""

from collections import Counter
from collections.abc import Iterator, Sequence

from django.db.models import Q, QuerySet

from gateway.messages import ChatMessage, text_of
from gateway.models import Message, Run, Session
from gateway.runs.comparing import SAME, comparable_message, similarity
from gateway.runs.own_messages import at_end
from gateway.runs.requested import MatchedSession, Rule, V1Request
from gateway.runs.session_rows import SHORTENED_TEXT, from_run, shown_messages
from gateway.runs.summaries import hashes_after_title, stored_summaries, summarised_session

_MIN_KNOWN = 200  # stored messages that are compared, or more if the request has more


def unstored_messages(match: MatchedSession, request: V1Request, before: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the person's messages directly before the newest one that the matched session does not contain, oldest
    first. `before` are the request's messages before the newest one.

    If they follow the session's last answer, only messages that it did not answer are compared, so that what was said
    before can be said again. Otherwise the client left something out, so messages that were ever stored, or precede a
    summary, are old. No query if an answer precedes the newest message; three at most."""
    said, conversation = request.said_before, request.conversation
    if not said or match.rule == Rule.SUMMARY:
        return []
    session, replaced = match.session, match.regenerates
    rows = shown_messages(session.owner_id, session.pk)
    if replaced:
        rows = rows.exclude(from_run(replaced, "run__"))
    history_hash = replaced.history_hash_before if replaced else session.history_hash
    number, answer = _last_answer(rows)
    is_whole = conversation.turns_before and conversation.history_hash_before == history_hash
    if is_whole or _is_answer(before[: len(before) - sum(1 for _ in at_end(before))], answer):
        rows = rows.filter(seq__gt=number)
    else:
        said = list(_after_summary(session, said))
    stored = rows.filter(role=Message.Role.USER).annotate(shortened=SHORTENED_TEXT).order_by("-seq")
    known = Counter(map(_key, stored.values_list("shortened", flat=True)[: max(_MIN_KNOWN, 2 * len(said))]))
    new = []
    for message in reversed(said):
        key = _key(text_of(message.get("content")))
        known[key] -= 1  # a stored text is that of one message, the oldest with this text
        if known[key] < 0:
            new.append(message)
    return new


def _after_summary(session: Session, said: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    """Yield messages, the latest first, up to a summary of the session that was requested through Daybook."""
    noted = stored_summaries(session.owner_id, [session.pk])
    for message in said:
        if noted and summarised_session(noted, hashes_after_title(text_of(message.get("content")))):
            return
        yield message


def _last_answer(rows: QuerySet[Message]) -> tuple[int, str]:
    """Return the number and the text of the last message that answered a person, or 0 and ""."""
    answers = rows.filter(
        Q(run=None) | Q(run__state=Run.State.COMPLETED), role=Message.Role.ASSISTANT, text__regex=r"\S"
    )
    newest = answers.annotate(shortened=SHORTENED_TEXT).order_by("-seq")
    return newest.values_list("seq", "shortened").first() or (0, "")


def _is_answer(messages: Sequence[ChatMessage], answer: str) -> bool:
    """Return True if the last of these messages is this answer, which the client may have changed."""
    if not messages or messages[-1].get("role") != "assistant":
        return False
    given = comparable_message("assistant", text_of(messages[-1].get("content")))
    return similarity(given, comparable_message("assistant", answer)) >= SAME


def _key(text: str) -> str:
    """Return the letters and digits of a message's own words, whatever its client wraps around them."""
    return comparable_message("user", text).key
