"""memories.messaging.invalidation: what was forgotten elsewhere leaves the caches of this process, and nothing
else does."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from gateway.models import Session
from gateway.services import session_delete, session_end
from memories.books import book_state
from memories.messaging import invalidation
from memories.messaging.invalidation import Forgotten, Kind, Watcher
from memories.models import Book, Invalidation, Memory, Owner, WriteOrigin
from memories.recall.book_views import BookState, BookView, load_view
from memories.recall.snapshot import SessionSnapshot, snapshots
from memories.recall.threads import thread_cache
from memories.services import Source, book_writing
from memories.sweep import memories_sweep
from search.analysis import PROCESS_CACHE
from search.query import message_of
from tests.factories import memory_make
from tests.unsliced import forget_memories

pytestmark = pytest.mark.django_db


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[Forgotten]:
    """What a cache of another process is told."""
    told: list[Forgotten] = []
    monkeypatch.setattr(invalidation, "_caches", [invalidation._Cache(forget=told.append)])
    return told


@pytest.fixture
def elsewhere() -> Watcher:
    """The watcher of another process, which watches already."""
    watcher = Watcher()
    watcher.begin()
    return watcher


def snapshot_of(owner: Owner, session: UUID | None = None) -> SessionSnapshot:
    state = book_state(owner.pk, "main")
    return snapshots.build(session or uuid4(), state, (1, 0), max_memories=20, char_limit=3000)


def delete_one(session: Session) -> None:
    memory = Memory.objects.filter(owner=session.owner, deleted_at=None).first()
    assert memory is not None
    with book_writing(memory.book, Source(actor="user:1", origin=WriteOrigin.USER)) as writer:
        writer.delete(memory.number)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("forget", "kind"),
    [
        (lambda session: forget_memories(session.owner_id), Kind.OWNER),
        (lambda session: forget_memories(session.owner_id, book="main"), Kind.BOOK),
        (delete_one, Kind.BOOK),
        (session_delete, Kind.SESSION),
        (session_end, Kind.SESSION_ENDED),
    ],
)
def test_every_kind_of_forgetting_is_told_once_by_its_ids(
    session: Session,
    alice: Owner,
    elsewhere: Watcher,
    heard: list[Forgotten],
    forget: Callable[[Session], object],
    kind: Kind,
) -> None:
    memory_make(alice)
    forget(session)
    assert elsewhere.poll() == 1
    assert elsewhere.poll() == 0
    (told,) = heard
    assert (told.kind, told.owner_id) == (kind, alice.pk)


def test_an_addition_or_a_change_tells_nobody(alice: Owner, elsewhere: Watcher) -> None:
    memory_make(alice)
    assert elsewhere.poll() == 0


def test_a_look_is_one_query(alice: Owner, elsewhere: Watcher, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        elsewhere.poll()


def test_a_row_that_is_committed_after_a_later_one_is_applied(
    alice: Owner, elsewhere: Watcher, heard: list[Forgotten]
) -> None:
    first, second = (Invalidation(pk=1000 + n, kind=Kind.OWNER, owner_id=alice.pk) for n in (1, 2))
    second.save(force_insert=True)
    assert elsewhere.poll() == 1
    first.save(force_insert=True)
    assert elsewhere.poll() == 1
    assert len(heard) == 2


def test_rows_that_have_settled_are_not_read_again(
    alice: Owner, elsewhere: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = Invalidation.objects.create(kind=Kind.OWNER, owner_id=alice.pk)
    assert elsewhere.poll() == 1
    assert elsewhere._floor < row.pk
    monkeypatch.setattr(invalidation, "_SETTLED_SECONDS", -1.0)
    assert elsewhere.poll() == 0
    assert (elsewhere._floor, elsewhere._seen) == (row.pk, {})


def test_nothing_is_dropped_before_the_commit_and_nothing_after_a_rollback(
    alice: Owner, heard: list[Forgotten], django_capture_on_commit_callbacks: Any
) -> None:
    def publish_and_fail() -> None:
        with transaction.atomic():
            invalidation.publish(Kind.OWNER, owner_id=alice.pk)
            raise ZeroDivisionError

    with django_capture_on_commit_callbacks(execute=True), pytest.raises(ZeroDivisionError):
        publish_and_fail()
    assert heard == []
    with django_capture_on_commit_callbacks(execute=True):
        invalidation.publish(Kind.OWNER, owner_id=alice.pk)
        assert heard == []
    assert len(heard) == 1


def test_only_what_is_of_the_owner_or_the_book_goes(alice: Owner, charlie: Owner) -> None:
    memory_make(alice)
    memory_make(charlie)
    mine, other = uuid4(), uuid4()
    snapshot_of(alice, mine)
    snapshot_of(charlie, other)
    book = Book.objects.get(owner=alice)
    invalidation.apply(Forgotten(kind=Kind.BOOK, owner_id=alice.pk, book_id=uuid4()))
    assert snapshots.peek(mine)
    invalidation.apply(Forgotten(kind=Kind.BOOK, owner_id=alice.pk, book_id=book.pk))
    assert snapshots.peek(mine) is None
    assert snapshots.peek(other)
    invalidation.apply(Forgotten(kind=Kind.OWNER, owner_id=charlie.pk))
    assert snapshots.peek(other) is None
    assert snapshots.sizes()[1] == 0


def test_a_view_that_was_read_before_a_forgetting_is_not_kept_after_it(
    alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_make(alice)
    session = uuid4()

    def forgotten_meanwhile(state: BookState, earlier: BookView | None) -> Any:
        view = load_view(state, earlier)
        invalidation.apply(Forgotten(kind=Kind.OWNER, owner_id=alice.pk))
        return view

    monkeypatch.setattr("memories.recall.snapshot.load_view", forgotten_meanwhile)
    snapshot_of(alice, session)
    assert snapshots.peek(session) is None
    assert snapshots.sizes()[:2] == (0, 0)


def test_a_thread_that_was_read_before_a_forgetting_is_not_kept_after_it(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgotten_meanwhile(owner_id: UUID, session_id: UUID, after: UUID | None) -> list[Any]:
        invalidation.apply(Forgotten(kind=Kind.OWNER, owner_id=owner_id))
        return []

    monkeypatch.setattr("memories.recall.threads.thread_reader._value", forgotten_meanwhile)
    thread_cache.read(session.owner_id, session.pk)
    assert thread_cache._threads == {}


def test_what_is_idle_goes_without_a_new_build(
    alice: Owner, elsewhere: Watcher, settings: Any, session: Session
) -> None:
    memory_make(alice)
    snapshot_of(alice)
    thread_cache.read(alice.pk, session.pk)
    elsewhere.poll()
    assert snapshots.sizes()[:2] == (1, 1)
    settings.SNAPSHOT_IDLE_SECONDS = -1
    elsewhere.poll()
    assert snapshots.sizes()[:2] == (0, 0)
    assert thread_cache._threads == {}


def test_while_the_table_cannot_be_read_nothing_is_kept(alice: Owner, elsewhere: Watcher) -> None:
    memory_make(alice)
    snapshot_of(alice)

    def away(*call: Any) -> Any:
        raise OperationalError("the database is away")

    with connection.execute_wrapper(away):
        elsewhere._round()
    assert snapshots.sizes()[:2] == (0, 0)


def test_the_texts_of_another_book_stay_analysed(alice: Owner, charlie: Owner) -> None:
    memory_make(alice, "Keeps a heron called Quillonthorpe.")
    memory_make(charlie, "Keeps a parrot called Otto.")
    for owner in (alice, charlie):
        assert snapshot_of(owner).view.index
    vocabulary = PROCESS_CACHE.vocabulary()
    assert any("quillon" in spelling for spelling in vocabulary._numbers)
    invalidation.apply(Forgotten(kind=Kind.OWNER, owner_id=alice.pk))
    assert not any("quillon" in spelling for spelling in [*vocabulary._numbers, *vocabulary._spellings])
    misses = PROCESS_CACHE.misses
    snapshots.clear()
    assert snapshot_of(charlie).view.index.search("Who is Otto?", limit=1)
    assert misses == PROCESS_CACHE.misses
    assert snapshot_of(alice).view.index.search("Who is Quillonthorpe?", limit=1)
    assert misses + 1 == PROCESS_CACHE.misses


def test_rows_are_kept_for_a_day(alice: Owner) -> None:
    Invalidation.objects.create(kind=Kind.OWNER, owner_id=alice.pk, created_at=timezone.now() - timedelta(days=2))
    Invalidation.objects.create(kind=Kind.OWNER, owner_id=alice.pk)
    memories_sweep()
    assert Invalidation.objects.count() == 1


def test_what_is_kept_of_messages_is_dropped_with_any_forgetting(alice: Owner) -> None:
    memory_make(alice, "Keeps a heron called Quillonthorpe.")
    snapshot_of(alice).view.index.search("Where is my heron?", limit=5)
    assert message_of.cache_info().currsize
    invalidation.apply(Forgotten(kind=Kind.SESSION, owner_id=uuid4(), session_id=uuid4()))
    assert not message_of.cache_info().currsize
