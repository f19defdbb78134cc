"""Branches of a session. Each run names the one that it follows, so the runs of a session are a tree. The runs that are
not superseded are the one path through the tree that is shown; everything else (the window, recall, reviews, matching)
reads only these. Runs that follow the same run are versions of a turn; choosing a version shows a path that contains
it."""

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

_AT_ONCE = 500


class _Node(NamedTuple):
    pk: UUID
    follows: UUID | None
    turn: int
    state: str
    superseded: bool


_Tree = dict[UUID, _Node]


class _Outdated(Exception):
    """Another branch was chosen after the tree was read."""


def branch_choose(caller: Caller, session_id: UUID | None, run_id: UUID | None) -> Session:
    """Show the branch of a replaced run: the path to it, and its latest continuation. The next message continues from
    its end. A branch that is shown already is not changed. Raises NotFound, Unauthorized, and SessionBusy while an
    answer is being written."""
    # Of a long session this takes a while, so it is read before others have to wait for the lock.
    tree = _tree(Run.objects.filter(owner_id=caller.owner_id, session_id=session_id)) if session_id else {}
    try:
        return _choose(caller, session_id, run_id, tree)
    except _Outdated:
        return _choose(caller, session_id, run_id, None)


@transaction.atomic
def _choose(caller: Caller, session_id: UUID | None, run_id: UUID | None, tree: _Tree | None) -> Session:
    """Choose a branch, with a tree that was read without the lock; None to read it here. Raises _Outdated."""
    session = session_lock(caller, session_id)
    for run in release_lapsed(session):
        end_waiting(run, session, [], stands=True)
    runs = Run.objects.filter(owner_id=session.owner_id, session=session)
    known = tree is not None
    tree = _tree(runs) if tree is None else _renewed(tree, runs, run_id)
    if run_id is None or run_id not in tree:
        raise NotFound("There is no such turn in this session.")
    if tree[run_id].superseded:
        way = _way_to(_last_after(run_id, tree), tree)
        _mark(runs, [pk for pk in way if tree[pk].superseded], superseded=False)
        _mark(runs, [pk for pk, node in tree.items() if pk not in way and not node.superseded], superseded=True)
        if known and not _is_shown(session, runs, [pk for pk in way if not tree[pk].superseded], len(way)):
            raise _Outdated
        _go_on_from(session, [tree[pk] for pk in way])
        thread_changed(owner_id=session.owner_id, session_id=session.pk)
    return session


def way_to(run: Run) -> Collection[UUID]:
    """Return the runs before a run on its branch, and the run itself. One query."""
    return _way_to(run.pk, _tree(Run.objects.filter(owner_id=run.owner_id, session_id=run.session_id)))


def versions_of(session: Session, runs: Collection[Run]) -> dict[UUID, list[UUID]]:
    """Return the versions of each of these runs that has several, oldest first, including itself. Failed runs that
    nothing follows are left out, since they have nothing to show. One query."""
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
    for start in range(0, len(pks), _AT_ONCE):
        runs.filter(pk__in=pks[start : start + _AT_ONCE]).update(superseded=superseded)


def _is_shown(session: Session, runs: "QuerySet[Run]", stood: list[UUID], count: int) -> bool:
    """Return True if a path of this many runs is everything that is shown. The first runs of the path, which were not
    changed, are shown if the last of them is. Two counts, each from an index alone."""
    if stood and runs.filter(pk=stood[-1], superseded=True).exists():
        return False
    return runs.count() - Run.objects.filter(session=session, superseded=True).count() == count


def _tree(runs: "QuerySet[Run]") -> _Tree:
    return {node.pk: node for node in map(_Node._make, runs.order_by("id").values_list(*_Node._fields))}


def _renewed(tree: _Tree, runs: "QuerySet[Run]", chosen: UUID | None) -> _Tree:
    """Return a tree that was read without the lock with the runs that were added since, and with the present state of
    the chosen run and of those that were open. The run that another follows never changes; whether runs are shown is
    checked in the end."""
    stale = [pk for pk, node in tree.items() if node.state in OPEN] + ([chosen] if chosen else [])
    newer = runs.filter(pk__gt=max(tree)) if tree else runs
    return tree | _tree(runs.filter(pk__in=stale)) | _tree(newer)


def _last_after(chosen: UUID, tree: _Tree) -> UUID:
    """Return the latest run after the chosen one; the chosen one if there is none."""
    after, last = {chosen}, chosen
    for node in tree.values():  # in the order of time: a run comes after the one that it follows
        if node.follows in after:
            after.add(node.pk)
            last = node.pk
    return last


def _way_to(run_id: UUID, tree: _Tree) -> dict[UUID, None]:
    """Return the runs on the path to a run, oldest first, including itself."""
    way: list[UUID] = []
    at: UUID | None = run_id
    while at in tree and len(way) < len(tree):
        way.append(at)
        at = tree[at].follows
    return dict.fromkeys(reversed(way))


def _go_on_from(session: Session, way: list[_Node]) -> None:
    """Let the next turn of a session follow the last completed run on the path, by its number and its hashes."""
    completed = [node for node in way if node.state == Run.State.COMPLETED]
    session.turns = max((node.turn for node in completed), default=0)
    session.turns_since_memory_review = min(session.turns_since_memory_review, session.turns)
    session.history_hash = session.last_pair = ""
    if completed:
        run = Run.objects.get(pk=completed[-1].pk)
        user = Message.objects.filter(run=run, role=Message.Role.USER).order_by("seq").first()
        said = fingerprint.canonical_content(user.parts or user.text) if user else ""
        session.history_hash = run.history_hash_after
        session.last_pair = fingerprint.pair_key(said, fingerprint.strip_whitespace(run.text))
    session.save(update_fields=["turns", "turns_since_memory_review", "history_hash", "last_pair"])
