"""The tools that write: their arguments, and their handlers, which call memories.services.
A refusal is a result that the model can act on, never an exception."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, NotRequired
from uuid import UUID

from django.db import transaction
from pydantic import Field
from typing_extensions import TypedDict

from memories.errors import DomainError, OverBudget
from memories.evidence import Proposal, WriteHeld, evidence_for
from memories.limits import MAX_NUMBER
from memories.models import ChangeSet, Memory, Revision, Target, WriteOrigin
from memories.pagination import parse_number
from memories.selectors import blocked_condition, live_in
from memories.services import BookWriter, Budgets, MemoryFields, WriteResult, proposal_of
from memories.services.books import NEARLY_FULL
from memories.tools.tool import Arguments, BoundedKeywords, BoundedQuote, Stage, Tool, ToolRun, Words, failure

HELD = "{reason} It waits until the person has decided about it. Do not try again; go on."
_MAX_CHANGES = 50
HELD_PER_TURN = 20
"""Writes of one turn that a person is asked about. A model that repeats itself makes a hundred in each step."""
TOO_MANY_HELD = (
    f"Not saved: {HELD_PER_TURN} writes of this turn wait for the person's decision already. Do not try again; go on."
)
_KEYWORDS = (
    "6 to 12 words a future message might use when this matters and that are not in the content: synonyms, the topic, "
    "occasions, other languages."
)
_EVIDENCE = "The words in this conversation that say so, copied exactly; the person's own wherever there are any."
_STAGES = frozenset({Stage.MEMORY, Stage.REVIEW, Stage.MCP})


class AddMemory(Arguments):
    content: str = Field(
        description="One short statement in the third person and the person's language, with exact names and figures."
    )
    target: Literal["user", "memory"] = Field(
        "memory",
        description="user: about the person. memory: about their environment, tools, conventions and procedures.",
    )
    category: str = Field("general", description="One or two words, such as preference, fact, correction, procedure.")
    keywords: BoundedKeywords = Field(default_factory=list, description=_KEYWORDS)
    evidence: BoundedQuote = Field("", description=_EVIDENCE)


class UpdateMemory(Arguments):
    id: int | str = Field(description="The id of the memory.")
    content: str = Field(description="The whole new statement, in the person's language.")
    category: str | None = Field(None, description="Only if it changes.")
    keywords: BoundedKeywords | None = Field(None, description=_KEYWORDS)
    evidence: BoundedQuote = Field("", description=_EVIDENCE)


class DeleteMemory(Arguments):
    id: int | str = Field(description="The id of the memory.")


class Written(TypedDict):
    ok: Literal[True]
    id: Annotated[int, Field(description="The id of the memory.")]
    note: NotRequired[Annotated[str, Field(description="There when nothing had to be changed.")]]
    warning: NotRequired[Annotated[str, Field(description="There when the book is nearly full.")]]


def memory_number(value: int | str) -> int:
    """Return the number that a model gave as an id, or -1, which no memory has, for anything else."""
    if isinstance(value, str):
        found = parse_number(value.strip().lstrip("#"))
        return -1 if found is None else found
    return value if 0 <= value <= MAX_NUMBER else -1


def change_json(revision: Revision) -> dict[str, Any]:
    """Return the JSON representation of a change for turns and reviews."""
    before = revision.before or {}
    return {
        "action": revision.action,
        "memory_id": str(revision.memory.number),
        "before": before.get("content"),
        "after": None if revision.after.get("deleted_at") else revision.after.get("content"),
        "target": revision.after.get("target"),
        "category": revision.after.get("category"),
        "change_set": str(revision.change_set_id),
    }


def changes_of_run(owner_id: UUID, run_id: UUID) -> list[dict[str, Any]]:
    """Return the changes by a run's memory tools, in order, as `change_json`. One query."""
    of_run = Revision.objects.filter(owner_id=owner_id, change_set__run_id=run_id, change_set__kind=ChangeSet.Kind.TOOL)
    revisions = of_run.select_related("memory")
    return [change_json(revision) for revision in revisions.order_by("id")]


def _save(run: ToolRun, arguments: AddMemory | UpdateMemory) -> dict[str, Any]:
    """Store a new memory, or change the one that the arguments name."""
    writer, scope = run.writing, run.scope
    fields = MemoryFields(**arguments.model_dump(exclude={"id", "evidence"}))
    number = memory_number(arguments.id) if isinstance(arguments, UpdateMemory) else None

    def write() -> WriteResult:
        fields.evidence = evidence_for(
            scope.conversation,
            arguments.content,
            arguments.evidence,
            previous="" if number is None else _before_session(run, writer.memory(number)),
            category=arguments.category or "",
            hold=scope.hold,
        )
        return writer.add(fields) if number is None else writer.update(number, fields)

    def propose(held: WriteHeld) -> Proposal:
        memory = None if number is None else writer.memory(number)
        return proposal_of(writer.source, fields, memory, rule=held.details["rule"], reason=str(held))

    return _written(run, write, propose)


