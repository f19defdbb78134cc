"""Rows of the memories page, and the history of a memory. The number of queries does not grow with the rows."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from django.conf import settings
from django.contrib.humanize.templatetags.humanize import ordinal
from django.db.models import OuterRef, QuerySet, Subquery, UUIDField
from django.utils import timezone

from memories.history.provenance import Names, names_of, source_link
from memories.history.revisions import Wording, revisions_of
from memories.history.word_diff import Piece
from memories.models import Memory, Revision, Target, WriteOrigin
from memories.number_words import times
from memories.viewers import Viewer
from search import Hit
from search.tokens import guess_language, tokens_of

EXPIRES_SOON = timedelta(days=30)
TARGET_WORDS: dict[str, str] = {Target.USER: "You", Target.MEMORY: "Your work"}
_ICONS = {
    WriteOrigin.TOOL: "agent",
    WriteOrigin.BACKGROUND_REVIEW: "review",
    WriteOrigin.CONSOLIDATION: "consolidation",
    WriteOrigin.USER: "you",
    WriteOrigin.ADMIN: "admin",
    WriteOrigin.IMPORT: "import",
    WriteOrigin.SYSTEM: "clock",
}
_CHANGER_LABELS = {"You": "you", "Agent": "the agent", "Review": "a review", "Admin": "an administrator"}
_WORD = re.compile(r"([^\W_]+)")
_MAX_NAME = 40
MAX_REVISIONS = 100
_MAX_UNFOLDED_LINES = 8
_MAX_UNFOLDED_CHARACTERS = 700


@dataclass(frozen=True, slots=True)
class IconLabel:
    icon: str
    word: str


def origin_label(origin: str) -> IconLabel:
    """Return the icon and label of a write's origin."""
    return IconLabel(_ICONS[WriteOrigin(origin)], str(WriteOrigin(origin).label))


def with_changes(memories: "QuerySet[Memory]") -> "QuerySet[Memory]":
    """Annotate memories with the origin of the last change of their text (`changed_by`), their latest revision and its
    origin (`latest_by`)."""
    revisions = Revision.objects.filter(memory=OuterRef("pk"))
    wording = revisions.filter(created_at__gte=OuterRef("content_changed_at")).order_by("version")
    latest = revisions.order_by("-version")
    return memories.select_related("book").annotate(
        changed_by=Subquery(wording.values("write_origin")[:1]),
        latest=Subquery(latest.values("pk")[:1], output_field=UUIDField()),
        latest_by=Subquery(latest.values("write_origin")[:1]),
    )


def rows_of(memories: Iterable[Memory], viewer: Viewer, hits: Sequence[Hit] = ()) -> list[dict[str, Any]]:
    """Return rows for memories/row.html, in the given order. The memories must come from with_changes(). In a row
    `again` means the same day as the row above; `folded`, that only the beginning is shown at first. `rank` and `why`
    belong to search results. `gone` says who deleted the memory and how long it is kept; `latest` is the revision that
    restoring it returns to."""
    listed = list(memories)
    names = names_of(viewer.owner.pk, listed)
    ranked_hits = {hit.number: (place, hit) for place, hit in enumerate(hits, start=1)}
    rows = [_row(memory, viewer, names, ranked_hits.get(memory.number)) for memory in listed]
    for above, row in pairwise(rows):
        row["again"] = row["day"] == above["day"]
    return rows


def _row(memory: Memory, viewer: Viewer, names: Names, ranked: tuple[int, Hit] | None) -> dict[str, Any]:
    place, hit = ranked or (0, None)
    return {
        "memory": memory,
        "name": short_name(memory),
        "icon_label": origin_label(memory.write_origin),
        "day": viewer.day(memory.created_at),
        "pieces": highlighted(memory.content, hit) if hit else (Piece("same", memory.content),),
        "folded": len(memory.content) > _MAX_UNFOLDED_CHARACTERS or memory.content.count("\n") >= _MAX_UNFOLDED_LINES,
        "badges": _badges(memory, viewer),
        "about": f"{TARGET_WORDS[Target(memory.target)]} · {memory.category}",
        "source_link": source_link(names, memory),
        "changed": _change_text(memory, viewer),
        "used": used_words(memory.usage_count, memory.last_used_at, viewer),
        "expiry": f"Expires {viewer.day(memory.expires_at)}" if memory.expires_at and not _expires_soon(memory) else "",
        "rank": ordinal(place) if hit else "",
        "why": _why(hit, memory) if hit else "",
        "gone": _deletion_text(memory, viewer),
        "latest": getattr(memory, "latest", None),
    }


