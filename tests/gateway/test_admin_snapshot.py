"""/admin/gateway/session/…: the description of the session's snapshot"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gateway.admin.sessions import snapshot_lines
from gateway.models import Run, Session
from gateway.services import agent_save
from memories.database.access import in_thread
from memories.models import Book, Owner
from memories.recall.snapshot import snapshots
from tests.admin_rows import row_url, session_make, staff_client
from tests.conftest import Api
from tests.factories import REMEMBERS, agent_make, memory_make
from tests.scripted_model import ScriptedModel


async def lines_of(session: Session) -> str:
    fresh = Session.objects.select_related("agent")
    return " ".join(await in_thread(lambda: snapshot_lines(fresh.get(pk=session.pk))))


@pytest.fixture
async def session_with_snapshot(alice: Owner, session: Session, alice_api: Api, model: ScriptedModel) -> Session:
    """A session with one turn, whose snapshot contained one memory."""
    await in_thread(memory_make, alice, "Likes tea.")
    model.script("Yes.")
    status, _ = await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Hi"})
    assert status == 200
    return session


def book_update(**fields: Any) -> Callable[[Session], None]:
    return lambda session: Book.objects.filter(owner_id=session.owner_id).update(**fields) and None


async def test_an_unchanged_snapshot_is_called_current(session_with_snapshot: Session) -> None:
    generation = (await in_thread(Book.objects.get)).generation
    assert await lines_of(session_with_snapshot) == (
        f"Turn 1 was given a snapshot of generation {generation}. "
        f"It is current. Book main is at generation {generation}. "
        "In that run: 1 memory frozen, 0 recalled. "
        f"This process has one of generation {generation} cached."
    )


async def test_a_snapshot_is_outdated_after_a_write(session_with_snapshot: Session) -> None:
    before = (await in_thread(Book.objects.get)).generation
    await in_thread(memory_make, session_with_snapshot.owner, "Works nights.")
    description = await lines_of(session_with_snapshot)
    assert (
        f"of generation {before}. Book main is at generation {before + 1}. The next turn builds a new one."
        in description
    )
    assert "It is current" not in description
    assert f"This process has one of generation {before} cached." in description


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (book_update(epoch=77), "Book main was cleared since"),
        (book_update(next_expiry_at=timezone.now() - timedelta(minutes=1)), "A memory has expired since."),
        (
            lambda _: agent_save("assistant", {**REMEMBERS, "max_inject_memories": 5}),
            "The settings were changed since.",
        ),
        (lambda s: Session.objects.filter(pk=s.pk).update(compaction_epoch=2), "The session was compacted since."),
        (lambda _: Book.objects.all().delete(), "Its book is gone."),
    ],
    ids=["cleared", "expired", "settings", "compacted", "gone"],
)
async def test_the_page_says_why_the_next_turn_builds_a_new_snapshot(
    session_with_snapshot: Session, change: Callable[[Session], Any], words: str
) -> None:
    await in_thread(change, session_with_snapshot)
    description = await lines_of(session_with_snapshot)
    assert words in description
    assert "The next turn builds a new one." in description


async def test_without_a_snapshot_here_another_process_may_hold_one(session_with_snapshot: Session) -> None:
    snapshots.clear()
    assert "This process has none cached; another one may." in await lines_of(session_with_snapshot)


async def test_viewing_the_page_does_not_refresh_the_cached_snapshot(session_with_snapshot: Session) -> None:
    cached = snapshots._sessions[session_with_snapshot.pk]
    await lines_of(session_with_snapshot)
    assert snapshots._sessions[session_with_snapshot.pk] is cached


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"temporary": True}, "None: a temporary session reads no memory."),
        ({"state": "ended"}, "None: the session has ended."),
    ],
)
async def test_a_session_without_a_snapshot_says_why(
    session_with_snapshot: Session, change: dict[str, Any], words: str
) -> None:
    await in_thread(lambda: Session.objects.filter(pk=session_with_snapshot.pk).update(**change))
    assert await lines_of(session_with_snapshot) == words


async def test_an_agent_without_memory_injection_is_given_as_the_reason(session: Session) -> None:
    await in_thread(agent_make, inject_memories=False)
    assert await lines_of(session) == "None: its agent is given no memory."


async def test_a_session_without_turns_has_no_snapshot_yet(session: Session) -> None:
    assert await lines_of(session) == (
        "No turn has run yet; the first one builds it. Its book does not exist yet. "
        "This process has none cached; another one may."
    )


async def test_a_run_without_a_recorded_snapshot_is_described_as_such(session_with_snapshot: Session) -> None:
    await in_thread(lambda: Run.objects.update(trace={"recall": {}, "steps": 1}))
    assert "Turn 1 was given no snapshot, or recorded none." in await lines_of(session_with_snapshot)


@pytest.mark.any_database
@pytest.mark.django_db
def test_the_description_takes_two_queries_whatever_the_number_of_turns() -> None:
    agent_make()
    session = session_make(turns=1)
    client = staff_client(superuser=True)
    page = client.get(row_url(session)).content.decode()
    assert "Turn 1 was given no snapshot" in page
    long = session_make(title="Long", turns=20)
    for shown_session in (session, long):
        row = Session.objects.select_related("agent").get(pk=shown_session.pk)
        snapshot_lines(row)
        with CaptureQueriesContext(connection) as queries:
            snapshot_lines(row)
        assert len(queries) == 2
