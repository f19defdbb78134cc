"""memories_sweep: memories that can no longer be restored are purged, together with empty change sets"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from memories import sweep
from memories.models import Book, ChangeSet, Memory, Notification, Owner, WriteOrigin
from memories.services import MemoryFields, Source, book_get_or_create, book_writing
from memories.sweep import expired_delete, memories_sweep
from tests.factories import expired_make, memory_make
from tests.unsliced import undo_changes

pytestmark = pytest.mark.django_db


def mark_deleted(memory: Memory, days: int) -> None:
    Memory.objects.filter(pk=memory.pk).update(deleted_at=timezone.now() - timedelta(days=days))


def test_change_sets_are_purged_with_their_last_memory(alice: Owner, settings: Settings) -> None:
    settings.UNDO_DAYS = 30
    old, recent, live = memory_make(alice, "Likes tea."), memory_make(alice, "Has a cat."), memory_make(alice, "Sails.")
    mark_deleted(old, 31)
    mark_deleted(recent, 29)
    memories_sweep()
    assert set(Memory.objects.all()) == {recent, live}
    assert set(ChangeSet.objects.filter(owner=alice)) == set(
        ChangeSet.objects.filter(revisions__memory__in=[recent, live])
    )
    assert ChangeSet.objects.count() == 2


def test_a_change_set_is_kept_while_it_has_a_memory(alice: Owner, settings: Settings) -> None:
    settings.UNDO_DAYS = 30
    source = Source(actor=f"user:{alice.user_id}", origin=WriteOrigin.USER, kind=ChangeSet.Kind.IMPORT)
    with book_writing(book_get_or_create(alice.pk, "main"), source) as writer:
        purged, remaining = (writer.add(MemoryFields(content=text)).memory for text in ("Likes tea.", "Has a cat."))
    mark_deleted(purged, 31)
    memories_sweep()
    assert set(Memory.objects.all()) == {remaining}
    assert ChangeSet.objects.get().kind == ChangeSet.Kind.IMPORT
    mark_deleted(remaining, 31)
    memories_sweep()
    assert not ChangeSet.objects.exists()


def test_a_memory_restored_during_the_purge_is_kept(alice: Owner, settings: Settings) -> None:
    settings.UNDO_DAYS = 30
    purged, restored = memory_make(alice, "Likes tea."), memory_make(alice, "Has a cat.")
    mark_deleted(purged, 31)
    mark_deleted(restored, 31)
    found: list[int] = []

    def restore_meanwhile(execute: Any, sql: str, *arguments: Any) -> Any:
        if found == [1]:  # the query after the one that found the memories
            found.append(2)
            Memory.objects.filter(pk=restored.pk).update(deleted_at=None)
        elif sql.startswith("SELECT") and '"memories_memory"."deleted_at" <' in sql and not found:
            found.append(1)
        return execute(sql, *arguments)

    with connection.execute_wrapper(restore_meanwhile):
        memories_sweep()
    assert found == [1, 2]
    assert set(Memory.objects.all()) == {restored}
    assert ChangeSet.objects.filter(revisions__memory=restored).exists()


def test_an_expired_memory_becomes_a_tombstone_with_a_revision(alice: Owner, bob: Owner) -> None:
    memory, live, bobs = expired_make(alice), memory_make(alice, "Sails."), expired_make(bob)
    generation = memory.book.generation
    memories_sweep()
    assert list(Memory.objects.filter(deleted_at__isnull=True)) == [live]
    assert set(Memory.objects.filter(deleted_at__isnull=False)) == {memory, bobs}
    revision = memory.revisions.latest("version")
    assert (revision.action, revision.actor, revision.write_origin) == ("expire", "system", "system")
    assert revision.change_set.kind == ChangeSet.Kind.SYSTEM
    assert Book.objects.get(owner=alice).generation > generation
    assert Notification.objects.filter(owner=alice).latest("id").memory_numbers == [memory.number]
    changes = ChangeSet.objects.count()
    memories_sweep()
    assert ChangeSet.objects.count() == changes


def test_an_expired_memory_is_purged_like_other_tombstones(alice: Owner, settings: Settings) -> None:
    memory = expired_make(alice)
    memories_sweep()
    mark_deleted(memory, settings.UNDO_DAYS + 1)
    memories_sweep()
    assert not Memory.objects.exists()
    assert not ChangeSet.objects.filter(owner=alice).exists()


def test_a_restored_memory_does_not_expire_again(alice: Owner) -> None:
    memory = expired_make(alice)
    memories_sweep()
    change_set = memory.revisions.latest("version").change_set
    undo_changes(change_set, Source(actor=f"user:{alice.user_id}", origin=WriteOrigin.USER, kind=ChangeSet.Kind.UNDO))
    memories_sweep()
    memory.refresh_from_db()
    assert (memory.deleted_at, memory.expires_at) == (None, None)


def test_undo_does_not_restore_an_expiry_in_the_past(alice: Owner) -> None:
    """An undo that would change nothing else makes no change set."""
    memory = memory_make(alice, "On holiday until Monday.", expires_at=timezone.now() + timedelta(hours=1))
    source = Source(actor=f"user:{alice.user_id}", origin=WriteOrigin.USER)
    with book_writing(memory.book, source) as writer:
        written = writer.update(memory.number, MemoryFields(clear_expiry=True)).revision
    assert written
    with time_machine.travel(timezone.now() + timedelta(hours=2)):
        undone = undo_changes(written.change_set, replace(source, kind=ChangeSet.Kind.UNDO))
    assert (undone.change_set, undone.undone, undone.skipped) == (None, (), ())


def test_expired_memories_are_deleted_in_batches(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "_ROWS", 2)
    for number in range(5):
        expired_make(alice, f"Until Monday {number}.")
    assert [expired_delete() for _ in range(4)] == [2, 2, 1, 0]


def test_the_page_shows_that_a_memory_expired(alice: Owner, client: Client) -> None:
    expired_make(alice)
    memories_sweep()
    client.force_login(alice.user)
    page = client.get("/memories/?deleted=1").content.decode()
    assert "Expired today, kept until" in page