def history_of(memory: Memory, viewer: Viewer) -> list[dict[str, Any]]:
    """Return the newest revisions, newest first, each with its author, time and source. At most three queries."""
    shown = revisions_of(memory, Wording(targets=TARGET_WORDS, day=viewer.day), limit=MAX_REVISIONS)
    sets = [entry.revision.change_set for entry in shown]
    names = names_of(viewer.owner.pk, sets)
    return [
        {
            "step": entry,
            "icon_label": origin_label(entry.revision.write_origin),
            "when": viewer.minute(entry.revision.created_at),
            # The verb says whether it was pinned.
            "fields": [
                f"{field.name}: {field.before} → {field.after}" for field in entry.fields if field.name != "Pinned"
            ],
            "source_link": source_link(names, written),
        }
        for entry, written in zip(shown, sets, strict=True)
    ]


def short_name(memory: Memory) -> str:
    """Return the beginning of the text, to label buttons with. The text of a blocked memory is not repeated."""
    if memory.blocked:
        return f"blocked memory {memory.number}"
    words = " ".join(memory.content.split())
    return words if len(words) <= _MAX_NAME else words[:_MAX_NAME].rsplit(" ", 1)[0] + "…"


def highlighted(content: str, hit: Hit) -> tuple[Piece, ...]:
    """Return the content with the search words, and words of the same stem, marked as `ins` pieces."""
    language = guess_language(content)
    words = [word for reason in hit.reasons if reason.kind in {"words", "near_words"} for word in reason.words]
    wanted = {token.term for word in words for token in tokens_of(word, language)}
    surfaces = {token.surface for token in tokens_of(content, language) if token.term in wanted}
    return tuple(Piece("ins" if text in surfaces else "same", text) for text in _WORD.split(content) if text)


def used_words(count: int, last: datetime | None, viewer: Viewer) -> str:
    """Return text such as `Recalled 12 times, last today`."""
    if not count:
        return "Not recalled yet"
    return f"Recalled {times(count)}" + (f", last {viewer.near_day(last)}" if last else "")


def _why(hit: Hit, memory: Memory) -> str:
    words = hit.why.replace("of the message", "of your question").replace("the message", "your question")
    return words + (f" Recalled {times(memory.usage_count)}." if memory.usage_count else "")


def _expires_soon(memory: Memory) -> bool:
    return memory.expires_at is not None and memory.expires_at <= timezone.now() + EXPIRES_SOON


def _badges(memory: Memory, viewer: Viewer) -> list[dict[str, str]]:
    badges = []
    if memory.blocked:
        badges.append({"icon": "alert", "look": "danger", "words": "Blocked"})
    if memory.pinned:
        badges.append({"icon": "pin", "look": "accent", "words": "Pinned"})
    if memory.expires_at and _expires_soon(memory):
        verb = "Expired" if memory.expires_at <= timezone.now() else "Expires"
        badges.append({"icon": "clock", "look": "warn", "words": f"{verb} {viewer.day(memory.expires_at)}"})
    return badges


def _change_text(memory: Memory, viewer: Viewer) -> str:
    """Return text such as `Changed by an administrator, 20 Nov`; "" if the content never changed."""
    origin: Any = getattr(memory, "changed_by", None)
    if origin is None or memory.content_changed_at <= memory.created_at:
        return ""
    return f"Changed by {_changer_label(origin)}, {viewer.day(memory.content_changed_at)}"


def _deletion_text(memory: Memory, viewer: Viewer) -> str:
    """Return text such as `Deleted by a review today, kept until 20 Dec`; "" if the memory is not deleted."""
    if memory.deleted_at is None:
        return ""
    origin: Any = getattr(memory, "latest_by", None)
    by = f" by {_changer_label(origin)}" if origin else ""
    until = viewer.day(memory.deleted_at + timedelta(days=settings.UNDO_DAYS))
    if origin == WriteOrigin.SYSTEM:  # the system deletes only what has expired
        return f"Expired {viewer.near_day(memory.deleted_at)}, kept until {until}"
    return f"Deleted{by} {viewer.near_day(memory.deleted_at)}, kept until {until}"


def _changer_label(origin: str) -> str:
    word = origin_label(origin).word
    return _CHANGER_LABELS.get(word, word.lower())
