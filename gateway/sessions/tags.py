"""Tags of sessions: a few short words that help a person find conversations again. They are stored in the session's
row, so lists of sessions need no further query."""

from collections.abc import Iterable, Sequence
from typing import TypeVar
from uuid import UUID

from django.db.models import QuerySet

from gateway.models import Session
from memories.errors import InvalidRequest

MOST_TAGS = 10
"""Tags of one session."""
TAG_LENGTH = 40
"""Characters of one tag."""
LOOKED_AT = 500
"""So many of the sessions with tags that were used last are looked at for the tags that somebody has."""
_BREAK = "\n"

Rows = TypeVar("Rows", bound="QuerySet[Session]")


def clean_tag(tag: str) -> str:
    """Return a tag as it is stored: one line, in lower case."""
    return " ".join(tag.split()).lower()


def clean_tags(given: Iterable[str]) -> list[str]:
    """Return tags as they are stored, without empty ones and repetitions. Raises InvalidRequest."""
    tags = list(dict.fromkeys(tag for tag in map(clean_tag, given) if tag))
    if len(tags) > MOST_TAGS:
        raise InvalidRequest(f"A session has at most {MOST_TAGS} tags.", param="tags")
    for tag in tags:
        if len(tag) > TAG_LENGTH or "," in tag or not tag.isprintable():
            raise InvalidRequest(f"A tag has at most {TAG_LENGTH} printable characters, and no comma.", param="tags")
    return tags


def as_stored(tags: Sequence[str]) -> str:
    """Return the text that a session stores for these tags: each stands between two line breaks, so that it can be
    looked up."""
    return _BREAK + _BREAK.join(tags) + _BREAK if tags else ""


def tagged(sessions: Rows, tag: str) -> Rows:
    """Return the sessions that have a tag, by the index of sessions with tags."""
    wanted = clean_tag(tag)[: TAG_LENGTH + 1]
    return sessions.exclude(tags="").filter(tags__contains=_BREAK + wanted + _BREAK)


def tags_of(owner_id: UUID) -> list[str]:
    """Return the tags of an owner's sessions in alphabetical order. One query."""
    rows = Session.objects.filter(owner_id=owner_id, temporary=False).exclude(tags="").order_by("-last_active_at")
    held = rows.values_list("tags", flat=True)[:LOOKED_AT]
    return sorted({tag for tags in held for tag in tags.split(_BREAK) if tag})
