"""The models of the memories app: owners, books, memories, and every change to them. Sessions, runs and reviews are
referenced by id only, since imports go one way. Every owner-bound table has an owner_id, with which its indexes begin,
so that queries can filter by owner without a join."""

from memories.models.audit import AppendOnlyError, AuditEntry
from memories.models.documents import Artifact, ArtifactRevision, ArtifactUsage, ClearCode, Lease
from memories.models.entries import ChangeSet, Memory, MemoryVector, Revision, Target, WriteOrigin
from memories.models.erasures import Erasure, Invalidation
from memories.models.evidence import EVIDENCE_COLUMNS, Evidence, EvidenceKind
from memories.models.owners import Book, BookLimits, Owner
from memories.models.records import Notification, ScanDay, ScanRenewal, ThreadRecord
