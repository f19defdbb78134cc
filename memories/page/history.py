"""The history of one memory as the page's drawer shows it: who, what they did, when, and the words that changed."""

from collections.abc import Sequence
from dataclasses import dataclass

from memories.history.provenance import SourceLink, names_of, source_link
from memories.history.steps import ShownRevision, Viewpoint, steps_of
from memories.models import Memory
from memories.page.rows import TARGET_WORDS, IconLabel, origin_label
from memories.viewers import Viewer

MOST_REVISIONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """One revision: what it did, who did it and when, and where it was written."""

    step: ShownRevision
    icon_label: IconLabel
    when: str
    fields: Sequence[str]
    source_link: SourceLink | None


def history_of(memory: Memory, viewer: Viewer) -> list[HistoryRow]:
    """Return the newest revisions of a memory, newest first, in three queries or less."""
    steps = steps_of(memory, Viewpoint(targets=TARGET_WORDS, day=viewer.day), most=MOST_REVISIONS)
    sets = [step.revision.change_set for step in steps]
    names = names_of(viewer.owner.pk, sets)
    return [
        HistoryRow(
            step=step,
            icon_label=origin_label(step.revision.write_origin),
            when=viewer.minute(step.revision.created_at),
            # Its verb says that it was pinned.
            fields=[f"{field.name}: {field.before} → {field.after}" for field in step.fields if field.name != "Pinned"],
            source_link=source_link(names, written),
        )
        for step, written in zip(steps, sets, strict=True)
    ]
