"""The history of one memory as the page's drawer shows it: who, what they did, when, and the words that changed."""

from typing import Any

from memories.history.provenance import names_of, source_link
from memories.history.steps import Viewpoint, steps_of
from memories.models import Memory
from memories.page.rows import TARGET_WORDS, origin_label
from memories.viewers import Viewer

MOST_REVISIONS = 100


def history_of(memory: Memory, viewer: Viewer) -> list[dict[str, Any]]:
    """Return the newest revisions of a memory, newest first, each as a step with who made it, when and where. Three
    queries or less."""
    steps = steps_of(memory, Viewpoint(targets=TARGET_WORDS, day=viewer.day), most=MOST_REVISIONS)
    sets = [step.revision.change_set for step in steps]
    names = names_of(viewer.owner.pk, sets)
    return [
        {
            "step": step,
            "icon_label": origin_label(step.revision.write_origin),
            "when": viewer.minute(step.revision.created_at),
            # Its verb says that it was pinned.
            "fields": [
                f"{field.name}: {field.before} → {field.after}" for field in step.fields if field.name != "Pinned"
            ],
            "source_link": source_link(names, written),
        }
        for step, written in zip(steps, sets, strict=True)
    ]
