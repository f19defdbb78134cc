"""The writes of a review as its admin page shows them, with diffs and states."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memories.admin.badges import LOOK_OF, TARGETS, badge
from memories.admin.diffs import pieces_html
from memories.models import Memory
from reviews.models import ReviewRun
from reviews.presenter import ShownWrite, about_words
from reviews.writes import WriteState


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRow(ShownWrite):
    """A write. `url` is the page of its memory, or "" if there is none."""

    url: str

    @property
    def state_badge(self) -> SafeString | str:
        """The badge of its state, or "" while it is staged."""
        state = self.write.state
        return "" if state == WriteState.STAGED else badge(str(state.label), *LOOK_OF[state])

    @property
    def diff(self) -> SafeString | str:
        """The diff of the content, or "" if the content is no longer stored."""
        html = pieces_html(self.pieces)
        return format_html("<del>{}</del>", html) if html and self.write.action == "delete" else html


def write_rows(owner_id: UUID, runs: Sequence[ReviewRun]) -> dict[UUID, list[WriteRow]]:
    """Return the writes of an owner's reviews, by review. One query, none if no write is about a stored memory."""
    numbers = {write.number for run in runs for write in run.writes} - {0}
    rows = Memory.objects.filter(owner_id=owner_id, number__in=numbers) if numbers else Memory.objects.none()
    urls = {n: reverse("admin:memories_memory_change", args=[pk]) for n, pk in rows.values_list("number", "pk")}
    return {
        run.pk: [
            WriteRow(write=write, about=about_words(write, TARGETS), url=urls.get(write.number, ""))
            for write in run.writes
        ]
        for run in runs
    }
