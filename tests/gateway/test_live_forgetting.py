"""A live turn and forgetting: it ends with its session, and shows no forgotten memory to a browser that comes back."""

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
from memories.messaging.invalidation import Forgotten, Kind
from memories.models import Memory, Owner
from tests.conftest import Api
from tests.factories import memory_make
from tests.scripted_model import Hangs, ScriptedModel, calls
from tests.unsliced import forget_memories
from tests.waiting import eventually_async


async def begun(api: Api, session: Session) -> "tuple[live.LiveTurn, asyncio.Task[tuple[int, Any]]]":
    """A turn whose model has said something and then hangs, and the request that waits for it."""
    asked = asyncio.create_task(api.post(f"/api/sessions/{session.pk}/turns", {"content": "Tell me of my heron."}))
    await eventually_async(lambda: any(turn.text for turn in live._live.values()), within=20)
    (turn,) = live._live.values()
    return turn, asked


async def test_a_deleted_session_ends_its_live_turn_in_whatever_process_it_runs(
    alice_api: Api, alice: Owner, session: Session, model: ScriptedModel
) -> None:
    model.script(Hangs(("Once",)))
    turn, asked = await begun(alice_api, session)
    live.forget(Forgotten(kind=Kind.SESSION_ENDED, owner_id=alice.pk, session_id=session.pk))
    live.forget(Forgotten(kind=Kind.OWNER, owner_id=alice.pk))
    assert turn.final is None
    await asyncio.to_thread(live.forget, Forgotten(kind=Kind.SESSION, owner_id=alice.pk, session_id=session.pk))
    await asked
    assert live._live == {}
    assert (await in_thread(Run.objects.get)).state == Run.State.STOPPED


async def test_a_browser_that_comes_back_is_shown_no_forgotten_memory(
    alice_api: Api, alice: Owner, session: Session, model: ScriptedModel
) -> None:
    await in_thread(memory_make, alice, "Keeps a heron called Quillonthorpe.")
    model.script(Hangs(("Once",)))
    turn, asked = await begun(alice_api, session)
    assert "Quillonthorpe" in str(turn.notes)
    live.forget(Forgotten(kind=Kind.OWNER, owner_id=alice.pk))
    assert [name for _, (name, _) in turn.notes] == ["recalled"]
    assert "Quillonthorpe" not in str(turn.notes)
    turn.stop()
    await asked


@pytest.mark.django_db(transaction=True)
async def test_who_waits_for_a_turn_whose_session_was_deleted_is_told(
    alice_api: Api, alice: Owner, session: Session, model: ScriptedModel
) -> None:
    model.script(Hangs(("Once",)))
    turn, asked = await begun(alice_api, session)
    here, elsewhere = turn.watch(0), live.watch_elsewhere(alice.pk, session.pk, turn.context.run_id, 0)
    assert (await alice_api.call("DELETE", f"/api/sessions/{session.pk}"))[0] == 204
    status, answer = await asked
    assert (status, answer["error"]["code"]) == (404, "not_found")
    for events in (here, elsewhere):
        assert [name async for _, (name, _) in events][-1] == "error"


class Forgetting(ScriptedModel):
    """A model during whose first step everything is forgotten."""

    def __init__(self, owner: Owner) -> None:
        super().__init__()
        self._owner = owner

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk]:
        if not self.calls:
            await in_thread(forget_memories, self._owner.pk)
        async for chunk in super().stream(request):
            yield chunk


async def test_a_turn_that_is_open_writes_nothing_of_before_back(
    alice: Owner, alice_api: Api, session: Session
) -> None:
    model = Forgetting(alice)
    previous = upstream.install(model)
    quoted = {"content": "Keeps a heron called Quillonthorpe.", "evidence": "I keep a heron called Quillonthorpe"}
    model.script(calls(("add_memory", json.dumps(quoted))), "Well.")
    await in_thread(memory_make, alice, "Likes tea.")
    said = {"content": "I keep a heron called Quillonthorpe, remember it."}
    status, turn = await alice_api.post(f"/api/sessions/{session.pk}/turns", said)
    upstream.install(previous)
    assert (status, turn["content"], turn["memory_changes"]) == (200, "Well.", [])
    assert await in_thread(Memory.objects.count) == 0
    assert "book_cleared" in str(model.calls[1].messages[-1]["content"])
