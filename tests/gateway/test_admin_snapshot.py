"""/admin/gateway/session/…: what the page says of the session's snapshot"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from gateway.admin.snapshot_state import snapshot_lines
from gateway.models import Run, Session
from gateway.services import agent_save
from memories.database.access import in_thread
from memories.models import Book, Owner
from memories.recall.snapshot import snapshots
from tests.admin_rows import session_make, staff_client
from tests.conftest import Api
from tests.factories import REMEMBERS, agent_make, memory_make
from tests.scripted_model import ScriptedModel


async def lines_of(session: Session) -> str:
    fresh = Session.objects.select_related("agent")
    return " ".join(await in_thread(lambda: snapshot_lines(fresh.get(pk=session.pk))))


@pytest.fixture
async def told(alice: Owner, session: Session, alice_api: Api, model: ScriptedModel) -> Session:
    """A session with one turn, that was given a snapshot of one memory."""
    await in_thread(memory_make, alice, "Likes tea.")
    model.script("Yes.")
    status, _ = await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Hi"})
    assert status == 200
    return session


def book_is(**fields: Any) -> Callable[[Session], None]:
    return lambda session: Book.objects.filter(owner_id=session.owner_id).update(**fields) and None


async def test_a_snapshot_that_the_next_turn_takes_is_called_current(told: Session) -> None:
    generation = (await in_thread(Book.objects.get)).generation
    assert await lines_of(told) == (
        f"Turn 1 was given a snapshot of generation {generation}. "
        f"It is current. Book main is at generation {generation}. "
        "In that run: 1 memory frozen, 0 recalled. "
        f"This process has one of generation {generation} cached."
    )


async def test_a_write_makes_it_one_of_an_older_generation(told: Session) -> None:
    before = (await in_thread(Book.objects.get)).generation
    await in_thread(memory_make, told.owner, "Works nights.")
    said = await lines_of(told)
    assert f"of generation {before}. Book main is at generation {before + 1}. The next turn builds a new one." in said
    assert "It is current" not in said
    assert f"This process has one of generation {before} cached." in said


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (book_is(epoch=77), "Book main was cleared since"),
        (book_is(next_expiry_at=timezone.now() - timedelta(minutes=1)), "A memory has expired since."),
        (
            lambda _: agent_save("assistant", {**REMEMBERS, "max_inject_memories": 5}),
            "The settings were changed since.",
        ),
        (lambda s: Session.objects.filter(pk=s.pk).update(compaction_epoch=2), "The session was compacted since."),
        (lambda _: Book.objects.all().delete(), "Its book is gone."),
    ],
    ids=["cleared", "expired", "settings", "compacted", "gone"],
)
async def test_what_else_makes_the_next_turn_build_a_new_one_is_named(
    told: Session, change: Callable[[Session], Any], words: str
) -> None:
    await in_thread(change, told)
    said = await lines_of(told)
    assert words in said
    assert "The next turn builds a new one." in said


async def test_another_process_may_hold_what_this_one_does_not(told: Session) -> None:
    snapshots.clear()
    assert "This process has none cached; another one may." in await lines_of(told)


async def test_a_look_does_not_keep_a_snapshot_warm(told: Session) -> None:
    kept = snapshots._sessions[told.pk]
    await lines_of(told)
    assert snapshots._sessions[told.pk] is kept


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"temporary": True}, "None: a temporary session reads no memory."),
        ({"state": "ended"}, "None: the session has ended."),
    ],
)
async def test_a_session_without_a_snapshot_says_why(told: Session, change: dict[str, Any], words: str) -> None:
    await in_thread(lambda: Session.objects.filter(pk=told.pk).update(**change))
    assert await lines_of(told) == words


async def test_an_agent_that_is_given_nothing_is_named_as_the_reason(session: Session) -> None:
    await in_thread(agent_make, inject_memories=False)
    assert await lines_of(session) == "None: its agent is given no memory."


async def test_a_session_without_a_turn_waits_for_its_first(session: Session) -> None:
    assert await lines_of(session) == (
        "No turn has run yet; the first one builds it. Its book does not exist yet. "
        "This process has none cached; another one may."
    )


async def test_a_run_from_before_or_without_memory_claims_nothing(told: Session) -> None:
    await in_thread(lambda: Run.objects.update(trace={"recall": {}, "steps": 1}))
    assert "Turn 1 was given no snapshot, or recorded none." in await lines_of(told)


@pytest.mark.django_db
def test_the_page_says_it_with_two_queries_however_many_turns() -> None:
    agent_make()
    session = session_make(turns=1)
    client = staff_client(superuser=True)
    page = client.get(reverse("admin:gateway_session_change", args=[session.pk])).content.decode()
    assert "Turn 1 was given no snapshot" in page
    long = session_make(title="Long", turns=20)
    for shown in (session, long):
        row = Session.objects.select_related("agent").get(pk=shown.pk)
        snapshot_lines(row)
        with CaptureQueriesContext(connection) as queries:
            snapshot_lines(row)
        assert len(queries) == 2
