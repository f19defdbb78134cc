"""Names of sessions and numbers of turns, for the pages of all apps."""

from collections.abc import Collection
from uuid import UUID

from gateway.chat.session_list import title_of, titled
from gateway.models import Run, Session
from memories.provenance import Names, Turns


def names(owner_id: UUID, sessions: Collection[UUID], runs: Collection[UUID]) -> Names:
    """Titles and turn numbers of an owner's sessions and runs; at most two queries."""
    rows = titled(Session.objects.filter(owner_id=owner_id, pk__in=sessions)) if sessions else ()
    turns = Run.objects.filter(owner_id=owner_id, pk__in=runs).values_list("pk", "turn") if runs else ()
    return Names(
        titles={row.pk: title_of(row) for row in rows},
        turns={run: Turns(first=turn, last=turn, run_id=run) for run, turn in turns},
    )
