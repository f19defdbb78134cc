"""Open runs whose process is stopped or dies"""

import asyncio
import subprocess
import threading
from collections.abc import AsyncGenerator, Generator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
import time_machine
from django.conf import settings as django_settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings

from gateway.errors import Restarting, SessionBusy
from gateway.models import Agent, Message, Run, Session
from gateway.runs import active, ending, leases
from gateway.runs.active import ActiveRun, StoppedBy
from gateway.runs.context import RunOutput
from gateway.runs.ending import release_lapsed, stop_lapsed, stop_left_behind, stop_run
from gateway.runs.leases import has_ended, this_process
from gateway.runs.native import open_native
from gateway.runs.opening import open_run
from gateway.turns.events import TurnOptions
from gateway.turns.live import LiveTurn
from memories.database.access import in_spare_thread, in_thread
from memories.ids import uuid7
from memories.models import Memory, Owner
from tests import warm_process
from tests.conftest import Api
from tests.e2e.running import MANAGE, environment
from tests.factories import caller_make, session_make
from tests.scripted_model import Hangs, ScriptedModel, calls
from tests.shutdown import close_lanes
from tests.sweeps import pass_time
from tests.waiting import eventually_async

USER: Any = {"role": "user", "content": "Hi"}
SQLITE = connection.vendor == "sqlite"


@pytest_asyncio.fixture
async def shut_down() -> AsyncGenerator[Any]:
    """Yield a function that shuts down the handling of runs; it is reset afterwards."""
    yield active.shut_down
    active.reset()


def run_make(session: Session, text: str = "", **more: Any) -> Run:
    """Create an open run of another process, with its user message."""
    fields = {"lease_expires_at": timezone.now() + timedelta(seconds=20), "request_id": "r", "turn": 1, **more}
    run = Run.objects.create(owner_id=session.owner_id, session=session, text=text, **fields)
    session.message_seq += 1
    Message.objects.create(owner_id=session.owner_id, session=session, run=run, seq=session.message_seq, role="user")
    session.save()
    return run


def v1_body(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "assistant", "messages": list(messages), **more}


async def transcript() -> list[tuple[str, str]]:
    return await in_thread(lambda: list(Message.objects.order_by("seq").values_list("role", "text")))


async def only_run() -> Run:
    return await in_thread(Run.objects.get)


async def has_flushed(text: str) -> None:
    """Wait until the row of the only run contains the text."""
    await eventually_async(lambda: in_thread(Run.objects.filter(text=text, state="running").exists), within=5)


async def live_turn(owner: Owner, session: Session) -> LiveTurn:
    context = await open_run(
        open_native, caller_make(owner), session_id=session.pk, content="Hi", replaces=None, request_id="r"
    )
    turn = LiveTurn(context)
    turn.start(TurnOptions())
    return turn


# ---- shutdown ----


async def test_a_native_turn_is_stopped_and_keeps_its_text(
    alice: Owner, session: Session, model: ScriptedModel, shut_down: Any
) -> None:
    model.script(Hangs(("Half an ", "answer")))
    turn = await live_turn(alice, session)
    watch_task = asyncio.create_task(_events(turn))
    await eventually_async(lambda: turn.text, within=5)
    await shut_down()
    run = await only_run()
    assert (run.state, run.text, run.error) == ("stopped", "Half an answer", None)
    assert run.trace["stopped_by"] == "restart"
    assert await transcript() == [("user", "Hi"), ("assistant", "Half an answer")]
    name, data = (await watch_task)[-1]
    assert (name, data["state"], data["content"]) == ("done", "stopped", "Half an answer")


