"""What memory gave a run, for its admin page. Runs store memory numbers and reasons; revisions have the texts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import OuterRef, Subquery
from django.urls import reverse
from django.utils import timezone

from gateway.admin.visibility import Visibility
from gateway.agents.configuration import consolidation_settings_of
from gateway.agents.rows import agent_settings
from gateway.chat.labels import why_given
from gateway.models import Run
from gateway.sessions.ageing import details_have_expired
from memories.artifacts.paths import SUMMARY_PATH
from memories.ids import parse_uuid
from memories.models import ArtifactRevision, Memory, Revision
from memories.number_words import counted, memories
from memories.pagination import parse_number
from prompts.memory import MemoryLine, memory_block

_LANES = {
    "frozen": ("menu_book", "In the snapshot"),
    "long_term": ("search", "Found by search"),
    "short_term": ("history", "Said earlier"),
}
_PARTS = {
    "snapshot": "The snapshot",
    "guidance": "Memory Guidance",
    "thread": "Reading earlier messages",
    "short_term": "The search in earlier messages",
    "long_term": "The search in the book",
    "embedding": "The embedding of the question",
    "earlier_conversation": "The summary of the earlier conversation",
    "blocks": "Writing the recall message",
    "providers": "Another memory provider",
}


def given_to(run: Run, visible: Visibility) -> dict[str, Any]:
    """Return what a run was given. `lines` describe how the memories were found and what failed; a memory's `words` are
    those of that time, left out if the viewer may not see them or they were erased. At most four queries."""
    items = [item for item in run.recalled if isinstance(item, dict)]
    numbers = [number for item in items if (number := parse_number(str(item.get("memory_id")))) is not None]
    revisions = _as_of(run, numbers) if numbers and visible.memories else {}
    memories = [_memory(item, revisions, visible) for item in items if not item.get("turn_id")]
    snapshot = _snapshot(items, revisions) if visible.memories else None
    texts = [text for text in (_instructions(run), _summary(run, visible), snapshot) if text]
    return {"lines": [*_lines(run)], "texts": texts, "memories": memories, "turns": _turns(run, items)}


def recall_trace(run: Run) -> Mapping[str, Any]:
    """Return the `recall` entry of the run's trace, as written by gateway.turns.injection."""
    entry: Mapping[str, Any] = run.trace.get("recall", {})
    return entry


def _as_of(run: Run, numbers: Sequence[int]) -> dict[str, Revision]:
    """Return the revisions that were current when the run opened, by memory number as text. Two queries."""
    newest = Revision.objects.filter(memory=OuterRef("pk"), created_at__lte=run.started_at).order_by("-version")
    memories = Memory.objects.filter(owner_id=run.owner_id, number__in=numbers)
    ids = memories.annotate(revision=Subquery(newest.values("pk")[:1])).values_list("number", "revision")
    by_revision = {revision: str(number) for number, revision in ids if revision}
    rows = Revision.objects.filter(owner_id=run.owner_id, pk__in=by_revision)
    return {by_revision[revision.pk]: revision for revision in rows}


def _memory(item: Mapping[str, Any], revisions: Mapping[str, Revision], visible: Visibility) -> dict[str, Any]:
    number = str(item.get("memory_id") or "")
    icon, how = _LANES.get(str(item.get("lane", "")), ("help", "Given"))
    details: dict[str, Any] = {"number": number, "icon": icon, "how": how, "why": why_given(item, words=visible.words)}
    if not number:
        return {**details, "note": "An entry from another memory provider; its text is not stored."}
    if not visible.memories:
        return details
    revision = revisions.get(number)
    if revision is None:
        return {**details, "note": "This memory has been erased since."}
    return {
        **details,
        "words": str(revision.after.get("content", "")),
        "url": reverse("admin:memories_memory_change", args=[revision.memory_id]),
        "version": revision.version,
        "revision_url": reverse("admin:memories_revision_change", args=[revision.pk]),
    }


def _instructions(run: Run) -> dict[str, Any] | None:
    """Return the agent's instructions: those of the run while it waits for its client, else the current ones."""
    agent = run.session.agent
    if run.injected is not None:
        text, note = str(run.injected.get("instructions", "")), "as this run was given them."
    else:
        version = recall_trace(run).get("snapshot", {}).get("agent_version")
        unchanged = version is None or version == agent.version
        text = agent_settings(agent).instructions
        note = "the current ones" + ("." if unchanged else "; the settings have been changed since.")
    title = "The agent's instructions"
    return {"title": title, "text": text, "note": note} if text else None


