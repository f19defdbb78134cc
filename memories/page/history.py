"""The history of a memory as the page's drawer shows it."""

from typing import Any

from memories.history.provenance import names_of, source_link
from memories.history.revisions import Wording, revisions_of
from memories.models import Memory
from memories.page.rows import TARGET_WORDS, origin_label
from memories.viewers import Viewer

MAX_REVISIONS = 100


def history_of(memory: Memory, viewer: Viewer) -> list[dict[str, Any]]:
    """Return the newest revisions of a memory, newest first, each with its author, time and source. At most three
    queries."""
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
