"""The writes of a review as its page shows them: what each does to the words, and what became of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memories.admin.diffs import word_diff
from memories.admin.marks import TARGETS, badge
from memories.models import Memory
from reviews.models import ReviewRun
from reviews.writes import PENDING, ReviewWrite, WriteState

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
        """Whether it can still be approved."""
        return self.state in PENDING

    @property
    def waiting(self) -> bool:
        """Whether nobody decided about it yet."""
        return self.state == "waiting"


def write_rows(run: ReviewRun) -> list[WriteRow]:
    """The writes in their order; one query, for the pages of the memories."""
    numbers = {write.number for write in run.writes} - {0}
    found = Memory.objects.filter(owner_id=run.owner_id, number__in=numbers) if numbers else Memory.objects.none()
    urls = {n: reverse("admin:memories_memory_change", args=[pk]) for n, pk in found.values_list("number", "pk")}
    return [_row(write, urls) for write in run.writes]


def _row(write: ReviewWrite, urls: Mapping[int, str]) -> WriteRow:
    return WriteRow(
        index=write.index,
        action=write.action,
        verb=_VERBS[write.action][not write.pending and write.state != WriteState.REFUSED],
        number=str(write.number or ""),
        url=urls.get(write.number, ""),
        state=write.state,
        state_badge=badge(*_STATES[write.state]) if write.state in _STATES else "",
        diff=_diff(write),
        words=write.after or "",
        about=" · ".join(part for part in (TARGETS.get(write.target, ""), write.category) if part),
        keywords=", ".join(write.keywords or ()),
        reason=write.reason,
    )


def _diff(write: ReviewWrite) -> SafeString | str:
    before, after = write.before or "", write.after or ""
    if write.action == "delete":
        return format_html("<del>{}</del>", before) if before else ""
    return word_diff(before, after) if before and after else after
