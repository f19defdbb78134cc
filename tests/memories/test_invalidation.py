"""memories.messaging.invalidation: whatever another process forgets is removed from this process's caches."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from gateway.models import Session
from gateway.services import session_end
from memories.books import book_state
from memories.messaging import invalidation
from memories.messaging.invalidation import Kind, Watcher
from memories.models import Book, Invalidation, Memory, Owner, WriteOrigin
from memories.recall.book_views import BookState, BookView, load_view
from memories.recall.snapshot import SessionSnapshot, snapshots
from memories.recall.threads import thread_cache
from memories.services import Source, book_writing
from memories.sweep import memories_sweep
from search.analysis import PROCESS_CACHE
from search.query import message_of
from tests.factories import memory_make
from tests.unsliced import forget_memories, session_delete

pytestmark = pytest.mark.django_db


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> list[Invalidation]:
    """The invalidations that a cache receives."""
    messages: list[Invalidation] = []
    monkeypatch.setattr(invalidation, "_caches", [invalidation._Cache(forget=messages.append)])
    return messages


@pytest.fixture
def watcher() -> Watcher:
    """A watcher, as another process has one, that was started before the test."""
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
def test_every_kind_of_forgetting_is_received_once(
    session: Session,
    alice: Owner,
    watcher: Watcher,
    received: list[Invalidation],
    forget: Callable[[Session], object],
    kind: Kind,
) -> None:
    memory_make(alice)
    forget(session)
    assert watcher.poll() == 1
    assert watcher.poll() == 0
    (message,) = received
    assert (message.kind, message.owner_id) == (kind, alice.pk)


def test_adding_a_memory_sends_no_invalidation(alice: Owner, watcher: Watcher) -> None:
    memory_make(alice)
    assert watcher.poll() == 0


def test_a_poll_is_one_query(alice: Owner, watcher: Watcher, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        watcher.poll()


def test_a_row_committed_after_a_later_one_is_applied(
    alice: Owner, watcher: Watcher, received: list[Invalidation]
) -> None:
    first, second = (Invalidation(pk=1000 + n, kind=Kind.OWNER, owner_id=alice.pk) for n in (1, 2))
    second.save(force_insert=True)
    assert watcher.poll() == 1
    first.save(force_insert=True)
    assert watcher.poll() == 1
    assert len(received) == 2


def test_settled_rows_are_not_read_again(alice: Owner, watcher: Watcher, monkeypatch: pytest.MonkeyPatch) -> None:
    row = Invalidation.objects.create(kind=Kind.OWNER, owner_id=alice.pk)
    assert watcher.poll() == 1
    assert watcher._floor < row.pk
    monkeypatch.setattr(invalidation, "_SETTLED_SECONDS", -1.0)
    assert watcher.poll() == 0
    assert (watcher._floor, watcher._seen) == (row.pk, {})


def test_caches_are_invalidated_only_after_a_commit(
    alice: Owner, received: list[Invalidation], django_capture_on_commit_callbacks: Any
) -> None:
    def publish_and_fail() -> None:
        with transaction.atomic():
            invalidation.publish(Kind.OWNER, owner_id=alice.pk)
            raise ZeroDivisionError

    with django_capture_on_commit_callbacks(execute=True), pytest.raises(ZeroDivisionError):
        publish_and_fail()
    assert received == []
    with django_capture_on_commit_callbacks(execute=True):
        invalidation.publish(Kind.OWNER, owner_id=alice.pk)
        assert received == []
    assert len(received) == 1


def test_only_snapshots_of_the_owner_or_book_are_dropped(alice: Owner, charlie: Owner) -> None:
    memory_make(alice)
    memory_make(charlie)
    alices, other = uuid4(), uuid4()
    snapshot_of(alice, alices)
    snapshot_of(charlie, other)
    book = Book.objects.get(owner=alice)
    invalidation.apply(Invalidation(kind=Kind.BOOK, owner_id=alice.pk, book_id=uuid4()))
    assert snapshots.peek(alices)
    invalidation.apply(Invalidation(kind=Kind.BOOK, owner_id=alice.pk, book_id=book.pk))
    assert snapshots.peek(alices) is None
    assert snapshots.peek(other)
    invalidation.apply(Invalidation(kind=Kind.OWNER, owner_id=charlie.pk))
    assert snapshots.peek(other) is None
    assert snapshots.sizes()[1] == 0


def test_a_view_read_before_a_forgetting_is_not_cached(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    memory_make(alice)
    session = uuid4()

    def forget_meanwhile(state: BookState, earlier: BookView | None) -> Any:
        view = load_view(state, earlier)
        invalidation.apply(Invalidation(kind=Kind.OWNER, owner_id=alice.pk))
        return view

    monkeypatch.setattr("memories.recall.snapshot.load_view", forget_meanwhile)
    snapshot_of(alice, session)
    assert snapshots.peek(session) is None
    assert snapshots.sizes()[:2] == (0, 0)


def test_a_thread_read_before_a_forgetting_is_not_cached(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def forget_meanwhile(owner_id: UUID, session_id: UUID) -> list[Any]:
        invalidation.apply(Invalidation(kind=Kind.OWNER, owner_id=owner_id))
        return []

    monkeypatch.setattr("memories.recall.threads.thread_reader._value", forget_meanwhile)
    thread_cache.read(session.owner_id, session.pk, uuid4())
    assert thread_cache._sessions == {}


def test_idle_cache_entries_are_dropped_by_a_poll(
    alice: Owner, watcher: Watcher, settings: Any, session: Session
) -> None:
    memory_make(alice)
    snapshot_of(alice)
    thread_cache.read(alice.pk, session.pk, uuid4())
    watcher.poll()
    assert snapshots.sizes()[:2] == (1, 1)
    settings.SNAPSHOT_IDLE_SECONDS = -1
    watcher.poll()
    assert snapshots.sizes()[:2] == (0, 0)
    assert thread_cache._sessions == {}


@pytest.mark.parametrize("error", [OperationalError("the database is unavailable"), RuntimeError("a defect")])
def test_all_caches_are_cleared_if_the_table_cannot_be_read(alice: Owner, watcher: Watcher, error: Exception) -> None:
    memory_make(alice)
    snapshot_of(alice)

    def fail(*call: Any) -> Any:
        raise error

    with connection.execute_wrapper(fail):
        watcher._round()
    assert snapshots.sizes()[:2] == (0, 0)


def test_the_thread_survives_a_cache_that_cannot_be_cleared(
    watcher: Watcher, monkeypatch: pytest.MonkeyPatch, db: None
) -> None:
    cleared: list[str] = []

    def clear(name: str) -> None:
        cleared.append(name)
        if name == "broken":
            raise RuntimeError

    broken, other, another = (
        invalidation._Cache(forget=lambda _: None, clear=partial(clear, name))
        for name in ("broken", "other", "another")
    )
    monkeypatch.setattr(invalidation, "_caches", [other, broken, another])
    monkeypatch.setattr(Watcher, "poll", lambda self: 1 // 0)
    monkeypatch.setattr(invalidation, "close_old_connections", lambda: None)
    watcher._round()
    assert sorted(cleared) == ["another", "broken", "other"]


def test_the_analysis_of_other_books_stays_cached(alice: Owner, charlie: Owner) -> None:
    memory_make(alice, "Keeps a heron called Quillonthorpe.")
    memory_make(charlie, "Keeps a parrot called Otto.")
    for owner in (alice, charlie):
        assert snapshot_of(owner).view.index
    assert any("quillon" in spelling for spelling in PROCESS_CACHE._word_vectors)
    invalidation.apply(Invalidation(kind=Kind.OWNER, owner_id=alice.pk))
    assert not any("quillon" in spelling for spelling in PROCESS_CACHE._word_vectors)
    assert {"keeps", "parrot"} <= PROCESS_CACHE._word_vectors.keys()
    misses = PROCESS_CACHE.misses
    snapshots.clear()
    assert snapshot_of(charlie).view.index.search("Who is Otto?", limit=1)
    assert misses == PROCESS_CACHE.misses
    assert snapshot_of(alice).view.index.search("Who is Quillonthorpe?", limit=1)
    assert misses + 1 == PROCESS_CACHE.misses


def test_invalidations_are_kept_for_a_day(alice: Owner) -> None:
    Invalidation.objects.create(kind=Kind.OWNER, owner_id=alice.pk, created_at=timezone.now() - timedelta(days=2))
    Invalidation.objects.create(kind=Kind.OWNER, owner_id=alice.pk)
    memories_sweep()
    assert Invalidation.objects.count() == 1


def test_the_message_cache_is_cleared_by_any_forgetting(alice: Owner) -> None:
    memory_make(alice, "Keeps a heron called Quillonthorpe.")
    snapshot_of(alice).view.index.search("Where is my heron?", limit=5)
    assert message_of.cache_info().currsize
    invalidation.apply(Invalidation(kind=Kind.SESSION, owner_id=uuid4(), session_id=uuid4()))
    assert not message_of.cache_info().currsize
