"""Searches an owner's sessions by title and by the words of their messages. Temporary and deleted sessions and replaced
answers are not found."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from uuid import UUID

from django.db.models import Q, QuerySet, UUIDField
from django.db.models.functions import Coalesce, Substr

from gateway.models import Message, Session
from gateway.sessions.message_index import INDEXED, messages_with
from memories.caller import UNLIMITED, KeyLimits
from memories.errors import InvalidRequest
from memories.filters import contains_text
from search.normal_form import normalized

MAX_QUERY = 200
"""Maximum characters of a query."""
HITS_SHOWN = 3
"""Number of messages, the newest, that are shown for each session."""
_MAX_WORDS = 16
_MAX_TITLES = 100
_BEFORE, _AFTER = 50, 150  # characters around the first match
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Snippet:
    """An excerpt of a message around a match; `marks` are the matching ranges as `(start, end)` in characters."""

    text: str
    marks: Sequence[tuple[int, int]]

    def pieces(self) -> list[tuple[str, bool]]:
        """Return the pieces of the text, each with whether it matches."""
        found, at = [], 0
        for start, end in self.marks:
            found += [(self.text[at:start], False), (self.text[start:end], True)]
            at = end
        return [(text, marked) for text, marked in [*found, (self.text[at:], False)] if text]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A matching message. `turn_id` is None for commands and for the client's history."""

    seq: int
    turn_id: UUID | None
    role: str
    said_at: datetime
    snippet: Snippet


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSession:
    """A session with its newest matching messages and their total count, which may be 0 if its title matches."""

    session: Session
    hits: Sequence[Hit]
    count: int


def query_words(query: str) -> list[str]:
    """Return the words of a query, which consist of letters and digits; at most sixteen."""
    return _WORD.findall(unicodedata.normalize("NFC", query[:MAX_QUERY]))[:_MAX_WORDS]


def search_sessions(
    sessions: "QuerySet[Session]",
    owner_id: UUID,
    query: str,
    *,
    limit: int,
    after: UUID | None = None,
    limits: KeyLimits = UNLIMITED,
    narrowed: bool = False,
) -> tuple[list[FoundSession], bool]:
    """Return a page of the owner's `sessions` that contain all words of a query, and whether there are more. The last
    word may be a prefix. Sessions whose titles match come first, then the others by their newest matching message.
    `after` is the last session of the previous page. Raises InvalidRequest if `after` is not in the list.

    Only the newest 2,000 matching messages are searched (`message_index`). Four queries, and one more if `narrowed`,
    which means that `sessions` are not all of the owner's."""
    words = query_words(query)
    if not words:
        return [], False
    by_session = _matches(sessions, owner_id, words, limits)
    order = list(by_session)
    if narrowed:
        among = set(sessions.filter(pk__in=order).values_list("pk", flat=True))
        order = [key for key in order if key in among]
    if after is not None and after not in order:
        raise InvalidRequest("after is the id of an entry of this list; what it named may have left it.", param="after")
    begin = order.index(after) + 1 if after else 0
    page = order[begin : begin + limit]
    rows = sessions.in_bulk(page)
    shown = {key: by_session[key][:HITS_SHOWN] for key in page}
    hits = _hits(owner_id, list(chain.from_iterable(shown.values())), words)
    found = [
        FoundSession(session=rows[key], hits=[hits[pk] for pk in shown[key] if pk in hits], count=len(by_session[key]))
        for key in page
        if key in rows
    ]
    return found, len(order) > begin + limit


def _matches(
    sessions: "QuerySet[Session]", owner_id: UUID, words: Sequence[str], limits: KeyLimits
) -> dict[UUID, list[UUID]]:
    """Return the ids of the matching messages by session, both in display order."""
    current = Q(run=None) | Q(run__superseded=False, run__temporary=False)
    messages = _of_owner(owner_id).filter(current, session__temporary=False, session__deleted_at=None)
    messages = limits.filter(messages.filter(pk__in=messages_with(owner_id, words)), agent="session__agent__name")
    found: dict[UUID, list[UUID]] = {key: [] for key in _titles_with(sessions, words)}
    for pk, session_id in messages.order_by("-created_at", "-id").values_list("pk", "session_id"):
        found.setdefault(session_id, []).append(pk)
    return found


def _of_owner(owner_id: UUID) -> "QuerySet[Message]":
    # An expression, since SQLite would otherwise use the owner index and read all of the owner's messages.
    whose = Coalesce("owner_id", "owner_id", output_field=UUIDField())
    return Message.objects.alias(whose=whose).filter(whose=owner_id)


def _titles_with(sessions: "QuerySet[Session]", words: Sequence[str]) -> list[UUID]:
    named = (contains_text(word, "title") for word in words)
    rows = sessions.filter(*named, temporary=False).order_by("-last_active_at", "-id")
    return list(rows.values_list("pk", flat=True)[:_MAX_TITLES])


def _hits(owner_id: UUID, keys: Sequence[UUID], words: Sequence[str]) -> dict[UUID, Hit]:
    rows = _of_owner(owner_id).filter(pk__in=keys).annotate(indexed=Substr("text", 1, INDEXED))
    pattern = _pattern(words)
    return {
        pk: Hit(seq=seq, turn_id=run_id, role=role, said_at=at, snippet=snippet(text, pattern))
        for pk, seq, run_id, role, at, text in rows.values_list("pk", "seq", "run_id", "role", "created_at", "indexed")
    }


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern that finds the words in folded text, the longest first."""
    *whole, last = (_folded(word) for word in words)
    ends = [rf"{word}(?![^\W_])" for word in whole] + [last + r"[^\W_]*"]
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(sorted(ends, key=len, reverse=True))})", re.IGNORECASE)


def snippet(text: str, pattern: re.Pattern[str]) -> Snippet:
    """Return the excerpt around the first match, or the beginning of a text without a match."""
    text = normalized(text, "NFC")  # as the words of a query are
    match = pattern.search(text) or (None if text.isascii() else pattern.search(_folded(text)))
    at = match.start() if match else 0
    start, end = max(0, at - _BEFORE), at + _AFTER
    words = text[start:end].split()
    if start and not text[start - 1].isspace() and not text[start].isspace() and len(words) > 1:
        words = words[1:]
    if end < len(text) and not text[end].isspace() and len(words) > 1:
        words = words[:-1]
    shown = f"{'… ' if start else ''}{' '.join(words)}{' …' if end < len(text) else ''}"
    return Snippet(shown, [match.span() for match in pattern.finditer(_folded(shown))])


def _folded(text: str) -> str:
    """Return the text without accents but of the same length, so that `e` finds `é`."""
    if text.isascii():
        return text
    return text.translate({ord(letter): unicodedata.normalize("NFD", letter)[0] for letter in set(text)})
