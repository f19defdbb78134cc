"""What those who watch a session learn when others change it"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from gateway.models import Run, Session
from gateway.runs.branches import BranchLease
from gateway.services import session_end
from gateway.sessions import changes
from gateway.sessions.changes import session_changes
from gateway.sessions.keeping import session_change, session_discard, session_restore
from memories.database.access import in_thread
from tests.conftest import Api
from tests.factories import caller_make, session_make
from tests.gateway.native import Turns
from tests.scripted_model import Hangs, ScriptedModel
from tests.unsliced import branch_choose
from tests.waiting import eventually_async

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
Changes = AsyncGenerator[dict[str, Any]]


@pytest.fixture
def turns(alice_api: Api, session: Session) -> Turns:
    return Turns(alice_api, session)


def watching(session: Session) -> Any:
    return aclosing(session_changes(session.owner_id, session.pk))


async def following(watched: Changes) -> dict[str, Any]:
    """Return the next change."""
    async with asyncio.timeout(10):
        return await anext(watched)


async def nothing_more(watched: Changes) -> bool:
    """Return True if nothing is told in two more rounds."""
    reading = asyncio.ensure_future(anext(watched))
    rounds = 0
    read_once = changes._read_once

    async def counted() -> None:
        nonlocal rounds
        await read_once()
        rounds += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "_read_once", counted)
        await eventually_async(lambda: rounds > 2 or reading.done(), within=10)
    is_silent = not reading.done()
    reading.cancel()
    await asyncio.wait([reading])
    return is_silent


async def test_a_watcher_learns_of_the_newest_turn_and_its_end(
    turns: Turns, session: Session, model: ScriptedModel
) -> None:
    async with watching(session) as watched:
        assert await following(watched) == {
            "kind": "session.changed",
            "session_id": str(session.pk),
            "title": "",
            "state": "active",
            "turn": None,
        }
        model.script(Hangs(("Yes",)))
        sending = asyncio.ensure_future(turns.send("Tea?"))
        begun = await following(watched)
        assert (begun["title"], begun["turn"]["state"]) == ("Tea?", "running")
        await turns.api.post(turns.path(begun["turn"], "/stop"))
        await sending
        assert (await following(watched))["turn"] == begun["turn"] | {"state": "stopped"}


async def test_a_watcher_learns_which_version_is_shown(turns: Turns, session: Session, model: ScriptedModel) -> None:
    model.script("One.", "Two.")
    _, first = await turns.send("Tea?")
    _, second = await turns.send("Tea?", replaces=first["id"])
    async with watching(session) as watched:
        assert (await following(watched))["turn"]["id"] == second["id"]
        await in_thread(branch_choose, caller_make(session.owner), session.pk, first["id"])
        assert (await following(watched))["turn"]["id"] == first["id"]


async def test_nothing_is_told_while_a_long_branch_is_shown_in_parts(
    turns: Turns, session: Session, model: ScriptedModel
) -> None:
    model.script("One.", "Two.")
    _, first = await turns.send("Tea?")
    _, second = await turns.send("Tea?", replaces=first["id"])
    async with watching(session) as watched:
        await following(watched)
        lease = await in_thread(lambda: BranchLease.take(Session.objects.get(), first["id"]))
        await in_thread(lambda: Run.objects.filter(pk=second["id"]).update(superseded=True))
        assert await nothing_more(watched)
        assert lease.end == first["id"]


async def test_a_watcher_learns_of_changes_of_the_session_itself(session: Session) -> None:
    async with watching(session) as watched:
        await following(watched)
        await in_thread(lambda: session_change(session, title="Cats"))
        assert (await following(watched))["title"] == "Cats"
        await in_thread(session_discard, session)
        assert await following(watched) == {"kind": "session.deleted", "session_id": str(session.pk)}
        await in_thread(session_restore, session.owner_id, session.pk)
        assert (await following(watched))["kind"] == "session.changed"
        await in_thread(session_end, session)
        assert (await following(watched))["state"] == "ended"
        await in_thread(lambda: session_change(session, pinned=True))
        assert await nothing_more(watched)


async def test_every_watcher_learns_of_its_own_session(turns: Turns, session: Session, model: ScriptedModel) -> None:
    other = await in_thread(session_make, session.owner, session.agent)
    async with watching(session) as one, watching(session) as two, watching(other) as third:
        for watched in (one, two, third):
            await following(watched)
        model.script("Yes.")
        _, turn = await turns.send("Tea?")
        for watched in (one, two):
            while (await following(watched))["turn"] != {"id": turn["id"], "state": "completed"}:
                pass
        assert await nothing_more(third)


async def test_all_watched_sessions_take_one_query(session: Session) -> None:
    sessions = [await in_thread(session_make, session.owner, session.agent) for _ in range(6)]
    keys = [(each.owner_id, each.pk) for each in sessions]

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            rows = changes._changed(dict.fromkeys(keys, changes._UNREAD))
            before = {key: row for key, (row, _) in rows.items()}
            assert changes._changed(before) == {}
        return len(captured)

    assert await in_thread(queries) == 3  # the rows, what is told of those that changed, and the rows again


async def test_nothing_is_read_while_nobody_watches(session: Session) -> None:
    async with watching(session) as watched:
        await following(watched)
        task = changes._task
        assert task is not None
        assert not task.done()
    await asyncio.wait([task], timeout=10)
    assert task.cancelled()
    assert not changes._watched


async def test_a_page_that_changes_to_another_session_learns_of_it(session: Session) -> None:
    async with watching(session) as watched:
        await following(watched)
    async with watching(session) as watched:  # in the same step of the event loop
        assert (await following(watched))["kind"] == "session.changed"
        await in_thread(lambda: session_change(session, title="Cats"))
        assert (await following(watched))["title"] == "Cats"


async def test_after_an_error_sessions_are_read_again(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = iter([OperationalError("busy"), RuntimeError("a defect")])
    read = changes._changed

    def sometimes(before: Any) -> Any:
        if failure := next(failures, None):
            raise failure
        return read(before)

    monkeypatch.setattr(changes, "_changed", sometimes)
    async with watching(session) as watched:
        assert (await following(watched))["kind"] == "session.changed"
