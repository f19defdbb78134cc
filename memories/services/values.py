"""The arguments and the result of a write."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memories.evidence import Hold
from memories.models import ChangeSet, Evidence, Memory, Revision, WriteOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The author of a write: the actor, the interface it came by, and the person it is for. `hold`: what of it waits
    for a person; what somebody writes by hand or has approved does not."""

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
    """What a person or a model may set. None leaves a field as it is (or at its default on an add)."""

    content: str | None = None
    target: str | None = None
    category: str | None = None
    keywords: Sequence[str] | None = None
    metadata: Mapping[str, str] | None = None  # all of it: keys that it lacks are removed
    pinned: bool | None = None
    expires_at: datetime | None = None
    clear_expiry: bool = False
    evidence: Evidence | None = None  # what the content rests on; None: the hand that writes it, if it is one


@dataclass(frozen=True, slots=True)
class WriteResult:
    """One accepted write. `changed` is False where the book already said so: nothing was stored then."""

    memory: Memory
    revision: Revision | None
    changed: bool = True
