"""A client that hangs up while its run is being opened leaves no open run behind."""

import asyncio
from typing import Any

import pytest

from gateway.models import Agent, Run, Session
from gateway.runs import active, opening
from gateway.runs.native import open_native
from gateway.runs.opening import open_run
from gateway.turns.events import TurnOptions
from gateway.turns.live import LiveTurn
from memories.database.access import in_thread
from memories.errors import NotFound
from memories.models import Owner
from tests.factories import caller_make
from tests.scripted_model import ScriptedModel
from tests.waiting import eventually_async

pytestmark = pytest.mark.any_database


async def slowly(function: Any, *args: Any, **kwargs: Any) -> Any:
    """A database thread that is not done yet when its caller is cancelled."""
    started.set()
    await asyncio.shield(go_on.wait())
    return await in_thread(function, *args, **kwargs)


started, go_on = asyncio.Event(), asyncio.Event()


@pytest.fixture(autouse=True)
def slow_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    global started, go_on
    started, go_on = asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(opening, "in_shared_thread", slowly)


async def cancelled(session_id: Any, owner: Owner) -> None:
    """Open a run, and be cancelled before it is open."""
    caller = caller_make(owner)
    task = asyncio.create_task(
        open_run(open_native, caller, session_id=session_id, content="Hi", replaces=None, request_id="r")
    )
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()


async def test_the_run_that_opens_all_the_same_is_stopped(alice: Owner, session: Session) -> None:
    await cancelled(session.pk, alice)

    async def stopped() -> bool:
        return await in_thread(Run.objects.filter(state="stopped").exists)

    await eventually_async(stopped, within=5)
    assert not await in_thread(Run.objects.filter(state="running").exists)


async def test_a_run_that_is_refused_needs_no_closing(alice: Owner, agent: Agent) -> None:
    await cancelled(None, alice)
    await eventually_async(active.is_idle, within=5)
    assert not await in_thread(Run.objects.exists)


async def test_what_goes_wrong_is_raised(alice: Owner, agent: Agent) -> None:
    go_on.set()
    with pytest.raises(NotFound):
        await open_run(open_native, caller_make(alice), session_id=None, content="Hi", replaces=None, request_id="r")


async def test_a_native_turn_that_is_stopped_before_it_began_is_closed(
    alice: Owner, session: Session, model: ScriptedModel
) -> None:
    context = await in_thread(
        open_native, caller_make(alice), session_id=session.pk, content="Hi", replaces=None, request_id="r"
    )
    turn = LiveTurn(context)
    turn.start(TurnOptions())
    turn.stop()
    names = [name async for _, (name, _) in turn.watch(0)]
    assert names == ["done"]
    assert (await in_thread(Run.objects.get)).state == "stopped"
