"""memories_sweep: what can no longer be undone is purged, with the change sets that it leaves empty"""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from memories.models import ChangeSet, Memory, Owner, WriteOrigin
from memories.services import MemoryFields, Source, book_get_or_create, book_writing
from memories.sweep import memories_sweep
from tests.factories import memory_make

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
