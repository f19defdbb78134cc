"""The memory notes under an answer: which memories the run was given and why, and which writes were made. Both are read
for many runs at once. Of several undos and redos of a change set, the newest decides."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery

from gateway.chat.held_notes import HeldNote, held_of_runs
from gateway.chat.labels import why_given
from gateway.models import Message, Run
from memories.history.word_diff import Piece, word_diff
from memories.ids import parse_uuid
from memories.models import ChangeSet, Memory, Revision
from memories.selectors import undo_steps

_BY_REVIEW = (ChangeSet.Kind.REVIEW, ChangeSet.Kind.APPROVAL)
_SHOWN = (ChangeSet.Kind.TOOL, *_BY_REVIEW)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenMemory:
    """A memory or an earlier passage that a run was given, and why. `now` is the current memory; None for a passage and
    for an erased memory."""

    text: str
    why: str
    quoted: bool = False
    now: "Memory | None" = None

    @property
    def is_current(self) -> bool:
        """Return True if the memory can be changed or forgotten."""
        return self.now is not None and self.now.deleted_at is None

    @property
    def restorable(self) -> UUID | None:
        """Return the change set whose undo restores a deleted memory."""
        return None if self.now is None or self.is_current else self.now.latest_set  # type: ignore[attr-defined]


def given_to_runs(owner_id: UUID, runs: Sequence[Run]) -> dict[UUID, list[GivenMemory]]:
    """Return the memories that each run was given, in their order."""
    given_items = [(run, item) for run in runs for item in run.recalled if isinstance(item, dict)]
    numbers = {number for _, item in given_items if (number := _number(item.get("memory_id")))}
    newest = Revision.objects.filter(memory=OuterRef("pk")).order_by("-version").values("change_set")[:1]
    given = Memory.objects.filter(owner_id=owner_id, number__in=numbers).annotate(latest_set=Subquery(newest))
    rows = {memory.number: memory for memory in given}
    turn_ids = {turn_id for _, item in given_items if (turn_id := parse_uuid(item.get("turn_id")))}
    turns = {run.pk: run for run in Run.objects.filter(owner_id=owner_id, pk__in=turn_ids)}
    texts = _first_words(owner_id, turns)
    found: dict[UUID, list[GivenMemory]] = defaultdict(list)
    for run, item in given_items:
        run_id = parse_uuid(item.get("turn_id"))
        if run_id is not None and run_id in turns:
            text = str(item.get("content") or texts.get(run_id, ""))
            why = f"Said earlier in this conversation, turn {turns[run_id].turn}."
            found[run.pk].append(GivenMemory(text=text, why=why, quoted=True))
            continue
        memory = rows.get(_number(item.get("memory_id")) or 0)
        text = str(item.get("content") or (memory.content if memory else ""))
        if text:
            why = why_given(item, usage_count=memory.usage_count if memory else 0)
            found[run.pk].append(GivenMemory(text=text, why=why, now=memory))
    return found


def _number(value: Any) -> int | None:
    return int(value) if str(value).isdecimal() else None


def _first_words(owner_id: UUID, runs: Iterable[UUID]) -> dict[UUID | None, str]:
    messages = Message.objects.filter(owner_id=owner_id, run_id__in=list(runs), role=Message.Role.USER)
    return {run_id: text[:200] for run_id, text in messages.order_by("seq").values_list("run_id", "text")}


def notes_of_runs(
    owner_id: UUID, session_id: UUID, runs: Sequence[Run]
) -> tuple[dict[UUID, list[dict[str, Any]]], dict[UUID, list[HeldNote]]]:
    """Return the written notes and the held writes by run. A run's notes include the writes of answers that it
    replaced, and those of reviews that read the conversation up to its turn."""
    if not runs:
        return {}, {}
    by_turn = {run.turn: run.pk for run in runs}
    same_turns = Run.objects.filter(owner_id=owner_id, session_id=session_id, turn__in=list(by_turn))
    shown_at = {run_id: by_turn[turn] for run_id, turn in same_turns.values_list("pk", "turn")}
    sets = ChangeSet.objects.filter(owner_id=owner_id, run_id__in=list(shown_at), kind__in=_SHOWN).order_by("id")
    found: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for change_set, note in _notes(owner_id, sets):
        if change_set.run_id is not None:
            found[shown_at[change_set.run_id]].append(note)
    return found, held_of_runs(owner_id, session_id, shown_at)


def written_by_review(owner_id: UUID, review_id: UUID) -> dict[str, Any] | None:
    """Return what a review wrote, for its toast, or None if it has no change set of this owner."""
    sets = ChangeSet.objects.filter(owner_id=owner_id, review_id=review_id, kind__in=_BY_REVIEW).order_by("id")
    if not sets:
        return None
    notes = [note for _, note in _notes(owner_id, sets)]
    return {"session_id": sets[0].session_id, "run_id": sets[0].run_id, "notes": notes}


def _notes(owner_id: UUID, sets: QuerySet[ChangeSet]) -> list[tuple[ChangeSet, dict[str, Any]]]:
    ids = [change_set.pk for change_set in sets]
    if not ids:
        return []
    revisions = (
        Revision.objects.filter(owner_id=owner_id, change_set_id__in=ids).select_related("memory").order_by("id")
    )
    grouped: dict[UUID, dict[UUID, list[Revision]]] = defaultdict(lambda: defaultdict(list))
    for revision in revisions:
        grouped[revision.change_set_id][revision.memory_id].append(revision)
    tips = undo_tips(owner_id, ids)
    return [
        (change_set, _note(change_set, list(grouped[change_set.pk].values()), *tips[change_set.pk]))
        for change_set in sets
        if grouped[change_set.pk]
    ]


def undo_tips(owner_id: UUID, ids: Sequence[UUID]) -> dict[UUID, tuple[ChangeSet | None, bool]]:
    """Return the newest undo or redo of each change set (None if it was never undone), and whether it is undone now."""
    tips: dict[UUID, tuple[ChangeSet | None, bool]] = dict.fromkeys(ids, (None, False))
    for root, step, depth in undo_steps(owner_id, ids):
        newest, _ = tips[root]
        if newest is None or step.pk > newest.pk:  # ids are in the order of time
            tips[root] = (step, depth % 2 == 1)
    return tips


def _note(change_set: ChangeSet, memories: list[list[Revision]], tip: ChangeSet | None, undone: bool) -> dict[str, Any]:
    """Return the note of a change set. Undoing `undo` reverts it, or restores it if `undone_at` is set. `decided`: a
    person approved the writes."""
    lines = [_line(revisions, undone) for revisions in memories]
    verbs = {_verb(revisions) for revisions in memories}
    verb = verbs.pop() if len(verbs) == 1 else "changed"
    title = f"Memory {verb}" if len(lines) == 1 else f"{len(lines)} memories {verb}"
    by_owner = tip is not None and tip.actor.startswith("user:")
    return {
        "title": title,
        "lines": lines,
        "undo": tip.pk if tip else change_set.pk,
        "review_id": change_set.review_id,
        "decided": change_set.kind == ChangeSet.Kind.APPROVAL,
        "undone_at": tip.created_at if tip and undone else None,
        "undone_by": ("you" if by_owner else "somebody else") if tip and undone else "",
    }


def _verb(revisions: list[Revision]) -> str:
    first, last = revisions[0], revisions[-1]
    if last.after.get("deleted_at"):
        return "deleted"
    return "saved" if first.before is None or first.before.get("deleted_at") else "updated"


def _line(revisions: list[Revision], undone: bool) -> dict[str, Any]:
    first, last, memory = revisions[0], revisions[-1], revisions[0].memory
    verb = _verb(revisions)
    after = str(last.after.get("content", ""))
    before = str((first.before or {}).get("content", ""))
    pieces = word_diff(before, after) if verb == "updated" and before != after else (Piece("same", after),)
    return {
        "number": memory.number,
        "pieces": pieces,
        "struck": verb == "deleted" or undone,
        "content": memory.content,
        "version": memory.version,
        "editable": memory.deleted_at is None and not undone,
    }
