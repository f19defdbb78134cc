"""The history of a memory as the page's drawer shows it."""

from typing import Any

from memories.history.provenance import names_of, source_link
from memories.history.steps import Viewpoint, steps_of
from memories.models import Memory
from memories.page.rows import TARGET_WORDS, origin_label
from memories.viewers import Viewer

MAX_REVISIONS = 100


def history_of(memory: Memory, viewer: Viewer) -> list[dict[str, Any]]:
    """Return the newest revisions of a memory, newest first, each with its author, time and source. At most three
    queries."""
    steps = steps_of(memory, Viewpoint(targets=TARGET_WORDS, day=viewer.day), limit=MAX_REVISIONS)
    sets = [step.revision.change_set for step in steps]
    names = names_of(viewer.owner.pk, sets)
    return [
        {
            "step": step,
            "icon_label": origin_label(step.revision.write_origin),
            "when": viewer.minute(step.revision.created_at),
            # The verb of the step says whether it was pinned.
            "fields": [
                f"{field.name}: {field.before} → {field.after}" for field in step.fields if field.name != "Pinned"
            ],
            "source_link": source_link(names, written),
        }
        for step, written in zip(steps, sets, strict=True)
    ]
