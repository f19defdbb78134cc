"""Watching a turn: it ends with the watcher's key or login, and shows no memory to a key shared by several people"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as LoginSession
from django.test import AsyncClient
from django.utils import timezone

from gateway import watching
from gateway.keys import api_key_revoke
from gateway.limits import watchers
from gateway.models import ApiKey, Run, Session
from gateway.runs import active
from gateway.runs.session_rows import run_get
from gateway.turns import live
from memories.database.access import in_thread
from memories.database.lanes import BUSY, DatabaseBusy
from memories.models import Owner
from tests.conftest import Api
from tests.factories import key_make, memory_make
from tests.pages import client_of
from tests.scripted_model import Hangs, ScriptedModel
from tests.waiting import eventually_async

pytestmark = pytest.mark.any_database


@pytest.fixture(autouse=True)
def frequent_rechecks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "RECHECK_SECONDS", 0.05)


async def begin_turn(api: Api, session: Session) -> "tuple[live.LiveTurn, asyncio.Task[Any]]":
    """Start a turn that hangs. Return the turn and the task of its request."""
    request_task = asyncio.create_task(api.post(f"/api/sessions/{session.pk}/turns", {"content": "Do I like tea?"}))
    await eventually_async(lambda: any(turn.text for turn in live._live.values()), within=20)
    (turn,) = live._live.values()
    return turn, request_task


def events(turn: live.LiveTurn) -> str:
    return f"/api/sessions/{turn.context.session_id}/turns/{turn.context.run_id}/events"


async def body_of(response: Any) -> str:
    assert response.status_code == 200
    return b"".join([piece async for piece in response.streaming_content]).decode()


@pytest.mark.parametrize("here", [True, False], ids=["in its process", "in another"])
async def test_watching_with_a_key_ends_with_the_key(
    alice: Owner, alice_api: Api, session: Session, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, here: bool
) -> None:
    model.script(Hangs(("Once",)))
    turn, request_task = await begin_turn(alice_api, session)
    key, plain = await in_thread(key_make, alice, read_only=True)
    if not here:
        monkeypatch.setattr(live, "find", lambda run_id: None)
    watched = asyncio.create_task(body_of(await Api(plain).raw("GET", events(turn))))
    await eventually_async(lambda: turn.watchers == (2 if here else 1), within=10)
    await in_thread(api_key_revoke, key)
    said = await asyncio.wait_for(watched, 10)
    assert "event: error" in said
    assert "no longer valid" in said
    assert turn.final is None
    turn.stop()
    await request_task


async def test_watching_in_another_process_goes_on_after_the_database_was_busy(
    alice_api: Api, session: Session, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.script("Once upon a time.")
    status, turn = await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Tell me a story."})
    assert status == 200
    refusals = [DatabaseBusy(BUSY)] * 2

    def busy_at_first(*arguments: Any) -> Run:
        if refusals:
            raise refusals.pop()
        return run_get(*arguments)

    monkeypatch.setattr(live, "run_get", busy_at_first)
    monkeypatch.setattr(active, "FLUSH_SECONDS", 0.001)
    said = await body_of(await alice_api.raw("GET", f"/api/sessions/{session.pk}/turns/{turn['id']}/events"))
    assert not refusals
    assert [line for line in said.splitlines() if line.startswith("event: ")] == [
        "event: started",
        "event: delta",
        "event: done",
    ]


@pytest.mark.parametrize(
    "end_login",
    [lambda: LoginSession.objects.all().delete(), lambda: User.objects.update(is_active=False)],
    ids=["signed out", "deactivated"],
)
async def test_watching_with_a_login_ends_with_the_login(
    alice: Owner, alice_api: Api, session: Session, model: ScriptedModel, end_login: Callable[[], Any]
) -> None:
    model.script(Hangs(("Once",)))
    turn, request_task = await begin_turn(alice_api, session)
    browser = AsyncClient()
    browser.cookies = (await in_thread(client_of, alice)).cookies
    watched = asyncio.create_task(body_of(await browser.get(events(turn))))
    await eventually_async(lambda: turn.watchers == 2, within=10)
    await in_thread(end_login)
    assert "event: error" in await asyncio.wait_for(watched, 10)
    turn.stop()
    await request_task


async def test_a_key_shared_by_several_people_sees_no_memory_of_turns(
    alice: Owner, alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    model.script("Yes.")
    _, turn = await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Do I like tea?"})
    assert len(turn["recalled"]) == 1
    model.script(Hangs(("Once",)))
    live_turn, request_task = await begin_turn(alice_api, session)
    key, plain = await in_thread(key_make, alice)
    await in_thread(ApiKey.objects.filter(pk=key.pk).update, end_users_mixed_at=timezone.now())
    shared, who = Api(plain), {"x_openwebui_user_id": "u1"}
    _, shown = await shared.call("GET", f"/api/sessions/{session.pk}/turns/{turn['id']}", **who)
    assert (shown["content"], shown["recalled"], shown["memory_changes"]) == ("Yes.", [], [])
    said = [asyncio.create_task(body_of(await api.raw("GET", events(live_turn), **who))) for api in (alice_api, shared)]
    await eventually_async(lambda: live_turn.watchers == 3, within=10)
    live_turn.stop()
    await request_task
    assert ["Likes tea." in text for text in await asyncio.gather(*said)] == [True, False]


async def test_the_number_of_watchers_per_owner_is_limited(
    alice: Owner, alice_api: Api, session: Session, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchers, "WATCHERS", 2)
    model.script(Hangs(("Once",)))
    turn, request_task = await begin_turn(alice_api, session)
    said = [asyncio.create_task(body_of(await alice_api.raw("GET", events(turn)))) for _ in range(2)]
    refused = await alice_api.raw("GET", events(turn))
    assert (refused.status_code, refused["Retry-After"]) == (429, "5")
    assert json.loads(refused.content)["error"]["code"] == "rate_limited"
    said[0].cancel()  # this client disconnects
    await eventually_async(lambda: watchers._open[alice.pk] == 1, within=10)
    said[0] = asyncio.create_task(body_of(await alice_api.raw("GET", events(turn))))
    turn.stop()
    await request_task
    assert all("event: done" in text for text in await asyncio.gather(*said))
    assert not watchers._open
