"""What the rows of a write hold, whether one is written or many. Nothing here asks the database."""

from collections.abc import Callable, Mapping
from typing import Any

from django.utils import timezone

from memories.entry_rules import (
    clean_category,
    clean_content,
    clean_expiry,
    clean_keywords,
    clean_target,
    content_key,
)
from memories.evidence import Proposal
from memories.metadata import clean_metadata
from memories.models import Book, ChangeSet, Evidence, Memory, Revision, Target
from memories.services.values import MemoryFields, Source

_STATE = (
    "target", "category", "content", "keywords", "metadata", "pinned", "expires_at", "allowed_hash", "deleted_at",
)  # fmt: skip
_CLEAN: dict[str, Callable[[Any], Any]] = {
    "content": clean_content,
    "target": clean_target,
    "category": clean_category,
    "keywords": clean_keywords,
    "metadata": clean_metadata,
    "pinned": bool,
}
_LATER: dict[str, Any] = {"metadata": {}}  # what the states of older revisions lack, as it was then


def fields_cleaned(fields: MemoryFields) -> MemoryFields:
    """Return the fields of a new memory as they are stored. Raises InvalidRequest, TooLarge."""
    return MemoryFields(
        content=clean_content(fields.content or ""),
        target=clean_target(fields.target or Target.MEMORY),
        category=clean_category(fields.category or "general"),
        keywords=clean_keywords(fields.keywords or ()),
        metadata=clean_metadata(fields.metadata or {}),
        pinned=fields.pinned,
        expires_at=clean_expiry(fields.expires_at),
        evidence=fields.evidence,
    )


def evidence_of(source: Source, fields: MemoryFields) -> Evidence:
    """Return what the content of a write rests on: what it says itself, else the hand that writes it."""
    return fields.evidence or Evidence.of_origin(source.origin)


def memory_new(book: Book, source: Source, fields: MemoryFields, *, scan_hash: str) -> Memory:
    """Return a new memory of cleaned fields, without its number."""
    now = timezone.now()
    memory = Memory(
        owner_id=book.owner_id,
        book=book,
        target=str(fields.target),
        category=str(fields.category),
        content=str(fields.content),
        content_key=content_key(str(fields.content)),
        keywords=list(fields.keywords or ()),
        metadata=dict(fields.metadata or {}),
        write_origin=source.origin,
        pinned=bool(fields.pinned),
        expires_at=fields.expires_at,
        session_id=source.session_id,
        run_id=source.run_id,
        review_id=source.review_id,
        scan_hash=scan_hash,
        content_changed_at=now,
        created_at=now,
        updated_at=now,
    )
    memory.evidence = evidence_of(source, fields)
    return memory


def revision_new(
    memory: Memory, action: Revision.Action, *, before: dict[str, Any] | None, change_set: ChangeSet, source: Source
) -> Revision:
    """Return the record of what became of a memory."""
    revision = Revision(
        owner_id=memory.owner_id,
        memory=memory,
        change_set=change_set,
        version=memory.version,
        action=action,
        before=before,
        after=memory_state(memory),
        actor=source.actor,
        write_origin=source.origin,
    )
    revision.evidence = memory.evidence
    return revision


def memory_state(memory: Memory) -> dict[str, Any]:
    """Return what a revision keeps of a memory, as JSON."""
    state = {name: getattr(memory, name) for name in _STATE}
    for name in ("expires_at", "deleted_at"):
        state[name] = state[name].isoformat() if state[name] else None
    state["keywords"], state["metadata"] = list(state["keywords"]), dict(state["metadata"])
    state["target"] = str(state["target"])
    return state


def stored_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a revision kept of a memory, of whichever version, as `memory_state` would return it today."""
    return {**_LATER, **state}


def fields_given(fields: MemoryFields) -> dict[str, Any]:
    """Return those of the fields that are given, cleaned. Raises InvalidRequest, TooLarge."""
    given = {name: getattr(fields, name) for name in _CLEAN}
    wanted = {name: _CLEAN[name](value) for name, value in given.items() if value is not None}
    if fields.expires_at is not None or fields.clear_expiry:
        wanted["expires_at"] = clean_expiry(fields.expires_at)
    return wanted


def memory_changes(memory: Memory, fields: MemoryFields) -> dict[str, Any]:
    """Return what of the fields is different from the memory, cleaned. Raises InvalidRequest, TooLarge."""
    return {name: value for name, value in fields_given(fields).items() if getattr(memory, name) != value}


def words_change(changes: dict[str, Any]) -> bool:
    """Return True if these changes want a new scan."""
    return not {"content", "keywords", "metadata"}.isdisjoint(changes)


def memory_change(memory: Memory, changes: dict[str, Any], *, scan_hash: str, evidence: Evidence) -> None:
    """Make these changes to a row. `scan_hash` is of its words as they will be, and `evidence` what they rest on, where
    they change."""
    for name, value in changes.items():
        setattr(memory, name, value)
    if words_change(changes):
        # Any change of the words drops an administrator's allowance.
        memory.scan_hash = scan_hash
        memory.scan_rule = memory.scan_reason = memory.allowed_hash = ""
    if "content" in changes:
        memory.content_key, memory.content_changed_at = content_key(memory.content), timezone.now()
        memory.evidence = evidence


def proposal_of(
    source: Source,
    fields: MemoryFields,
    memory: Memory | None,
    *,
    rule: str,
    reason: str,
    more: Mapping[str, Any] | None = None,
) -> Proposal:
    """Return a held write of these fields: of a new memory, or an update of `memory`, whose values stand for those that
    the fields lack. `more` are fields that only an import sets. Raises InvalidRequest, TooLarge."""
    return Proposal(
        action="update" if memory else "add",
        number=memory.number if memory else None,
        version=memory.version if memory else None,
        target=str(fields.target or (memory.target if memory else Target.MEMORY)),
        category=clean_category(fields.category or (memory.category if memory else "general")),
        keywords=memory.keywords if memory and fields.keywords is None else clean_keywords(fields.keywords or ()),
        before=memory.content if memory else None,
        after=clean_content(fields.content or ""),
        more=more or {},
        evidence=evidence_of(source, fields),
        rule=rule,
        reason=reason,
    )
