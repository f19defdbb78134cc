"""Revisions that were replaced more than REVISION_DAYS ago are deleted, with the change sets that are empty then."""

from datetime import datetime, timedelta
from uuid import UUID

import pytest
from django.utils import timezone
from pytest_django import Settings

from memories import sweep
from memories.artifacts.store import artifact_put
from memories.database.ageing import AgeScan
from memories.ids import first_id
from memories.models import ArtifactRevision, Book, ChangeSet, Memory, Owner, Revision, WriteOrigin
from memories.services import MemoryFields, Source, book_get_or_create, book_writing
from memories.sweep import memories_sweep
from tests.unsliced import undo_changes

pytestmark = pytest.mark.django_db
NOW = timezone.now()


@pytest.fixture(autouse=True)
def scans(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.REVISION_DAYS = 90
    monkeypatch.setattr(sweep, "_revision_scans", (AgeScan(), AgeScan()))


@pytest.fixture
def source(alice: Owner) -> Source:
    return Source(actor=f"user:{alice.user_id}", origin=WriteOrigin.USER, kind=ChangeSet.Kind.EDIT)


@pytest.fixture
def book(alice: Owner) -> Book:
    return book_get_or_create(alice.pk, "main")


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def written(book: Book, source: Source, days: list[float], *, first: str = "Version 1") -> Memory:
    """Return a memory with a version from so many days ago each, newest last."""
    with book_writing(book, source) as writer:
        memory = writer.add(MemoryFields(content=first)).memory
    for version in range(2, len(days) + 1):
        with book_writing(book, source) as writer:
            memory = writer.update(memory.number, MemoryFields(content=f"{first}, {version}")).memory
    for revision, age in zip(memory.revisions.order_by("version"), days, strict=True):
        age_of(revision, age)
    return memory


def age_of(revision: Revision | ArtifactRevision, days: float) -> None:
    """Let a revision be so many days old."""
    key = UUID(int=first_id(ago(days)).int + (revision.pk.int & 0xFFFFFFFF))
    type(revision)._base_manager.filter(pk=revision.pk).update(id=key, created_at=ago(days))


def versions(memory: Memory) -> list[int]:
    return list(memory.revisions.order_by("version").values_list("version", flat=True))


def test_by_default_all_versions_are_kept(book: Book, source: Source, settings: Settings) -> None:
    settings.REVISION_DAYS = 0
    memory = written(book, source, [4000, 3000, 2000])
    memories_sweep()
    assert versions(memory) == [1, 2, 3]


def test_the_history_of_the_time_since_stays_complete(book: Book, source: Source) -> None:
    memory = written(book, source, [400, 300, 200, 80, 10])
    other = written(book, source, [400], first="Another")
    memories_sweep()
    assert versions(memory) == [3, 4, 5], "version 3 was what it said 90 days ago"
    assert versions(other) == [1]
    assert ChangeSet.objects.count() == 4, "those without revisions are gone"
    assert set(Memory.objects.values_list("content", flat=True)) == {"Version 1, 5", "Another"}


def test_what_becomes_older_is_deleted_later(book: Book, source: Source) -> None:
    memory = written(book, source, [200, 80])
    memories_sweep()
    assert versions(memory) == [1, 2]
    age_of(memory.revisions.get(version=2), 91)
    memories_sweep()
    assert versions(memory) == [2]


def test_what_is_left_can_be_undone_and_restored(book: Book, source: Source) -> None:
    memory = written(book, source, [400, 300, 10])
    memories_sweep()
    assert versions(memory) == [2, 3]
    result = undo_changes(memory.revisions.get(version=3).change_set, source)
    assert result.undone == (memory.number,)
    memory.refresh_from_db()
    assert memory.content == "Version 1, 2"


def test_versions_of_documents_are_deleted_likewise(book: Book, source: Source) -> None:
    for text in ("One", "Two", "Three"):
        artifact_put(book, "MEMORY.md", text, source)
    for revision, days in zip(ArtifactRevision.objects.order_by("version"), (300, 200, 1), strict=True):
        age_of(revision, days)
    memories_sweep()
    assert list(ArtifactRevision.objects.order_by("version").values_list("version", flat=True)) == [2, 3]
    assert Revision.objects.count() == 0
