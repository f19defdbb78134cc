"""Tools of the client: a run waits for the results and resumes with the request that brings them"""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from gateway.api import v1_turn
from gateway.models import Agent, Message, Run, Session
from gateway.runs import ending
from gateway.runs.ending import complete_waiting
from gateway.runs.leases import lease_end
from gateway.sessions.keeping import session_discard
from memories.database.access import in_thread
from memories.errors import UpstreamError
from memories.models import Memory, ThreadRecord
from tests.conftest import Api
from tests.factories import key_make
from tests.gateway.client_tools import ADD, FIRST, LOOKUP, SECOND, USER, results, tool_calls_of
from tests.gateway.v1 import Chat, ask, stream
from tests.scripted_model import Says, ScriptedModel, calls


async def test_a_run_waits_for_the_client_and_resumes(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script(Says(pieces=("One moment.",), calls=(FIRST, SECOND)), "Found it.", "Yes.")
    first = await ask(alice_api, USER, tools=[LOOKUP])
    assert first.json["choices"][0]["finish_reason"] == "tool_calls"
    assert [call["function"]["arguments"] for call in tool_calls_of(first)] == ['{"q": "a"}', '{"q": "b"}']
    assert (await in_thread(Run.objects.get)).state == "awaiting_client_tools"
    tail = results(first, "A", "B")
    second = await ask(alice_api, USER, *tail, tools=[LOOKUP])
    assert (second.run, second.session, second.text) == (first.run, first.session, "Found it.")
    assert second.json["usage"]["total_tokens"] == 10  # of this request only; the run has the sum
    run = await in_thread(Run.objects.get)
    assert (run.state, run.text, run.usage["total_tokens"]) == ("completed", "One moment.\n\nFound it.", 20)
    sent = model.calls[1].messages
    assert [message["role"] for message in sent[1:]] == ["user", "assistant", "tool", "tool"]
    assert [message["tool_call_id"] for message in sent[-2:]] == [call["id"] for call in tool_calls_of(first)]
    # The next turn is matched by content, whatever separates the texts of the steps.
    third = await ask(
        alice_api, USER, *tail, {"role": "assistant", "content": "Found it."}, {"role": "user", "content": "Good"}
    )
    assert third.session == first.session
    assert (await in_thread(Session.objects.get)).turns == 2


@pytest.mark.any_database
async def test_identical_conversations_whose_results_are_resent_stay_apart(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    for _ in range(2):
        model.script(Says(pieces=("One moment. ",), calls=(FIRST,)), "Found it.", "Found more.", "Bye.")
        first = await ask(alice_api, USER, tools=[LOOKUP])
        tail = results(first, "A")
        await ask(alice_api, USER, *tail, tools=[LOOKUP])
        again = await ask(alice_api, USER, *tail, tools=[LOOKUP])
        said = {"role": "assistant", "content": again.text}
        next_turn = await ask(alice_api, USER, *tail, said, {"role": "user", "content": "Thanks"})
        assert (again.session, next_turn.session) == (first.session, first.session)
        assert (await in_thread(lambda pk=first.session: Session.objects.get(pk=pk))).turns == 2


async def test_call_ids_distinguish_identical_conversations(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    conversations, firsts = [], []
    for _ in range(2):
        model.script(calls(FIRST), "Found it.")
        firsts.append(first := await ask(alice_api, USER, tools=[LOOKUP]))
        conversations.append([USER, *results(first, "A")])
        await ask(alice_api, *conversations[-1], tools=[LOOKUP])
    for first, messages in zip(firsts, conversations, strict=True):
        model.script("Bye.")
        said = {"role": "assistant", "content": "Found it."}
        next_turn = await ask(alice_api, *messages, said, {"role": "user", "content": "Thanks"})
        assert next_turn.session == first.session


async def test_a_stream_ends_with_the_tool_calls(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script(calls(FIRST, SECOND))
    chunks = await stream(alice_api, USER, tools=[LOOKUP])
    made = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", [])]
    assert [(call["index"], call["function"]["name"]) for call in made] == [(0, "lookup"), (1, "lookup")]
    assert len({call["id"] for call in made}) == 2
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_our_calls_run_first_and_are_hidden_when_mixed_with_the_clients(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(calls(ADD, FIRST), "Done.")
    first = await ask(alice_api, USER, tools=[LOOKUP])
    assert [call["function"]["name"] for call in tool_calls_of(first)] == ["lookup"]
    assert await in_thread(Memory.objects.filter(content="Is vegetarian.").exists)
    second = await ask(alice_api, USER, *results(first, "A"), tools=[LOOKUP])
    assert second.text == "Done."
    step = model.calls[1].messages[-3:]
    assert [call["function"]["name"] for call in step[0]["tool_calls"]] == ["add_memory", "lookup"]
    assert '"ok": true' in step[1]["content"]
    assert step[2]["content"] == "A"


async def test_several_rounds_keep_their_order(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script(calls(FIRST), calls(SECOND), "Done.")
    first = await ask(alice_api, USER, tools=[LOOKUP])
    one = results(first, "A")
    second = await ask(alice_api, USER, *one, tools=[LOOKUP])
    assert tool_calls_of(second)[0]["id"] != tool_calls_of(first)[0]["id"]
    third = await ask(alice_api, USER, *one, *results(second, "B"), tools=[LOOKUP])
    assert (third.text, third.run) == ("Done.", first.run)
    roles = [message["role"] for message in model.calls[2].messages[1:]]
    assert roles == ["user", "assistant", "tool", "assistant", "tool"]


async def test_a_turn_whose_results_are_sent_without_memory_remembers_nothing_from_there_on(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(calls(FIRST), "Found it.")
    first = await ask(alice_api, USER, tools=[LOOKUP])
    await ask(alice_api, USER, *results(first, "A"), tools=[LOOKUP], metadata={"temporary": "true"})
    offered = [[tool["function"]["name"] for tool in call.tools] for call in model.calls]
    assert ("add_memory" in offered[0], offered[1]) == (True, ["lookup"])
    assert await in_thread(ThreadRecord.objects.count) == 0
    session = await in_thread(Session.objects.get)
    assert (session.turns, session.turns_since_memory_review) == (1, 0)


async def test_results_are_accepted_without_the_conversation(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(calls(FIRST), "Done.")
    first = await ask(alice_api, USER, tools=[LOOKUP])
    second = await ask(alice_api, *results(first, "A"))
    assert second.run == first.run
    assert model.calls[1].messages[1]["content"] == "Look it up"


@pytest.mark.any_database
@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize("position", [1, 2])
async def test_a_system_message_beside_the_results_leaves_the_turn_as_it_is(
    alice_api: Api, agent: Agent, model: ScriptedModel, role: str, position: int
) -> None:
    model.script(calls(FIRST, SECOND), "Done.", "Yes.")
    first = await ask(alice_api, USER, tools=[LOOKUP])
    tail = results(first, "A", "B")
    note = {"role": role, "content": "Two results came."}
    tail.insert(len(tail) - 2 + position, note)
    second = await ask(alice_api, USER, *tail, tools=[LOOKUP])
    assert (second.run, second.text) == (first.run, "Done.")
    sent = model.calls[1].messages
    assert [message["content"] for message in sent if message["role"] == "tool"] == ["A", "B"]
    assert note in sent
    stored = await in_thread(lambda: list(Message.objects.filter(role="tool").order_by("seq")))
    assert [message.text for message in stored] == ["A", "B"]
    third = await ask(
        alice_api, USER, *tail, {"role": "assistant", "content": "Done."}, {"role": "user", "content": "Good"}
    )
    assert (third.session, (await in_thread(Session.objects.get)).turns) == (first.session, 2)


async def test_resent_results_belong_to_the_same_turn(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script(calls(FIRST), UpstreamError("no"), "Done.", "Done again.")
    first = await ask(alice_api, USER, tools=[LOOKUP])
    tail = results(first, "A")
    assert (await ask(alice_api, USER, *tail)).status == 502
    for expected in ("Done.", "Done again."):
        again = await ask(alice_api, USER, *tail)
        assert (again.text, again.session) == (expected, first.session)
    session = await in_thread(Session.objects.get)
    assert (session.turns, session.turns_since_memory_review) == (1, 1)


@pytest.mark.parametrize("role", ["user", "system"])
async def test_resent_results_belong_to_the_same_turn_also_with_a_note_of_the_client(
    alice_api: Api, agent: Agent, model: ScriptedModel, role: str
) -> None:
    model.script(calls(FIRST), "Done.", "Done again.")
    note = {"role": role, "content": "<system-reminder>Be quick.</system-reminder>"}
    first = await ask(alice_api, USER, tools=[LOOKUP])
    for expected in ("Done.", "Done again."):
        again = await ask(alice_api, USER, *results(first, "A"), note, tools=[LOOKUP])
        assert (again.text, again.session) == (expected, first.session)
        assert model.calls[-1].messages[-1] == note
    session = await in_thread(Session.objects.get)
    assert (session.turns, session.turns_since_memory_review) == (1, 1)


@pytest.mark.any_database
@pytest.mark.parametrize("named", [{}, {"x_daybook_session": "mine"}])
async def test_a_step_whose_answer_was_lost_is_repeated(
    alice_api: Api, agent: Agent, model: ScriptedModel, named: dict[str, str]
) -> None:
    """The run waits for other results by then: without them its model would be told that there are none."""
    model.script(calls(FIRST), calls(SECOND), calls(SECOND), "Done.")
    tail = results(await ask(alice_api, USER, tools=[LOOKUP], headers=named), "A")
    lost = await ask(alice_api, USER, *tail, tools=[LOOKUP], headers=named)
    again = await ask(alice_api, USER, *tail, tools=[LOOKUP], headers=named)
    assert (again.session, again.run == lost.run) == (lost.session, False)
    assert [message["role"] for message in model.calls[2].messages[1:]] == ["user", "assistant", "tool"]
    last = await ask(alice_api, USER, *tail, *results(again, "B"), tools=[LOOKUP], headers=named)
    assert (last.run, last.text) == (again.run, "Done.")
    assert (await in_thread(Session.objects.get)).turns == 1


async def test_results_from_another_owner_do_not_resume_a_run(
    alice_api: Api, charlie_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(calls(FIRST), "Hm.")
    first = await ask(alice_api, USER, tools=[LOOKUP])
    tail = results(first, "A")
    theirs = await ask(charlie_api, USER, *tail)
    assert theirs.session != first.session
    assert (await in_thread(Run.objects.get, pk=first.run)).state == "awaiting_client_tools"
    nothing = await ask(charlie_api, *tail)
    assert (nothing.status, nothing.code) == (400, "invalid_request")


async def test_results_from_a_key_without_access_to_the_agent_are_refused(
    alice_api: Api, agent: Agent, model: ScriptedModel, alice: Any
) -> None:
    model.script(calls(FIRST))
    first = await ask(alice_api, USER, tools=[LOOKUP])
    limited, plain = await in_thread(key_make, alice, agents=["assistant"])
    await in_thread(type(limited).objects.filter(pk=limited.pk).update, agents=["other"])
    response = await ask(Api(plain), USER, *results(first, "A"))
    assert (response.status, response.code) == (404, "not_found")


async def test_results_for_a_busy_session_are_a_conflict(
    alice_api: Api, agent: Agent, model: ScriptedModel, monkeypatch: Any
) -> None:
    monkeypatch.setattr(v1_turn, "BUSY_SECONDS", 0.05)
    model.script(calls(FIRST), "Fine.")
    chat = Chat(alice_api, model, headers={"x_daybook_session": "mine"})
    first = await ask(alice_api, USER, tools=[LOOKUP], headers=chat.headers)
    await ask(alice_api, "Never mind", headers=chat.headers)
    newest = await in_thread(Run.objects.latest, "id")
    await in_thread(Run.objects.filter(pk=newest.pk).update, state="running", lease_expires_at=lease_end())
    response = await ask(alice_api, USER, *results(first, "A"))
    assert (response.status, response.code) == (409, "conflict")


async def test_a_run_that_waits_too_long_is_completed(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script(Says(pieces=("One moment.",), calls=(FIRST,)), "Yes.")
    await ask(alice_api, USER, tools=[LOOKUP])
    assert await in_thread(complete_waiting, timezone.now()) == 0
    assert await in_thread(complete_waiting, timezone.now() + timedelta(minutes=61)) == 1
    run, session = await in_thread(Run.objects.get), await in_thread(Session.objects.get)
    assert (run.state, session.turns, session.turns_since_memory_review) == ("completed", 1, 1)
    assert await in_thread(ThreadRecord.objects.filter(run_id=run.pk).exists)
    assert (await in_thread(Message.objects.filter(role="assistant").count)) == 1
    after = await ask(alice_api, USER, "One moment.", "And?")
    assert after.session == str(session.pk)


async def test_a_session_deleted_meanwhile_does_not_keep_other_runs_waiting(
    alice_api: Api, agent: Agent, model: ScriptedModel, monkeypatch: Any
) -> None:
    model.script(calls(FIRST), calls(FIRST))
    deleted, _ = [(await ask(alice_api, USER, tools=[LOOKUP])).session for _ in range(2)]
    end_waited = ending._end_waited

    def delete_first(*run: Any) -> bool:
        session_discard(Session(pk=deleted))
        return end_waited(*run)

    monkeypatch.setattr(ending, "_end_waited", delete_first)
    assert await in_thread(complete_waiting, timezone.now() + timedelta(minutes=61)) == 1
    states = await in_thread(lambda: {str(run.session_id): run.state for run in Run.objects.all()})
    assert sorted(states.values()) == ["awaiting_client_tools", "completed"]
    assert states[str(deleted)] == "awaiting_client_tools"
