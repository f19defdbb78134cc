"""Branches of a session. Each run names the run that it follows, so the runs of a session form a tree. The runs that
are not superseded are the path that is shown; the window, recall, reviews and matching read only these. Runs that
follow the same run are versions of a turn; choosing a version shows a path that contains it.

Runs are shown and hidden in parts, each a short transaction, under a lease: two columns of the session, the last run of
the branch that is to be shown, and when the lease expires, which also identifies it. While there is a lease, no turn
begins in the session. If its holder dies, the worker's sweep shows that branch; so a choice is completed, and a turn
that was to be replaced is shown again with those after it. In between, the runs that are shown are always the beginning
of a branch: runs are hidden from its end, and shown from its beginning."""

import contextlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from gateway.errors import SessionBusy
from gateway.hooks import review_position
from gateway.models import Message, Run, Session
from gateway.runs import fingerprint
from gateway.runs.ending import end_waiting, release_lapsed
from gateway.runs.rows import TURNS_AT_ONCE
from gateway.runs.session_rows import (
    canonical_question,
    from_run,
    latest_run,
    lock,
    locked_sessions,
    run_in,
    session_lock,
    shown_runs,
    user_messages,
)
from memories.caller import Caller
from memories.clocks import lease_over
from memories.database.access import only_row
from memories.database.batches import BatchSize, Slices, run_slices
from memories.recall.threads import thread_changed

LEASE = timedelta(seconds=30)
MAX_AT_ONCE = 20


class Node(NamedTuple):
    """What is known of a run in the tree of its session."""

    pk: UUID
    follows: UUID | None
    turn: int
    state: str
    superseded: bool


Tree = dict[UUID, Node]


def read_tree(runs: "QuerySet[Run]") -> Tree:
    """Return runs by id, in their order. One query, which takes a while in a long session."""
    return {node.pk: node for node in map(Node._make, runs.order_by("id").values_list(*Node._fields))}


def path_in(tree: Tree, run_id: UUID) -> dict[UUID, None]:
    """Return the runs on the path to a run, oldest first, including itself."""
    path: list[UUID] = []
    at: UUID | None = run_id
    while at in tree and len(path) < len(tree):
        path.append(at)
        at = tree[at].follows
    return dict.fromkeys(reversed(path))


def _continue_from(session: Session, path: Sequence[Node]) -> None:
    """Set the counters and the hashes of a session so that its next turn follows the last completed run of the path,
    which is shown now, and end the session's lease."""
    completed = [node for node in path if node.state == Run.State.COMPLETED]
    session.turns = max((node.turn for node in completed), default=0)
    session.turns_since_memory_review = min(_unreviewed_turns(session), session.turns)
    session.history_hash = session.last_pair = ""
    session.branch_end = session.branch_until = None
    if completed:
        run = Run.objects.get(pk=completed[-1].pk)
        question = canonical_question(user_messages(run))
        session.history_hash = run.history_hash_after
        session.last_pair = fingerprint.pair_key(question, fingerprint.strip_whitespace(run.text))
    changed = ["turns", "turns_since_memory_review", "history_hash", "last_pair", "branch_end", "branch_until"]
    session.save(update_fields=changed)
    thread_changed(owner_id=session.owner_id, session_id=session.pk, after=session.last_active_at)


def _unreviewed_turns(session: Session) -> int:
    """Return how many turns of the shown branch count for the next review."""
    counted = {"run__state": Run.State.COMPLETED, "run__counted": True, "run__temporary": False}
    new = Message.objects.filter(owner_id=session.owner_id, session=session, seq__gt=review_position()(session))
    shown = new.filter(role=Message.Role.USER, run__superseded=False, **counted)
    return int(shown.aggregate(turns=Count("run", distinct=True))["turns"])


@dataclass(slots=True)
class BranchLease:
    """The right to hide and show the runs of a session, until `until`. `end` is the last run of the branch to show."""

    session: Session
    end: UUID
    until: datetime

    @classmethod
    def take(cls, session: Session, end: UUID) -> "BranchLease":
        """Take the lease of a locked session, in the caller's transaction."""
        lease = cls(session, end, timezone.now() + LEASE)
        session.branch_end, session.branch_until = end, lease.until
        session.save(update_fields=["branch_end", "branch_until"])
        return lease

    @property
    def runs(self) -> "QuerySet[Run]":
        """The runs of the session."""
        return Run.objects.filter(owner_id=self.session.owner_id, session_id=self.session.pk)

    def renew(self) -> None:
        """Renew the lease in the caller's transaction, with the session locked. Raises SessionBusy if it is lost."""
        held = Session.objects.filter(pk=self.session.pk, branch_until=self.until)
        until = timezone.now() + LEASE
        if held.update(branch_until=until) != 1:
            raise SessionBusy("Another request changed which turns of this conversation are shown.", retry_after=1)
        self.until = until

    def mark_slices(self, pks: Sequence[UUID], *, superseded: bool) -> Slices[None]:
        """Hide or show runs in short transactions. Raises SessionBusy if the lease is lost."""
        size = BatchSize(initial=TURNS_AT_ONCE)
        for part in size.parts(pks):
            with size.measured(), transaction.atomic():
                self.renew()
                # Not those that are so already: their rows are wide.
                self.runs.filter(pk__in=part, superseded=not superseded).update(superseded=superseded)
            yield

    def show_slices(self) -> Slices[Session]:
        """Show the branch that ends with `end`, in short transactions, and end the lease. Return the session. Raises
        SessionBusy if the lease is lost."""
        yield True
        tree = read_tree(self.runs)  # which nobody else changes
        path = path_in(tree, self.end)
        hide = [pk for pk, node in tree.items() if pk not in path and not node.superseded]
        yield
        yield from self.mark_slices(hide[::-1], superseded=True)
        yield from self.mark_slices([pk for pk in path if tree[pk].superseded], superseded=False)
        with transaction.atomic():
            self.renew()
            session = lock(self.session)
            _continue_from(session, [tree[pk] for pk in path])
        return session


