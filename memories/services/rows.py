"""The arguments and the result of a write to a book, and the contents of the rows that it stores. No queries."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone

from memories.entry_rules import (
    clean_category,
    clean_content,
    clean_expiry,
    clean_keywords,
    clean_target,
    content_key,
    scanned_words,
    set_verdict,
)
from memories.evidence import Hold, Proposal
from memories.metadata import clean_metadata
from memories.models import Book, ChangeSet, Evidence, Memory, Revision, Target, WriteOrigin
from memories.verdicts import words_hash

_STATE = (
    "target", "category", "content", "keywords", "metadata", "pinned", "expires_at", "allowed_hash", "deleted_at",
)  # fmt: skip
_CLEANERS: dict[str, Callable[[Any], Any]] = {
    "content": clean_content,
    "target": clean_target,
    "category": clean_category,
    "keywords": clean_keywords,
    "metadata": clean_metadata,
    "pinned": bool,
}
_DEFAULTS: dict[str, Any] = {  # of a new memory
    "content": "", "target": Target.MEMORY, "category": "general", "keywords": (), "metadata": {},
}  # fmt: skip
_ADDED_FIELDS: dict[str, Any] = {"metadata": {}}  # fields that older revisions lack, with their values then


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The source of a write: its actor, interface and context. `hold` is the policy that decides which automatic writes
    wait for a person; it is OFF for writes by hand and approved ones."""

    actor: str
    origin: WriteOrigin
    kind: ChangeSet.Kind = ChangeSet.Kind.EDIT
    session_id: UUID | None = None
    run_id: UUID | None = None
    review_id: UUID | None = None
    undoes: UUID | None = None
    hold: Hold = Hold.OFF


@dataclass(slots=True, kw_only=True)
class MemoryFields:
    """The fields that a person or a model may set. None means unchanged, or the default for a new memory."""

    content: str | None = None
    target: str | None = None
    category: str | None = None
    keywords: Sequence[str] | None = None
    metadata: Mapping[str, str] | None = None  # replaces all metadata
    pinned: bool | None = None
    expires_at: datetime | None = None
    clear_expiry: bool = False
    evidence: Evidence | None = None  # for the content; None: derived from the source


@dataclass(frozen=True, slots=True)
class WriteResult:
    """An accepted write. There is no revision if nothing was stored, because the book already had this content."""

    memory: Memory
    revision: Revision | None = None

    @property
    def changed(self) -> bool:
        return self.revision is not None


def fields_cleaned(fields: MemoryFields) -> MemoryFields:
    """Return the fields of a new memory in their stored form, with defaults. Raises InvalidRequest, TooLarge."""
    cleaned = {name: _CLEANERS[name](getattr(fields, name) or default) for name, default in _DEFAULTS.items()}
    return replace(fields, **cleaned, expires_at=clean_expiry(fields.expires_at))


def evidence_of(source: Source, fields: MemoryFields) -> Evidence:
    """Return the evidence of a write: the given one, else what follows from its origin."""
    return fields.evidence or Evidence.of_origin(source.origin)


def memory_new(book: Book, source: Source, fields: MemoryFields, *, scan_hash: str) -> Memory:
    """Return an unsaved memory with cleaned fields, without its number."""
    now = timezone.now()
    memory = Memory(
        owner_id=book.owner_id,
        book=book,
        **{name: getattr(fields, name) for name in _DEFAULTS},
        content_key=content_key(str(fields.content)),
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
    """Return an unsaved revision that records the current state of a memory."""
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
    """Return the state of a memory that a revision stores, as JSON."""
    state = {name: getattr(memory, name) for name in _STATE}
    for name in ("expires_at", "deleted_at"):
        state[name] = state[name].isoformat() if state[name] else None
    state["keywords"], state["metadata"] = list(state["keywords"]), dict(state["metadata"])
    state["target"] = str(state["target"])
    return state


def stored_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state that a revision of any version stored, in the form that `memory_state` returns today."""
    return {**_ADDED_FIELDS, **state}


def fields_given(fields: MemoryFields) -> dict[str, Any]:
    """Return the fields that are set, cleaned. Raises InvalidRequest, TooLarge."""
    given = {name: getattr(fields, name) for name in _CLEANERS}
    wanted = {name: _CLEANERS[name](value) for name, value in given.items() if value is not None}
    if fields.expires_at is not None or fields.clear_expiry:
        wanted["expires_at"] = clean_expiry(fields.expires_at)
    return wanted


def memory_changes(memory: Memory, fields: MemoryFields) -> dict[str, Any]:
    """Return the cleaned fields whose values differ from the memory's. Raises InvalidRequest, TooLarge."""
    return {name: value for name, value in fields_given(fields).items() if getattr(memory, name) != value}


def memory_change(memory: Memory, changes: dict[str, Any], *, evidence: Evidence) -> None:
    """Apply changes to a memory, without saving it, and set its verdict. `evidence` belongs to the new content and is
    ignored if that does not change."""
    is_rescanned = words_hash(*scanned_words(memory)) != words_hash(*scanned_words(memory, changes))
    for name, value in changes.items():
        setattr(memory, name, value)
    if is_rescanned:
        memory.allowed_hash = ""  # any change of the texts revokes an administrator's permission
        set_verdict(memory)
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
    """Return a proposal for a held write: a new memory, or an update of `memory`, whose values are used for unset
    fields. `more` contains fields that only an import sets. Raises InvalidRequest, TooLarge."""
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
