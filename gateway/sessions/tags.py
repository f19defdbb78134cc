"""Tags of sessions: a few short words for finding conversations again. They are stored in the session's row, so lists
of sessions need no additional query."""

from collections.abc import Iterable, Sequence
from typing import TypeVar
from uuid import UUID

from django.db.models import QuerySet

from gateway.models import Session
from memories.errors import InvalidRequest

MAX_TAGS = 10
"""Maximum number of tags per session."""
TAG_LENGTH = 40
"""Maximum characters of a tag."""
TAGGED_SESSIONS = 500
"""The number of tagged sessions, the latest, from which an owner's tags are collected."""
_BREAK = "\n"

Rows = TypeVar("Rows", bound="QuerySet[Session]")


def clean_tag(tag: str) -> str:
    """Return a tag in stored form: one line, in lower case."""
    return " ".join(tag.split()).lower()


def clean_tags(given: Iterable[str]) -> list[str]:
    """Return tags in stored form, without empty tags and duplicates. Raises InvalidRequest."""
    tags = list(dict.fromkeys(tag for tag in map(clean_tag, given) if tag))
    if len(tags) > MAX_TAGS:
        raise InvalidRequest(f"A session has at most {MAX_TAGS} tags.", param="tags")
    for tag in tags:
        if len(tag) > TAG_LENGTH or "," in tag or not tag.isprintable():
            raise InvalidRequest(f"A tag has at most {TAG_LENGTH} printable characters, and no comma.", param="tags")
    return tags


def as_stored(tags: Sequence[str]) -> str:
    """Return the value of `Session.tags`: each tag is between two line breaks, so that it can be looked up."""
    return _BREAK + _BREAK.join(tags) + _BREAK if tags else ""


def tagged(sessions: Rows, tag: str) -> Rows:
    """Return the sessions with a tag, using the index of tagged sessions."""
    wanted = clean_tag(tag)[: TAG_LENGTH + 1]
    return sessions.exclude(tags="").filter(tags__contains=_BREAK + wanted + _BREAK)


def tags_of(owner_id: UUID) -> list[str]:
    """Return the tags of an owner's sessions in alphabetical order. One query."""
    rows = Session.objects.filter(owner_id=owner_id, temporary=False).exclude(tags="").order_by("-last_active_at")
    stored = rows.values_list("tags", flat=True)[:TAGGED_SESSIONS]
    return sorted({tag for tags in stored for tag in tags.split(_BREAK) if tag})