async def test_a_v1_stream_ends_with_a_restart_error(
    alice_api: Api, agent: Agent, model: ScriptedModel, shut_down: Any
) -> None:
    model.script(Hangs(("Half",)))
    request_task = asyncio.create_task(alice_api.stream("/v1/chat/completions", v1_body(USER, stream=True)))
    await has_flushed("Half")
    await shut_down()
    status, body = await request_task
    last = body.strip().splitlines()[-1]
    assert status == 200
    assert '"code":"overloaded"' in last.replace('": "', '":"')
    assert "restarting" in last
    assert "[DONE]" not in body
    run = await only_run()
    assert (run.state, run.trace["stopped_by"]) == ("stopped", "restart")
    assert await transcript() == [("user", "Hi"), ("assistant", "Half")]


async def test_an_unstreamed_v1_request_gets_503_with_retry_after(
    alice_api: Api, agent: Agent, model: ScriptedModel, shut_down: Any
) -> None:
    model.script(Hangs())
    request_task = asyncio.create_task(alice_api.raw("POST", "/v1/chat/completions", v1_body(USER)))
    await eventually_async(lambda: model.calls, within=5)
    await shut_down()
    answer = await request_task
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "overloaded")
    assert 0 < int(answer["Retry-After"]) <= 30
    assert (await only_run()).state == "stopped"


async def test_no_run_is_opened_during_shutdown(alice_api: Api, session: Session, shut_down: Any) -> None:
    await shut_down()
    status, body = await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Hi"})
    assert (status, body["error"]["code"]) == (503, "overloaded")
    assert not await in_thread(Run.objects.exists)


async def test_memory_writes_of_a_stopped_turn_stay_but_the_turn_is_not_counted(
    alice: Owner, session: Session, model: ScriptedModel, shut_down: Any
) -> None:
    model.script(calls(("add_memory", '{"content": "Is vegetarian."}')), Hangs(("Noted, and",)))
    turn = await live_turn(alice, session)
    await eventually_async(lambda: turn.text, within=5)
    await shut_down()
    stored = await in_thread(Session.objects.get)
    assert (stored.turns, stored.turns_since_memory_review) == (0, 0)
    assert await in_thread(Memory.objects.filter(content="Is vegetarian.").exists)


async def test_a_stopped_turn_can_be_regenerated(
    alice: Owner, alice_api: Api, session: Session, model: ScriptedModel, shut_down: Any
) -> None:
    model.script(Hangs(("Half",)), "Whole.")
    turn = await live_turn(alice, session)
    await eventually_async(lambda: turn.text, within=5)
    await shut_down()
    active.reset()
    path = f"/api/sessions/{session.pk}/turns"
    status, again = await alice_api.post(path, {"content": "Hi", "replaces": str(turn.context.run_id)})
    assert (status, again["content"], again["turns_since_memory_review"]) == (200, "Whole.", 1)


# ---- while a run is active ----