def later_hide_slices(replaced: Run) -> Slices[BranchLease | None]:
    """Hide the runs after one that is to be replaced, and return the lease under which that was done. If no turn
    replaces it, `show_slices` of the lease shows them again. Return None if the run is no longer shown. Raises
    SessionBusy."""
    with transaction.atomic():
        session = only_row(locked_sessions(replaced.owner_id).filter(pk=replaced.session_id))
        if session is None:  # it was deleted
            return None
        for run in release_lapsed(session):
            end_waiting(run, session, [], keep=True)
        last = latest_run(session)
        if last is None or not shown_runs(session).filter(pk=replaced.pk).exists():
            return None
        lease = BranchLease.take(session, last.pk)
    yield True
    later = shown_runs(session).filter(from_run(replaced)).exclude(pk=replaced.pk)
    pks = list(later.order_by("-id").values_list("pk", flat=True))
    yield
    yield from lease.mark_slices(pks, superseded=True)
    return lease


def branches_sweep(now: datetime) -> None:
    """Show the branches whose leases have expired, since their process ended. Idempotent; safe in several workers."""
    expired = Session.objects.filter(lease_over("branch_until", now, lease=LEASE), branch_end__isnull=False)
    for session in expired.select_related("agent").order_by("branch_until")[:MAX_AT_ONCE]:
        if lease := _take_over(session):
            with contextlib.suppress(SessionBusy):  # the session was deleted meanwhile, or this took too long
                run_slices(lease.show_slices())


@transaction.atomic
def _take_over(session: Session) -> BranchLease | None:
    """Take an expired lease. Return None if another process was first."""
    same = Session.objects.select_for_update(of=("self",), no_key=True).filter(
        pk=session.pk, branch_until=session.branch_until
    )
    found = only_row(same)
    return BranchLease.take(found, found.branch_end) if found and found.branch_end else None


def branch_choose(
    caller: Caller, session_id: UUID | None, run_id: UUID | None, *, only_to: bool = False
) -> Slices[Session]:
    """Show the branch of a replaced run: the path to it and its latest continuation, or with `only_to` the path alone.
    The next message continues from its end. Nothing changes if the run is shown already. Takes several transactions, in
    which the session is busy. Raises NotFound, Unauthorized, and SessionBusy while an answer is being written."""
    yield True  # reading the tree of a long session is slow
    tree = read_tree(Run.objects.filter(owner_id=caller.owner_id, session_id=session_id)) if session_id else {}
    yield
    chosen = _choose(caller, session_id, run_id, tree, only_to=only_to)
    if isinstance(chosen, BranchLease):
        return (yield from chosen.show_slices())
    return chosen


@transaction.atomic
def _choose(
    caller: Caller, session_id: UUID | None, run_id: UUID | None, tree: Tree, *, only_to: bool
) -> Session | BranchLease:
    """Take the lease to show the branch of a run, or return the session if it is shown. `tree` was read without the
    lock; a run that is not shown gets no followers meanwhile."""
    session = session_lock(caller, session_id)
    for run in release_lapsed(session):
        end_waiting(run, session, [], keep=True)
    runs = Run.objects.filter(owner_id=session.owner_id, session=session)
    chosen = run_in(runs.only("superseded"), run_id)
    if not chosen.superseded:
        return session
    return BranchLease.take(session, chosen.pk if only_to else _latest_descendant(chosen.pk, tree))


def path_to(run: Run) -> Collection[UUID]:
    """Return the runs on the path to a run, including itself. One query."""
    return path_in(read_tree(Run.objects.filter(owner_id=run.owner_id, session_id=run.session_id)), run.pk)


def shown_ancestor(session: Session, run_id: UUID) -> UUID | None:
    """Return the last run on the path to a run that is shown, or None. One query."""
    tree = read_tree(Run.objects.filter(owner_id=session.owner_id, session_id=session.pk))
    return next((pk for pk in reversed(path_in(tree, run_id)) if not tree[pk].superseded), None)


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
