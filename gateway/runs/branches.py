"""Branches of a session. Each run names the run that it follows, so the runs of a session form a tree. The runs that
are not superseded are the path that is shown; the window, recall, reviews and matching read only these. Runs that
follow the same run are versions of a turn; choosing a version shows a path that contains it."""

from collections.abc import Collection
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from gateway.models import Run, Session
from gateway.runs.branch_lease import BranchLease, Tree, path_in, read_tree
from gateway.runs.ending import end_waiting, release_lapsed
from gateway.runs.session_rows import session_lock
from memories.caller import Caller
from memories.database.access import only_row
from memories.database.batches import Slices
from memories.errors import NotFound


def branch_choose(caller: Caller, session_id: UUID | None, run_id: UUID | None) -> Slices[Session]:
    """Show the branch of a replaced run: the path to it and its latest continuation. The next message continues from
    its end. Nothing changes if the branch is shown already. Takes several transactions, in which the session is busy
    (gateway.runs.branch_lease). Raises NotFound, Unauthorized, and SessionBusy while an answer is being written."""
    yield True  # reading the tree of a long session is slow
    tree = read_tree(Run.objects.filter(owner_id=caller.owner_id, session_id=session_id)) if session_id else {}
    yield
    chosen = _choose(caller, session_id, run_id, tree)
    if isinstance(chosen, BranchLease):
        return (yield from chosen.show_slices())
    return chosen


@transaction.atomic
def _choose(caller: Caller, session_id: UUID | None, run_id: UUID | None, tree: Tree) -> Session | BranchLease:
    """Take the lease to show the branch of a run, or return the session if it is shown. `tree` was read without the
    lock; a run that is not shown gets no followers meanwhile."""
    session = session_lock(caller, session_id)
    for run in release_lapsed(session):
        end_waiting(run, session, [], keep=True)
    runs = Run.objects.filter(owner_id=session.owner_id, session=session)
    chosen = only_row(runs.filter(pk=run_id).only("superseded")) if run_id else None
    if chosen is None:
        raise NotFound("There is no such turn in this session.")
    return BranchLease.take(session, _latest_descendant(chosen.pk, tree)) if chosen.superseded else session


def path_to(run: Run) -> Collection[UUID]:
    """Return the runs on the path to a run, including itself. One query."""
    return path_in(read_tree(Run.objects.filter(owner_id=run.owner_id, session_id=run.session_id)), run.pk)


def versions_of(session: Session, runs: Collection[Run]) -> dict[UUID, list[UUID]]:
    """Return the versions of each run that has several, oldest first, including itself. Failed runs that nothing
    follows are left out, since they have nothing to show. One query."""
    after = Run.objects.filter(session=OuterRef("session"), follows=OuterRef("pk"), superseded=True)
    others = Run.objects.filter(owner_id=session.owner_id, session=session, superseded=True)
    same = Q(follows__in=[run.follows for run in runs if run.follows])
    if any(run.follows is None for run in runs):
        same |= Q(follows=None)
    others = others.filter(same).filter(~Q(state=Run.State.FAILED) | Exists(after))
    found: dict[UUID | None, list[UUID]] = {}
    for pk, follows in others.values_list("pk", "follows"):
        found.setdefault(follows, []).append(pk)
    return {run.pk: sorted({run.pk, *found[run.follows]}) for run in runs if found.get(run.follows)}


def _latest_descendant(chosen: UUID, tree: Tree) -> UUID:
    """Return the latest descendant of the chosen run, or the chosen run itself."""
    after, last = {chosen}, chosen
    for node in tree.values():  # ordered by id, so a run comes after the one that it follows
        if node.follows in after:
            after.add(node.pk)
            last = node.pk
    return last
