"""memories_sweep: what can no longer be undone is purged, with the change sets that it leaves empty"""

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
from tests.factories import memory_make
from tests.unsliced import undo_changes

pytestmark = pytest.mark.django_db


def deleted(memory: Memory, days: int) -> None:
    Memory.objects.filter(pk=memory.pk).update(deleted_at=timezone.now() - timedelta(days=days))


def test_change_sets_go_with_the_last_memory_they_changed(alice: Owner, settings: Settings) -> None:
    settings.UNDO_DAYS = 30
    old, recent, kept = memory_make(alice, "Likes tea."), memory_make(alice, "Has a cat."), memory_make(alice, "Sails.")
    deleted(old, 31)
    deleted(recent, 29)
    memories_sweep()
    assert set(Memory.objects.all()) == {recent, kept}
    assert set(ChangeSet.objects.filter(owner=alice)) == set(
        ChangeSet.objects.filter(revisions__memory__in=[recent, kept])
    )
    assert ChangeSet.objects.count() == 2


def test_a_change_set_stays_while_one_of_its_memories_does(alice: Owner, settings: Settings) -> None:
    settings.UNDO_DAYS = 30
    source = Source(actor=f"user:{alice.user_id}", origin=WriteOrigin.USER, kind=ChangeSet.Kind.IMPORT)
    with book_writing(book_get_or_create(alice.pk, "main"), source) as writer:
        gone, stays = (writer.add(MemoryFields(content=text)).memory for text in ("Likes tea.", "Has a cat."))
    deleted(gone, 31)
    memories_sweep()
    assert set(Memory.objects.all()) == {stays}
    assert ChangeSet.objects.get().kind == ChangeSet.Kind.IMPORT
    deleted(stays, 31)
    memories_sweep()
    assert not ChangeSet.objects.exists()


def test_what_somebody_restores_while_it_is_purged_stays(alice: Owner, settings: Settings) -> None:
    settings.UNDO_DAYS = 30
    gone, restored = memory_make(alice, "Likes tea."), memory_make(alice, "Has a cat.")
    deleted(gone, 31)
    deleted(restored, 31)
    found: list[int] = []

    def restoring(execute: Any, sql: str, *arguments: Any) -> Any:
        if found == [1]:  # the statement after the one that found them
            found.append(2)
            Memory.objects.filter(pk=restored.pk).update(deleted_at=None)
        elif sql.startswith("SELECT") and '"memories_memory"."deleted_at" <' in sql and not found:
            found.append(1)
        return execute(sql, *arguments)

    with connection.execute_wrapper(restoring):
        memories_sweep()
    assert found == [1, 2]
    assert set(Memory.objects.all()) == {restored}
    assert ChangeSet.objects.filter(revisions__memory=restored).exists()


def expired(owner: Owner, content: str = "On holiday until Monday.") -> Memory:
    """A memory whose time is over by now."""
    memory = memory_make(owner, content, expires_at=timezone.now() + timedelta(hours=1))
    Memory.objects.filter(pk=memory.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    return memory


def test_what_has_expired_becomes_a_tombstone_that_says_so(alice: Owner, bob: Owner) -> None:
    memory, kept, bobs = expired(alice), memory_make(alice, "Sails."), expired(bob)
    generation = memory.book.generation
    memories_sweep()
    assert list(Memory.objects.filter(deleted_at__isnull=True)) == [kept]
    assert set(Memory.objects.filter(deleted_at__isnull=False)) == {memory, bobs}
    revision = memory.revisions.latest("version")
    assert (revision.action, revision.actor, revision.write_origin) == ("expire", "system", "system")
    assert revision.change_set.kind == ChangeSet.Kind.SYSTEM
    assert Book.objects.get(owner=alice).generation > generation
    assert Notification.objects.filter(owner=alice).latest("id").memory_numbers == [memory.number]
    changes = ChangeSet.objects.count()
    memories_sweep()
    assert ChangeSet.objects.count() == changes


def test_what_has_expired_goes_for_good_with_other_tombstones(alice: Owner, settings: Settings) -> None:
    memory = expired(alice)
    memories_sweep()
    deleted(memory, settings.UNDO_DAYS + 1)
    memories_sweep()
    assert not Memory.objects.exists()
    assert not ChangeSet.objects.filter(owner=alice).exists()


def test_a_person_who_puts_it_back_keeps_it(alice: Owner) -> None:
    memory = expired(alice)
    memories_sweep()
    change_set = memory.revisions.latest("version").change_set
    undo_changes(change_set, Source(actor=f"user:{alice.user_id}", origin=WriteOrigin.USER, kind=ChangeSet.Kind.UNDO))
    memories_sweep()
    memory.refresh_from_db()
    assert (memory.deleted_at, memory.expires_at) == (None, None)


def test_a_time_that_is_over_is_not_given_back(alice: Owner) -> None:
    """An undo that would change nothing else says so, and makes no change."""
    memory = memory_make(alice, "On holiday until Monday.", expires_at=timezone.now() + timedelta(hours=1))
    source = Source(actor=f"user:{alice.user_id}", origin=WriteOrigin.USER)
    with book_writing(memory.book, source) as writer:
        written = writer.update(memory.number, MemoryFields(clear_expiry=True)).revision
    assert written
    with time_machine.travel(timezone.now() + timedelta(hours=2)):
        undone = undo_changes(written.change_set, replace(source, kind=ChangeSet.Kind.UNDO))
    assert (undone.change_set, undone.undone, undone.skipped) == (None, (), ())


def test_many_go_a_few_at_a_time(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "_ROWS", 2)
    for number in range(5):
        expired(alice, f"Until Monday {number}.")
    assert [expired_delete() for _ in range(4)] == [2, 2, 1, 0]


def test_the_page_says_that_it_expired(alice: Owner, client: Client) -> None:
    expired(alice)
    memories_sweep()
    client.force_login(alice.user)
    page = client.get("/memories/?deleted=1").content.decode()
    assert "Expired today, kept until" in page
