"""The models of the memories app: owners, books, memories, and every change to them. Sessions, runs and reviews are
named by id only: imports go one way. Every owner-bound row carries owner_id itself, and its indexes begin with it, so
no look-up needs a join to be safe."""

from memories.models.audit import AppendOnlyError, AuditEntry
from memories.models.documents import Artifact, ArtifactRevision, ArtifactUsage, ClearCode, Lease
from memories.models.entries import ChangeSet, Memory, MemoryVector, Revision, Target, WriteOrigin
from memories.models.erasures import Erasure, Invalidation
from memories.models.evidence import EVIDENCE_COLUMNS, Evidence, EvidenceKind
from memories.models.owners import Book, BookLimits, Owner
from memories.models.records import Notification, ScanDay, ScanRenewal, ThreadRecord
