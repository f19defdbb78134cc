"""The writes of a review as its page shows them: what each does to the words, and what became of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memories.admin.badges import TARGETS, badge
from memories.admin.diffs import word_diff
from memories.models import Memory
from reviews.models import ReviewRun

PENDING = ("waiting", "rejected", "expired")
_VERBS = {"add": ("Add", "Added"), "update": ("Change", "Changed"), "delete": ("Delete", "Deleted")}
_STATES = {
    "applied": ("Saved", "ok", "check"),
    "known": ("Known already", "muted", "remove"),
    "waiting": ("Waiting", "warn", "hourglass_empty"),
    "rejected": ("Turned down", "muted", "block"),
    "expired": ("Not decided in time", "muted", "timer_off"),
    "refused": ("Refused", "danger", "error"),
    "undone": ("Undone", "muted", "undo"),
    "left_alone": ("Changed since", "warn", "edit"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRow:
    """One write. `url` is the page of the memory that it was about, "" where there is none; `words` its new text, which
    a person may edit while it is pending; `diff` what it does, "" where the new text is not kept."""

    index: int
    action: str
    verb: str
    number: str
    url: str
    state: str
    state_badge: SafeString | str
    diff: SafeString | str
    words: str
    about: str
    keywords: str
    reason: str

    @property
    def pending(self) -> bool:
        """True if it can still be approved."""
        return self.state in PENDING

    @property
    def waiting(self) -> bool:
        """True if nobody has decided about it yet."""
        return self.state == "waiting"


def write_rows(run: ReviewRun) -> list[WriteRow]:
    """Return the writes in their order; one query, for the pages of the memories."""
    numbers = {int(number) for write in run.writes if (number := _number(write))}
    found = Memory.objects.filter(owner_id=run.owner_id, number__in=numbers) if numbers else Memory.objects.none()
    keys = {str(number): pk for number, pk in found.values_list("number", "pk")}
    urls = {number: reverse("admin:memories_memory_change", args=[pk]) for number, pk in keys.items()}
    return [_row(place, write, urls) for place, write in enumerate(run.writes)]


def _row(place: int, write: Mapping[str, Any], urls: Mapping[str, str]) -> WriteRow:
    action, state, number = str(write.get("action", "")), str(write.get("state", "")), _number(write)
    verbs = _VERBS.get(action, (action, action))
    return WriteRow(
        index=int(write.get("index", place)),
        action=action,
        verb=verbs[state not in {*PENDING, "refused"}],
        number=number,
        url=urls.get(number, ""),
        state=state,
        state_badge=badge(*_STATES[state]) if state in _STATES else "",
        diff=_diff(write),
        words=str(write.get("after") or ""),
        about=" · ".join(
            part for part in (TARGETS.get(write.get("target", ""), ""), str(write.get("category") or "")) if part
        ),
        keywords=", ".join(write.get("keywords") or ()),
        reason=str(write.get("reason") or ""),
    )


def _number(write: Mapping[str, Any]) -> str:
    """Return the number of the memory that it is about: the one it was stored as, else the one it names."""
    named = str(write.get("memory_id") or write.get("key") or "")
    return named if named.isdecimal() and len(named) < 10 else ""


def _diff(write: Mapping[str, Any]) -> SafeString | str:
    before, after = str(write.get("before") or ""), str(write.get("after") or "")
    if write.get("action") == "delete":
        return format_html("<del>{}</del>", before) if before else ""
    return word_diff(before, after) if before and after else after
