"""The undos of reviews for the timeline, of a whole review or of single writes, and their redos. The number of queries
does not depend on the number of reviews."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from memories.models import ChangeSet, Revision
from memories.selectors import undo_steps
from memories.viewers import Viewer

Undos = Mapping[int, ChangeSet]


def newest_undos(owner_id: UUID, sets: Sequence[UUID]) -> dict[UUID, Undos]:
    """Return the newest undo or redo by change set of a review and number of a memory."""
    steps = {step.pk: (root, step) for root, step, _ in undo_steps(owner_id, sets)}
    by_set: dict[UUID, dict[int, ChangeSet]] = defaultdict(dict)
    if steps:
        rows = Revision.objects.filter(owner_id=owner_id, change_set_id__in=list(steps)).order_by("version")
        for step_id, number in rows.values_list("change_set_id", "memory__number"):
            root, step = steps[step_id]
            by_set[root][number] = step
    return dict(by_set)


def near_minute(viewer: Viewer, moment: datetime) -> str:
    """Return text such as `today, 18:41` or `20 Nov, 18:41`."""
    return f"{viewer.near_day(moment)}, {viewer.local(moment):%H:%M}"


def undone_words(step: ChangeSet, viewer: Viewer) -> str:
    """Return text such as `Undone by you, 18:41`, with the day unless it was today."""
    who = "you" if step.actor == viewer.actor else "somebody else"
    near = viewer.near_day(step.created_at)
    return f"Undone by {who}{'' if near == 'today' else f' {near}'}, {viewer.local(step.created_at):%H:%M}"
