"""Live turns and forgetting: a turn ends with its session, and a reconnecting browser sees no forgotten memory"""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from gateway import upstream
from gateway.models import Run, Session
from gateway.turns import live
from gateway.upstream import Chunk, ModelRequest
from memories.database.access import in_thread
from memories.messaging.invalidation import Kind
from memories.models import Invalidation, Memory, Owner
from tests.conftest import Api
from tests.factories import memory_make
from tests.scripted_model import Hangs, ScriptedModel, calls
from tests.unsliced import forget_memories
from tests.waiting import eventually_async


async def begin_turn(api: Api, session: Session) -> "tuple[live.LiveTurn, asyncio.Task[tuple[int, Any]]]":
    """Start a turn whose model hangs after its first words. Return the turn and the task of its request."""
    request_task = asyncio.create_task(
        api.post(f"/api/sessions/{session.pk}/turns", {"content": "Tell me of my heron."})
    )
    await eventually_async(lambda: any(turn.text for turn in live._live.values()), within=20)
    (turn,) = live._live.values()
    return turn, request_task


async def test_deleting_a_session_ends_its_live_turn(
    alice_api: Api, alice: Owner, session: Session, model: ScriptedModel
) -> None:
    model.script(Hangs(("Once",)))
    turn, request_task = await begin_turn(alice_api, session)
    live.forget(Invalidation(kind=Kind.SESSION_ENDED, owner_id=alice.pk, session_id=session.pk))
    live.forget(Invalidation(kind=Kind.OWNER, owner_id=alice.pk))
    assert turn.final is None
    await asyncio.to_thread(live.forget, Invalidation(kind=Kind.SESSION, owner_id=alice.pk, session_id=session.pk))
    await request_task
    assert live._live == {}
    assert (await in_thread(Run.objects.get)).state == Run.State.STOPPED


async def test_a_reconnecting_browser_sees_no_forgotten_memory(
    alice_api: Api, alice: Owner, session: Session, model: ScriptedModel
) -> None:
    await in_thread(memory_make, alice, "Keeps a heron called Quillonthorpe.")
    model.script(Hangs(("Once",)))
    turn, request_task = await begin_turn(alice_api, session)
    assert "Quillonthorpe" in str(turn.events)
    live.forget(Invalidation(kind=Kind.OWNER, owner_id=alice.pk))
    assert [name for _, (name, _) in turn.events] == ["recalled"]
    assert "Quillonthorpe" not in str(turn.events)
    turn.stop()
    await request_task


@pytest.mark.django_db(transaction=True)
async def test_watchers_of_a_turn_are_told_that_its_session_was_deleted(
    alice_api: Api, alice: Owner, session: Session, model: ScriptedModel
) -> None:
    model.script(Hangs(("Once",)))
    turn, request_task = await begin_turn(alice_api, session)
    here, elsewhere = turn.watch(0), live.watch_elsewhere(alice.pk, session.pk, turn.context.run_id, 0)
    assert (await alice_api.call("DELETE", f"/api/sessions/{session.pk}"))[0] == 204
    status, answer = await request_task
    assert (status, answer["error"]["code"]) == (404, "not_found")
    for events in (here, elsewhere):
        assert [name async for _, (name, _) in events][-1] == "error"


class ForgettingModel(ScriptedModel):
    """A model that deletes all memories of the owner during its first step."""

    def __init__(self, owner: Owner) -> None:
        super().__init__()
        self._owner = owner

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk]:
        if not self.calls:
            await in_thread(forget_memories, self._owner.pk)
        async for chunk in super().stream(request):
            yield chunk


async def test_a_turn_that_began_before_forgetting_writes_nothing_back(
    alice: Owner, alice_api: Api, session: Session
) -> None:
    model = ForgettingModel(alice)
    upstream.install(model)
    arguments = {"content": "Keeps a heron called Quillonthorpe.", "evidence": "I keep a heron called Quillonthorpe"}
    model.script(calls(("add_memory", json.dumps(arguments))), "Well.")
    await in_thread(memory_make, alice, "Likes tea.")
    said = {"content": "I keep a heron called Quillonthorpe, remember it."}
    status, turn = await alice_api.post(f"/api/sessions/{session.pk}/turns", said)
    assert (status, turn["content"], turn["memory_changes"]) == (200, "Well.", [])
    assert await in_thread(Memory.objects.count) == 0
    assert "book_cleared" in str(model.calls[1].messages[-1]["content"])