def _summary(run: Run, visible: Visibility) -> dict[str, Any] | None:
    """Return Memory Guidance, the book's summary at that time. At most one query."""
    guidance = str((run.injected or {}).get("guidance", ""))
    if guidance and visible.documents:
        return {"title": "Memory Guidance", "text": guidance, "note": "as this run was given it."}
    enabled = consolidation_settings_of(run.session.agent).enabled and "snapshot" in recall_trace(run)
    if not enabled or not visible.documents:
        return None
    rows = ArtifactRevision.objects.filter(
        owner_id=run.owner_id,
        artifact__owner_id=run.owner_id,
        artifact__book__name=run.session.agent.book,
        artifact__path=SUMMARY_PATH,
        created_at__lte=run.started_at,
    )
    revision = rows.order_by("-version").first()
    text = str(revision.after.get("content", "")) if revision else ""
    if revision is None or not text or revision.after.get("deleted_at"):
        return None
    return {
        "title": "Memory Guidance",
        "text": text,
        "note": f"from version {revision.version} of {SUMMARY_PATH}, cut to the limit of the settings.",
        "url": reverse("admin:memories_artifact_change", args=[revision.artifact_id]),
    }


def _snapshot(items: Sequence[Mapping[str, Any]], revisions: Mapping[str, Revision]) -> dict[str, Any] | None:
    """Return the frozen block, rebuilt from the revisions of that time."""
    frozen = [str(item.get("memory_id")) for item in items if item.get("lane") == "frozen"]
    if not frozen:
        return None
    states = [(int(number), revisions[number].after) for number in frozen if number in revisions]
    lines = [
        MemoryLine(number=number, category=str(after.get("category", "")), content=str(after.get("content", "")))
        for number, after in states
    ]
    gone = len(frozen) - len(lines)
    note = f"without {gone} that {'has' if gone == 1 else 'have'} been erased since." if gone else ""
    return {"title": "Snapshot", "text": memory_block(lines), "note": note or "as it was in the system message."}


def _turns(run: Run, items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the earlier turns from which passages were given, with links."""
    ids: list[UUID] = [found for item in items if (found := parse_uuid(item.get("turn_id")))]
    rows = Run.objects.filter(owner_id=run.owner_id, pk__in=ids).order_by("turn").values_list("pk", "turn")
    return [{"turn": turn, "url": reverse("admin:gateway_run_change", args=[pk])} for pk, turn in rows]


def _lines(run: Run) -> Iterator[str]:
    trace = recall_trace(run)
    if run.temporary:
        yield "A temporary turn: no memory was read and none is kept."
    elif not run.recalled and (line := _no_items(run)):
        yield line
    if isinstance(snapshot := trace.get("snapshot"), dict) and "generation" in snapshot:
        count = memories(snapshot["frozen"])
        yield f"The snapshot was from generation {snapshot['generation']} of the book, with {count}."
    for name, part in trace.items():
        if not isinstance(part, dict):
            continue
        part_name = _PARTS.get(name, name)
        if part.get("state") == "failed":
            yield f"{part_name} failed ({part.get('kind', 'unknown')}); the turn continued without it."
        elif part.get("state") == "timeout":
            yield f"{part_name} took too long; the turn continued without it."
        elif name == "keywords":
            yield _keywords(part)
        elif part.get("state") == "ok":
            yield f"{part_name} found {part.get('found', 0)} in {part.get('ms', 0)} ms."


def _no_items(run: Run) -> str:
    """Return why a run has no list of memories; "" if its trace says so."""
    if not recall_trace(run):
        return "No memory was given."
    if details_have_expired(run, timezone.now()):
        return f"Which memories it was given was deleted after {counted(settings.RUN_DETAIL_DAYS, 'day')}."
    return ""


def _keywords(part: Mapping[str, Any]) -> str:
    if part.get("skipped"):
        return "No keywords were requested: there was nothing to search."
    if fallback := part.get("fallback"):
        return f"Keywords from a model failed ({fallback}); they were found by rule."
    found = int(part.get("found", 0))
    if not found:
        return "A model found that no memory could be relevant."
    return f"A model suggested {counted(found, 'keyword')}."
