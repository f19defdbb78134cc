"""The arguments and the result of a write to a book."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memories.evidence import Hold
from memories.models import ChangeSet, Evidence, Memory, Revision, WriteOrigin


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
    """An accepted write. `changed` is False if nothing was stored, because the book already had this content."""

    memory: Memory
    revision: Revision | None
    changed: bool = True