def _delete(run: ToolRun, arguments: DeleteMemory) -> dict[str, Any]:
    return _written(run, lambda: run.writing.delete(memory_number(arguments.id)))


def _before_session(run: ToolRun, memory: Memory) -> str:
    """Return a memory's content before models changed it in this session, if a memory may come from foreign text there:
    a page may plant its words a few at a time. What a person wrote or approved meanwhile counts, unlike search keywords
    that the background job added. One query."""
    if run.scope.conversation is None or not run.scope.conversation.compared:
        return memory.content
    content = memory.content
    changes = Revision.objects.filter(memory=memory).exclude(write_origin=WriteOrigin.SYSTEM)
    for change in changes.select_related("change_set").order_by("-version")[:_MAX_CHANGES]:
        by_model = change.change_set.kind in {ChangeSet.Kind.TOOL, ChangeSet.Kind.REVIEW}
        if not by_model or change.change_set.session_id != run.scope.session_id:
            break
        content = str((change.before or {}).get("content", ""))
    return content


def _written(
    run: ToolRun, write: Callable[[], WriteResult], propose: Callable[[WriteHeld], Proposal] | None = None
) -> dict[str, Any]:
    """Run a write and return its result. Changes are added to the step, and a held write as a proposal."""
    try:
        with transaction.atomic():  # a refused write does not affect the others of a batch
            written = write()
    except WriteHeld as held:
        assert propose is not None  # a deletion is never held
        if run.scope.held + len(run.held.proposals) >= HELD_PER_TURN:
            return failure("too_many_held", TOO_MANY_HELD)
        return failure(held.code, HELD.format(reason=held), proposal_id=run.held.add(propose(held)), **held.details)
    except DomainError as error:
        return _refusal(error, run.writing)
    if written.revision is not None:
        run.step.changes.append(change_json(written.revision))
    return _success(written, run.writing)


def _success(written: WriteResult, writer: BookWriter) -> dict[str, Any]:
    """Return the result of an accepted write, with a warning if the book is nearly full."""
    result: dict[str, Any] = {"ok": True, "id": written.memory.number}
    if not written.changed:
        result["note"] = "Already known; nothing was stored twice."
    target = written.memory.target
    budgets = Budgets.of(writer.book, writer.book.name)
    return result | fullness(target, limit=budgets.limits[Target(target)], used=budgets.used.get(target, 0))


def fullness(target: str, *, limit: int, used: int) -> dict[str, str]:
    """Return the warning of a result if the book is nearly full; `limit` is in characters, 0 = none."""
    if not limit or used < NEARLY_FULL * limit:
        return {}
    return {"warning": f"{target} holds {used} of {limit} characters. Merge or drop entries soon."}


def _refusal(error: DomainError, writer: BookWriter) -> dict[str, Any]:
    """Return the result of a refused write. Over budget it includes the current entries, so that the model can merge or
    delete some in this turn. Blocked ones are shown to no model."""
    result = failure(error.code, str(error), **error.details)
    if isinstance(error, OverBudget):
        rows = live_in(writer.book).filter(~blocked_condition(), target=error.details["target"]).order_by("number")
        result["entries"] = [{"id": row.number, "content": row.content} for row in rows]
    return result


ADD_MEMORY = Tool(
    name="add_memory",
    title="Remember",
    description=(
        "Remember one lasting fact, preference or convention. Not for passing states, tasks in progress or secrets."
    ),
    arguments=AddMemory,
    handler=_save,
    result=Written,
    stages=_STAGES,
    writes=True,
    words=Words("Writing a memory…", "Wrote a memory."),
)
UPDATE_MEMORY = Tool(
    name="update_memory",
    title="Correct a memory",
    description="Correct or complete a memory; prefer this to adding one that says nearly the same or the contrary.",
    arguments=UpdateMemory,
    handler=_save,
    result=Written,
    stages=_STAGES,
    writes=True,
    destructive=True,
    words=Words("Correcting a memory…", "Corrected a memory."),
)
DELETE_MEMORY = Tool(
    name="delete_memory",
    title="Forget a memory",
    description="Forget a memory that is wrong, outdated, or that the person asked to forget.",
    arguments=DeleteMemory,
    handler=_delete,
    result=Written,
    stages=_STAGES,
    writes=True,
    destructive=True,
    words=Words("Deleting a memory…", "Deleted a memory."),
)