async def test_the_text_of_a_v1_run_is_stored_while_it_is_generated(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(Hangs(("Half an answer",)))
    request_task = asyncio.create_task(alice_api.stream("/v1/chat/completions", v1_body(USER, stream=True)))
    await has_flushed("Half an answer")
    request_task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request_task
    assert (await only_run()).trace["stopped_by"] == "client"


def test_texts_and_leases_of_all_runs_take_a_fixed_number_of_statements(alice: Owner, agent: Agent) -> None:
    runs = [run_make(session_make(alice, agent), holder=this_process()) for _ in range(5)]
    foreign = run_make(session_make(alice, agent), holder=uuid7())
    said = {run.lease_token: f"said {run.pk}" for run in runs if run.lease_token}
    with CaptureQueriesContext(connection) as texts:
        leases.save_and_renew([*said], said, renew=False)
    assert len(texts) == 2  # the texts, and the open runs
    with CaptureQueriesContext(connection) as renewals:
        leases.save_and_renew([*said], {}, renew=True)
    assert len(renewals) == 2
    with CaptureQueriesContext(connection) as idle:
        found = leases.save_and_renew([*said], {}, renew=False)
    assert len(idle) == 1
    assert found == dict.fromkeys(said, False)
    for run in runs:
        run.refresh_from_db()
        assert run.text == f"said {run.pk}"
        assert run.lease_expires_at
        assert run.lease_expires_at > timezone.now() + timedelta(seconds=25)
    before = foreign.lease_expires_at
    foreign.refresh_from_db()
    assert (foreign.text, foreign.lease_expires_at) == ("", before)


def test_a_finished_run_is_not_written_to(session: Session) -> None:
    run = run_make(session, "All of it.", holder=this_process(), state="completed")
    assert run.lease_token
    assert leases.save_and_renew([run.lease_token], {run.lease_token: "Half"}, renew=True) == {}
    run.refresh_from_db()
    assert run.text == "All of it."


def test_the_lease_of_a_run_that_could_not_be_closed_ends(alice: Owner, agent: Agent) -> None:
    """Such a run would otherwise block its session for as long as its process has other runs."""
    executed, lost = (run_make(session_make(alice, agent), holder=this_process()) for _ in range(2))
    assert executed.lease_token
    before = lost.lease_expires_at
    assert leases.save_and_renew([executed.lease_token], {}, renew=True) == {executed.lease_token: False}
    lost.refresh_from_db()
    assert lost.lease_expires_at == before


async def test_a_stop_requested_in_another_process_takes_effect(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(Hangs(("Half",)))
    request_task = asyncio.create_task(alice_api.stream("/v1/chat/completions", v1_body(USER, stream=True)))
    await has_flushed("Half")
    run = await only_run()
    await in_thread(ending.request_stop, run.owner_id, run.session_id, run.pk)
    _, body = await request_task
    assert "This answer was stopped." in body
    stopped = await only_run()
    assert (stopped.state, stopped.trace["stopped_by"]) == ("stopped", "request")


async def test_a_run_stopped_by_another_process_is_not_superseded(
    alice: Owner, session: Session, model: ScriptedModel
) -> None:
    model.script(Hangs(("Half",)))
    turn = await live_turn(alice, session)
    await has_flushed("Half")
    assert await in_thread(stop_run, turn.context.run_id)
    names = [name for name, _ in await _events(turn)]
    assert names[-1] == "done"
    run = await only_run()
    assert (run.state, run.superseded) == ("stopped", False)
    assert await transcript() == [("user", "Hi"), ("assistant", "Half")]


# ---- after a kill ----


async def test_an_answer_that_another_process_ended_is_not_said_to_be_kept() -> None:
    """It may be gone with its session or its account."""
    context: Any = SimpleNamespace(run_id=uuid7())
    output, task = RunOutput(), asyncio.current_task()
    assert task
    said = {
        by: str(ActiveRun(context, output, task, flushed=0, stopped_by=by).stop_error())
        for by in (StoppedBy.TAKEN_OVER, StoppedBy.REQUEST)
    }
    assert said[StoppedBy.TAKEN_OVER] == "This answer was stopped."
    assert said[StoppedBy.REQUEST] == "This answer was stopped. Its text so far is kept."


async def test_the_next_turn_takes_over_after_the_lease_expired(
    alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    run = await in_thread(run_make, session, "Half", lease_expires_at=timezone.now() - timedelta(seconds=1))
    model.script("Whole.")
    status, turn = await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Go on"})
    assert (status, turn["content"]) == (200, "Whole.")
    assert (await in_thread(Run.objects.get, pk=run.pk)).state == "stopped"
    assert [text for _, text in await transcript()] == ["", "Half", "Go on", "Whole."]
    assert [message["content"] for message in model.calls[0].messages][2:] == ["Half", "Go on"]


async def test_a_conflict_says_how_long_the_lease_lasts(alice_api: Api, session: Session) -> None:
    await in_thread(run_make, session, "Half", lease_expires_at=timezone.now() + timedelta(seconds=12))
    answer = await alice_api.raw("POST", f"/api/sessions/{session.pk}/turns", {"content": "Go on"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")
    assert 1 <= int(answer["Retry-After"]) <= 12


async def test_a_stop_ends_a_run_whose_process_is_gone(alice_api: Api, session: Session) -> None:
    run = await in_thread(run_make, session, "Half", lease_expires_at=timezone.now() - timedelta(seconds=1))
    status, turn = await alice_api.post(f"/api/sessions/{session.pk}/turns/{run.pk}/stop")
    assert (status, turn["state"]) == (200, "stopped")
    assert [text for _, text in await transcript()] == ["", "Half"]


async def test_a_stop_ends_a_run_whose_process_does_not_react(
    alice_api: Api, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.runs.ending.PATIENCE_SECONDS", 0.1)
    run = await in_thread(run_make, session, "Half")
    status, turn = await alice_api.post(f"/api/sessions/{session.pk}/turns/{run.pk}/stop")
    assert (status, turn["state"]) == (200, "stopped")


def test_the_sweep_stops_runs_with_an_expired_lease(alice: Owner, agent: Agent) -> None:
    gone = run_make(session_make(alice, agent), "Half", lease_expires_at=timezone.now() - timedelta(seconds=1))
    alive = run_make(session_make(alice, agent), "Half", holder=this_process())
    assert stop_lapsed(timezone.now()) == 1
    assert stop_lapsed(timezone.now()) == 0
    gone.refresh_from_db()
    alive.refresh_from_db()
    assert (gone.state, gone.lease_token, gone.error, alive.state) == ("stopped", None, None, "running")
    assert gone.trace["stopped_by"] == "process"
    assert list(Message.objects.filter(role="assistant").values_list("text", flat=True)) == ["Half"]


def test_a_live_run_is_not_stopped_when_the_clock_is_set_back(session: Session) -> None:
    run = run_make(session, "Half", lease_expires_at=leases.lease_end(), holder=this_process())
    assert run.lease_token
    with time_machine.travel(timezone.now() - timedelta(hours=1), tick=False) as clock:
        assert stop_lapsed(timezone.now()) == 0
        with pytest.raises(SessionBusy) as busy:
            release_lapsed(session)
        assert busy.value.details["retry_after"] <= leases.LEASE.seconds
        clock.shift(timedelta(seconds=5))
        leases.save_and_renew([run.lease_token], {}, renew=True)
        clock.shift(timedelta(seconds=29))
        assert stop_lapsed(timezone.now()) == 0
    run.refresh_from_db()
    assert run.state == Run.State.RUNNING


def test_a_live_run_is_not_stopped_when_the_clock_is_set_forward(session: Session) -> None:
    run = run_make(session, "Half", lease_expires_at=leases.lease_end(), holder=this_process())
    assert run.lease_token
    assert stop_lapsed(timezone.now()) == 0
    with time_machine.travel(timezone.now() + timedelta(hours=1), tick=False) as clock:
        assert stop_lapsed(timezone.now()) == 0
        with pytest.raises(SessionBusy) as busy:
            release_lapsed(session)
        assert busy.value.details["retry_after"] == 1
        pass_time(clock, timedelta(seconds=5))
        leases.save_and_renew([run.lease_token], {}, renew=True)
        pass_time(clock, timedelta(seconds=29))
        assert stop_lapsed(timezone.now()) == 0
        pass_time(clock, timedelta(seconds=2))
        assert stop_lapsed(timezone.now()) == 1, "it was not renewed again"
    run.refresh_from_db()
    assert run.state == Run.State.STOPPED


def test_a_run_without_a_process_ends_soon_after_the_clock_is_set_back(session: Session) -> None:
    run_make(session, "Half", lease_expires_at=leases.lease_end(), holder=this_process())
    with time_machine.travel(timezone.now() - timedelta(hours=1), tick=False) as clock:
        assert stop_lapsed(timezone.now()) == 0
        pass_time(clock, leases.LEASE)
        assert stop_lapsed(timezone.now()) == 1


def test_a_start_stops_runs_of_earlier_processes(alice: Owner, agent: Agent) -> None:
    left = run_make(session_make(alice, agent), "Half", holder=uuid7())
    own = run_make(session_make(alice, agent), "Half", holder=this_process())
    # On a server database another process may be executing it, so only leases count.
    assert stop_left_behind() == (1 if SQLITE else 0)
    assert {run.pk: run.state for run in Run.objects.all()} == {
        left.pk: "stopped" if SQLITE else "running",
        own.pk: "running",
    }


def test_a_start_stops_all_runs_that_were_left_but_a_sweep_only_some(
    alice: Owner, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "MAX_AT_ONCE", 2)
    expired = timezone.now() - timedelta(seconds=1)
    for _ in range(6):
        run_make(session_make(alice, agent), "Half", lease_expires_at=expired)
    assert stop_lapsed(timezone.now()) == 2
    assert stop_left_behind() == 4
    assert not Run.objects.filter(state="running").exists()


def test_a_step_that_is_already_stored_is_not_stored_again(session: Session) -> None:
    """The run had waited for tools of its client and was killed after it resumed."""
    run = run_make(session, "One moment.\n\nIt is", lease_expires_at=timezone.now())
    Message.objects.create(
        owner_id=session.owner_id, session=session, run=run, seq=2, role="assistant", text="One moment."
    )
    session.message_seq = 2
    session.save()
    with CaptureQueriesContext(connection) as stopping:
        assert stop_run(run.pk)
    assert not any(
        query["sql"].startswith("SELECT") and '"parts"' in query["sql"] for query in stopping.captured_queries
    )
    assert list(Message.objects.order_by("seq").values_list("text", flat=True)) == ["", "One moment.", "It is"]


def test_a_run_without_text_leaves_no_message(session: Session) -> None:
    run = run_make(session, lease_expires_at=timezone.now())
    assert stop_run(run.pk)
    assert not stop_run(run.pk)
    assert Message.objects.count() == 1


@pytest.mark.skipif(not SQLITE, reason="with a server database only leases count")
@pytest.mark.django_db
def test_the_end_of_a_process_is_detected_at_once() -> None:
    program = (
        "import sys; from gateway.runs.leases import this_process; print(this_process(), flush=True); sys.stdin.read()"
    )
    other = warm_process.start(
        [str(MANAGE), "shell", "--no-imports", "-c", program],
        env=environment(django_settings.DAYBOOK_HOME),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdin
    assert other.stdout
    with other.stdin, other.stdout:
        name = UUID(other.stdout.readline().strip())
        assert not has_ended(name)
        other.kill()
        other.wait(10)
        assert has_ended(name)
        assert has_ended(name)  # its file was removed by the first check
    assert not has_ended(this_process())
    assert not has_ended(None)


async def _events(turn: LiveTurn) -> list[Any]:
    return [event async for _, event in turn.watch(0)]


@pytest.fixture
def real_threads(settings: Settings) -> Generator[None]:
    """Use one database thread and the spare one, as in a web process."""
    settings.DB_THREADS = 1
    yield
    close_lanes()


@pytest.mark.django_db(transaction=True)
async def test_a_long_query_does_not_delay_shutdown(
    alice: Owner, session: Session, model: ScriptedModel, shut_down: Any, real_threads: None
) -> None:
    model.script(Hangs(("Half",)))
    turn = await live_turn(alice, session)
    await has_flushed("Half")
    may_continue = threading.Event()
    busy = asyncio.create_task(in_thread(may_continue.wait, 30))
    opening = asyncio.create_task(live_turn(alice, session))  # waits for the database thread
    try:
        await shut_down()
        run = await in_spare_thread(Run.objects.get)
        assert (run.state, run.text) == ("stopped", "Half")
        assert (await _events(turn))[-1][0] == "done"
    finally:
        may_continue.set()
        await busy
    with pytest.raises(Restarting):
        await opening
