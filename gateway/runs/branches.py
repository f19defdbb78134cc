"""Branches of a session. Each run names the run that it follows, so the runs of a session form a tree. The runs that
are not superseded are the path that is shown; the window, recall, reviews and matching read only these. Runs that
follow the same run are versions of a turn; choosing a version shows a path that contains it."""

from collections.abc import Collection
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from gateway.models import Message, Run, Session
from gateway.runs import fingerprint
from gateway.runs.lapsed import release_lapsed
from gateway.runs.rows import session_lock
from gateway.runs.session_rows import OPEN
from gateway.runs.waiting import end_waiting
from memories.caller import Caller
from memories.errors import NotFound
from memories.recall.threads import thread_changed

_BATCH = 500


class _Node(NamedTuple):
    pk: UUID
    follows: UUID | None
    turn: int
    state: str
    superseded: bool


_Tree = dict[UUID, _Node]


class _Outdated(Exception):
    """Another branch was chosen since the tree was read."""


def branch_choose(caller: Caller, session_id: UUID | None, run_id: UUID | None) -> Session:
    """Show the branch of a replaced run: the path to it and its latest continuation. The next message continues from
    its end. Nothing changes if the branch is shown already. Raises NotFound, Unauthorized, and SessionBusy while an
    answer is being written."""
    # Reading the tree of a long session is slow, so it is done before the session is locked.
    tree = _tree(Run.objects.filter(owner_id=caller.owner_id, session_id=session_id)) if session_id else {}
    try:
        return _choose(caller, session_id, run_id, tree)
    except _Outdated:
        return _choose(caller, session_id, run_id, None)


@transaction.atomic
def _choose(caller: Caller, session_id: UUID | None, run_id: UUID | None, tree: _Tree | None) -> Session:
    """Choose a branch. `tree` was read without the lock; None reads it here. Raises _Outdated."""
    session = session_lock(caller, session_id)
    for run in release_lapsed(session):
        end_waiting(run, session, [], keep=True)
    runs = Run.objects.filter(owner_id=session.owner_id, session=session)
    known = tree is not None
    tree = _tree(runs) if tree is None else _refreshed(tree, runs, run_id)
    if run_id is None or run_id not in tree:
        raise NotFound("There is no such turn in this session.")
    if tree[run_id].superseded:
        path = _path_to(_latest_descendant(run_id, tree), tree)
        _mark(runs, [pk for pk in path if tree[pk].superseded], superseded=False)
        _mark(runs, [pk for pk, node in tree.items() if pk not in path and not node.superseded], superseded=True)
        if known and not _is_shown(session, runs, [pk for pk in path if not tree[pk].superseded], len(path)):
            raise _Outdated
        _continue_from(session, [tree[pk] for pk in path])
        thread_changed(owner_id=session.owner_id, session_id=session.pk)
    return session


def path_to(run: Run) -> Collection[UUID]:
    """Return the runs on the path to a run, including itself. One query."""
    return _path_to(run.pk, _tree(Run.objects.filter(owner_id=run.owner_id, session_id=run.session_id)))


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


def _mark(runs: "QuerySet[Run]", pks: list[UUID], *, superseded: bool) -> None:
    for start in range(0, len(pks), _BATCH):
        runs.filter(pk__in=pks[start : start + _BATCH]).update(superseded=superseded)


def _is_shown(session: Session, runs: "QuerySet[Run]", unchanged: list[UUID], count: int) -> bool:
    """Return True if exactly the `count` runs of a path are shown. The unchanged runs at its beginning are shown if the
    last of them is. Two counts, each from an index alone."""
    if unchanged and runs.filter(pk=unchanged[-1], superseded=True).exists():
        return False
    return runs.count() - Run.objects.filter(session=session, superseded=True).count() == count


def _tree(runs: "QuerySet[Run]") -> _Tree:
    return {node.pk: node for node in map(_Node._make, runs.order_by("id").values_list(*_Node._fields))}


def _refreshed(tree: _Tree, runs: "QuerySet[Run]", chosen: UUID | None) -> _Tree:
    """Return a tree that was read without the lock, with the runs added since and the current state of the chosen run
    and of runs that were open. `follows` never changes; whether runs are shown is checked at the end."""
    stale = [pk for pk, node in tree.items() if node.state in OPEN] + ([chosen] if chosen else [])
    newer = runs.filter(pk__gt=max(tree)) if tree else runs
    return tree | _tree(runs.filter(pk__in=stale)) | _tree(newer)


def _latest_descendant(chosen: UUID, tree: _Tree) -> UUID:
    """Return the latest descendant of the chosen run, or the chosen run itself."""
    after, last = {chosen}, chosen
    for node in tree.values():  # ordered by id, so a run comes after the one that it follows
        if node.follows in after:
            after.add(node.pk)
            last = node.pk
    return last


def _path_to(run_id: UUID, tree: _Tree) -> dict[UUID, None]:
    """Return the runs on the path to a run, oldest first, including itself."""
    path: list[UUID] = []
    at: UUID | None = run_id
    while at in tree and len(path) < len(tree):
        path.append(at)
        at = tree[at].follows
    return dict.fromkeys(reversed(path))


def _continue_from(session: Session, path: list[_Node]) -> None:
    """Set the turn number and the hashes of a session so that its next turn follows the path's last completed run."""
    completed = [node for node in path if node.state == Run.State.COMPLETED]
    session.turns = max((node.turn for node in completed), default=0)
    session.turns_since_memory_review = min(session.turns_since_memory_review, session.turns)
    session.history_hash = session.last_pair = ""
    if completed:
        run = Run.objects.get(pk=completed[-1].pk)
        user = Message.objects.filter(run=run, role=Message.Role.USER).order_by("seq").first()
        user_text = fingerprint.canonical_content(user.parts or user.text) if user else ""
        session.history_hash = run.history_hash_after
        session.last_pair = fingerprint.pair_key(user_text, fingerprint.strip_whitespace(run.text))
    session.save(update_fields=["turns", "turns_since_memory_review", "history_hash", "last_pair"])
