"""Opening a run: a client that disconnects meanwhile leaves no running run behind"""

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


async def delayed_in_thread(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Stand in for a database thread that is still running when its caller is cancelled."""
    started.set()
    await asyncio.shield(may_continue.wait())
    return await in_thread(function, *args, **kwargs)


started, may_continue = asyncio.Event(), asyncio.Event()


@pytest.fixture(autouse=True)
def slow_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    global started, may_continue
    started, may_continue = asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(opening, "in_shared_thread", delayed_in_thread)


async def open_and_cancel(session_id: Any, owner: Owner) -> None:
    """Start to open a run, and cancel that before the run is open."""
    caller = caller_make(owner)
    task = asyncio.create_task(
        open_run(open_native, caller, session_id=session_id, content="Hi", replaces=None, request_id="r")
    )
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    may_continue.set()


async def test_a_run_that_opens_after_the_cancellation_is_stopped(alice: Owner, session: Session) -> None:
    await open_and_cancel(session.pk, alice)

    async def stopped() -> bool:
        return await in_thread(Run.objects.filter(state="stopped").exists)

    await eventually_async(stopped, within=5)
    assert not await in_thread(Run.objects.filter(state="running").exists)


async def test_a_refused_run_needs_no_closing(alice: Owner, agent: Agent) -> None:
    await open_and_cancel(None, alice)
    await eventually_async(active.is_idle, within=5)
    assert not await in_thread(Run.objects.exists)


async def test_errors_are_raised(alice: Owner, agent: Agent) -> None:
    may_continue.set()
    with pytest.raises(NotFound):
        await open_run(open_native, caller_make(alice), session_id=None, content="Hi", replaces=None, request_id="r")


async def test_a_native_turn_stopped_before_it_starts_is_closed(
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
