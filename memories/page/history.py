"""The history of one memory as the page's drawer shows it: who, what they did, when, and the words that changed."""

from collections.abc import Sequence
from dataclasses import dataclass

from memories.history import Step, Viewpoint, steps_of
from memories.models import Memory
from memories.page.rows import TARGET_WORDS, Mark, mark_of
from memories.readers import Reader
from memories.whence import Whence, names_of, whence

MOST_REVISIONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStep:
    """One revision: what it did, who did it and when, and where it was written."""

    step: Step
    mark: Mark
    when: str
    fields: Sequence[str]
    whence: Whence | None


def history_of(memory: Memory, reader: Reader) -> list[ShownStep]:
    """The newest revisions of a memory, newest first, in three queries or less."""
    steps = steps_of(memory, Viewpoint(targets=TARGET_WORDS, day=reader.day), most=MOST_REVISIONS)
    sets = [step.revision.change_set for step in steps]
    names = names_of(
        reader.owner.pk, [s.session_id for s in sets], [s.run_id for s in sets], [s.review_id for s in sets]
    )
    return [
        ShownStep(
            step=step,
            mark=mark_of(step.revision.write_origin),
            when=reader.minute(step.revision.created_at),
            # Its verb says that it was pinned.
            fields=[f"{field.name}: {field.before} → {field.after}" for field in step.fields if field.name != "Pinned"],
            whence=whence(names, written.session_id, written.run_id, written.review_id),
        )
        for step, written in zip(steps, sets, strict=True)
    ]
