"""Tool loops of clients: the model sees what the client sends, with our own calls and results in their places"""

from collections.abc import Sequence
from typing import Any

import pytest

from gateway.models import Agent, Message, Run
from gateway.runs.tool_loop import loop_messages, loop_start
from memories.database.access import in_thread
from memories.errors import UpstreamError
from tests.conftest import Api
from tests.factories import agent_make
from tests.gateway.client_tools import ADD, FIRST, LOOKUP, SECOND, USER, results, tool_calls_of
from tests.gateway.v1 import ask, stream
from tests.scripted_model import Says, ScriptedModel, calls

NOTE = {"role": "system", "content": "The tests are green again."}


def sent(model: ScriptedModel, number: int) -> list[dict[str, Any]]:
    """Return the messages of a call without the leading system message."""
    return [message for message in model.calls[number].messages if message is not model.calls[number].messages[0]]


async def test_each_step_has_its_own_completion_id(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    """Clients that store messages by ID (LangGraph in JavaScript) would otherwise overwrite the first step."""
    model.script(calls(FIRST), calls(SECOND), "Done.")
    first = await ask(alice_api, USER, tools=[LOOKUP])
    second = await ask(alice_api, USER, *results(first, "A"), tools=[LOOKUP])
    messages = [USER, *results(first, "A"), *results(second, "B")]
    chunks = await stream(alice_api, *messages, tools=[LOOKUP])
    ids = [first.json["id"], second.json["id"], *{chunk["id"] for chunk in chunks}]
    assert len(set(ids)) == len(ids) == 3
    assert all(completion_id.startswith("chatcmpl-") for completion_id in ids)


async def test_a_result_cleared_by_the_client_is_not_sent(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script(calls(FIRST), calls(SECOND), "Done.")
    first_step = results(await ask(alice_api, USER, tools=[LOOKUP]), "A long result")
    second = await ask(alice_api, USER, *first_step, tools=[LOOKUP])
    cleared = [first_step[0], {**first_step[1], "content": "[cleared]"}]
    assert (await ask(alice_api, USER, *cleared, *results(second, "B"), tools=[LOOKUP])).text == "Done."
    assert [message["content"] for message in sent(model, 2)] == ["Look it up", None, "[cleared]", None, "B"]
    stored = await in_thread(lambda: list(Message.objects.filter(role="tool").values_list("text", flat=True)))
    assert stored == ["A long result", "B"]  # the transcript keeps the original


@pytest.mark.parametrize(("texts", "expected"), [(("A", "A"), "A"), (("A", "", "B"), "A\n\nB")])
async def test_several_results_of_one_call_are_sent_as_one(
    alice_api: Api, agent: Agent, model: ScriptedModel, texts: Sequence[str], expected: str
) -> None:
    """Anthropic and Gemini refuse a second one, and then the whole conversation."""
    model.script(calls(FIRST), "Done.")
    message, result = results(await ask(alice_api, USER, tools=[LOOKUP]), "")
    await ask(alice_api, USER, message, *({**result, "content": text} for text in texts), tools=[LOOKUP])
    *_, last = model.calls[1].body(stream=False)["messages"]
    assert (last["role"], last["content"]) == ("tool", expected)
    assert [row["role"] for row in model.calls[1].body(stream=False)["messages"]].count("tool") == 1


async def test_results_without_an_id_belong_to_the_calls_before_them_in_order(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    """Qwen-Agent sends such results, which vLLM and Ollama accept."""
    model.script(calls(FIRST, SECOND), "Done.")
    message, *made = results(await ask(alice_api, USER, tools=[LOOKUP]), "A", "B")
    unnamed = [{"role": "tool", "content": result["content"]} for result in made]
    assert (await ask(alice_api, USER, message, *unnamed, tools=[LOOKUP])).text == "Done."
    assert [(row["content"], row["tool_call_id"]) for row in sent(model, 1)[-2:]] == [
        (result["content"], result["tool_call_id"]) for result in made
    ]
    assert await in_thread(Run.objects.count) == 1


async def test_a_call_without_an_id_is_tolerated(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script(calls(FIRST), "Done.")
    said, result = results(await ask(alice_api, USER, tools=[LOOKUP]), "A")
    nameless = {"type": "function", "function": {"name": "lookup", "arguments": "{}"}}
    said["tool_calls"] = [nameless, *said["tool_calls"]]
    assert (await ask(alice_api, USER, said, result, tools=[LOOKUP])).text == "Done."


async def test_a_call_and_its_result_without_ids_are_stored_without(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Done.")
    nameless = {"type": "function", "function": {"name": "lookup", "arguments": "{}"}}
    said = {"role": "assistant", "content": None, "tool_calls": [nameless]}
    await ask(alice_api, USER, said, {"role": "tool", "content": "A"}, {"role": "assistant", "content": "Found."}, USER)
    stored = await in_thread(Message.objects.get, role="tool")
    assert (stored.text, stored.tool_call_id) == ("A", "")


async def test_a_message_inside_the_loop_stays_in_its_place(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script(calls(FIRST), calls(SECOND), "Done.")
    first_step = results(await ask(alice_api, USER, tools=[LOOKUP]), "A")
    second = await ask(alice_api, USER, *first_step, tools=[LOOKUP])
    await ask(alice_api, USER, *first_step, NOTE, *results(second, "B"), tools=[LOOKUP])
    assert [message["role"] for message in sent(model, 2)] == [
        "user",
        "assistant",
        "tool",
        "system",
        "assistant",
        "tool",
    ]
    user_note = {"role": "user", "content": "Only the first one, please"}
    model.script(calls(FIRST), calls(SECOND), "Done.")
    first_step = results(await ask(alice_api, {"role": "user", "content": "Again"}, tools=[LOOKUP]), "A")
    second = await ask(alice_api, {"role": "user", "content": "Again"}, *first_step, tools=[LOOKUP])
    third = await ask(
        alice_api, {"role": "user", "content": "Again"}, *first_step, user_note, *results(second, "B"), tools=[LOOKUP]
    )
    assert third.run == second.run
    assert [message["role"] for message in sent(model, 5)] == ["user", "assistant", "tool", "user", "assistant", "tool"]


async def test_steps_that_the_client_leaves_out_are_not_sent(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(calls(ADD, FIRST), calls(SECOND), "Done.")
    first_step = results(await ask(alice_api, USER, tools=[LOOKUP]), "A")
    second = await ask(alice_api, USER, *first_step, tools=[LOOKUP])
    assert (await ask(alice_api, USER, *results(second, "B"), tools=[LOOKUP])).text == "Done."
    said = sent(model, 2)
    assert [message["role"] for message in said] == ["user", "assistant", "tool", "assistant", "tool"]
    assert [call["function"]["name"] for call in said[1]["tool_calls"]] == [
        "add_memory"
    ]  # our call stays, with its result
    assert '"ok": true' in said[2]["content"]
    assert said[4]["content"] == "B"


async def test_calls_have_different_ids_although_the_client_leaves_out_earlier_ones(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    """A client that sends only the newest messages would otherwise get the same id for each step."""
    model.script(calls(FIRST), calls(SECOND), calls(FIRST), "Done.")
    answer = await ask(alice_api, USER, tools=[LOOKUP])
    ids = [call["id"] for call in tool_calls_of(answer)]
    for result in ("A", "B"):
        answer = await ask(alice_api, USER, *results(answer, result), tools=[LOOKUP])
        ids += [call["id"] for call in tool_calls_of(answer)]
    assert (await ask(alice_api, USER, *results(answer, "C"), tools=[LOOKUP])).text == "Done."
    assert len({*ids}) == 3
    stored = await in_thread(lambda: list(Message.objects.filter(role="tool").values_list("text", "tool_call_id")))
    assert stored == list(zip("ABC", ids, strict=True))


async def test_an_unchanged_loop_is_sent_as_the_model_wrote_it(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(
        Says(pieces=("Let me note that.",), calls=(ADD,)),
        Says(pieces=("And look.",), calls=(FIRST,)),
        Says(pieces=("Once more.",), calls=(SECOND,)),
        "Done.",
    )
    first = await ask(alice_api, USER, tools=[LOOKUP])
    first_step = results(first, "A")
    second = await ask(alice_api, USER, *first_step, tools=[LOOKUP])
    await ask(alice_api, USER, *first_step, *results(second, "B"), tools=[LOOKUP])
    assert sent(model, 2)[: len(sent(model, 1))] == sent(model, 1)
    assert sent(model, 3)[: len(sent(model, 2))] == sent(model, 2)
    assert [message["content"] for message in sent(model, 3)[1::2]] == ["Let me note that.", "And look.", "Once more."]


async def test_steps_that_the_client_joins_are_sent_as_the_model_made_them(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(calls(FIRST), calls(SECOND), "Done.")
    said, result = results(await ask(alice_api, USER, tools=[LOOKUP]), "A")
    second, last = results(await ask(alice_api, USER, said, result, tools=[LOOKUP]), "B")
    joined = {**said, "tool_calls": [*said["tool_calls"], *second["tool_calls"]]}
    assert (await ask(alice_api, USER, joined, result, last, tools=[LOOKUP])).text == "Done."
    assert [message["role"] for message in sent(model, 2)] == ["user", "assistant", "tool", "assistant", "tool"]
    assert sent(model, 2)[: len(sent(model, 1))] == sent(model, 1)
    assert [message["content"] for message in sent(model, 2)[2::2]] == ["A", "B"]


async def test_steps_of_two_runs_may_be_joined(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    """A step that failed is repeated in another run."""
    model.script(calls(FIRST), UpstreamError("no"), calls(SECOND), calls(ADD, FIRST), "Done.")
    said, result = results(await ask(alice_api, USER, tools=[LOOKUP]), "A")
    assert (await ask(alice_api, USER, said, result, tools=[LOOKUP])).status == 502
    second, last = results(await ask(alice_api, USER, said, result, tools=[LOOKUP]), "B")
    joined = {**said, "tool_calls": [*said["tool_calls"], *second["tool_calls"]]}
    third, newest = results(await ask(alice_api, USER, joined, result, last, tools=[LOOKUP]), "C")
    assert [message["role"] for message in sent(model, 3)] == ["user", "assistant", "tool", "tool"]
    assert [call["id"] for call in sent(model, 3)[1]["tool_calls"]] == [result["tool_call_id"], last["tool_call_id"]]
    joined["tool_calls"] += third["tool_calls"]
    assert (await ask(alice_api, USER, joined, result, last, newest, tools=[LOOKUP])).text == "Done."
    stored = await in_thread(lambda: list(Message.objects.filter(role="tool").order_by("seq")))
    assert [row.text for row in stored if '"ok"' not in row.text] == ["A", "B", "C"]
    request = sent(model, 4)
    called = [call["id"] for message in request for call in message.get("tool_calls", ())]
    assert sorted(called) == sorted(message["tool_call_id"] for message in request if message["role"] == "tool")


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
AGNO = {"type": "text", "text": "The tool call above generated the attached media."}


@pytest.mark.parametrize("content", [[PICTURE], [AGNO, PICTURE]])
async def test_a_picture_that_a_tool_returned_is_not_a_turn(
    alice_api: Api, agent: Agent, model: ScriptedModel, content: list[dict[str, Any]]
) -> None:
    """A tool message cannot hold pictures, so clients (Strands, Agno) send them as the user."""
    model.script(calls(FIRST), calls(SECOND), "A map.", "Next.")
    picture = {"role": "user", "content": content}
    one = [*results(await ask(alice_api, USER, tools=[LOOKUP]), "See the map."), picture]
    second = await ask(alice_api, USER, *one, tools=[LOOKUP])
    two = results(second, "B")
    third = await ask(alice_api, USER, *one, *two, tools=[LOOKUP])
    assert (third.text, third.run) == ("A map.", second.run)
    assert [message["role"] for message in sent(model, 2)] == [
        "user", "assistant", "tool", "user", "assistant", "tool",
    ]  # fmt: skip
    assert sent(model, 2)[3]["content"][-1]["type"] == "image_url"
    said = [USER, *one, *two, {"role": "assistant", "content": "A map."}, {"role": "user", "content": "And now?"}]
    assert (await ask(alice_api, *said, tools=[LOOKUP])).session == second.session
    assert await in_thread(lambda: list(Run.objects.order_by("id").values_list("turn", flat=True))) == [1, 2]


def with_id(messages: list[dict[str, Any]], call_id: str) -> list[dict[str, Any]]:
    """Return a step with another id in place of ours, and other white space in the arguments."""
    said, *given = messages
    made = [{**call, "id": call_id, "function": {**call["function"]}} for call in said["tool_calls"]]
    for call in made:
        call["function"]["arguments"] = call["function"]["arguments"].replace(": ", ":")
    return [{**said, "tool_calls": made}, *({**result, "tool_call_id": call_id} for result in given)]


@pytest.mark.any_database
@pytest.mark.parametrize("ids", [("a1b2c3d4e", "f5g6h7i8j"), ("lookup", "lookup")])
async def test_a_client_may_replace_our_call_ids(
    alice_api: Api, agent: Agent, model: ScriptedModel, ids: tuple[str, str]
) -> None:
    model.script(calls(ADD, FIRST), calls(SECOND), "Done.", "Next.")
    first = await ask(alice_api, USER, tools=[LOOKUP])
    one = with_id(results(first, "A"), ids[0])
    second = await ask(alice_api, USER, *one, tools=[LOOKUP])
    two = with_id(results(second, "B"), ids[1])
    third = await ask(alice_api, USER, *one, *two, tools=[LOOKUP])
    assert (third.text, third.run) == ("Done.", first.run)
    assert [message.get("content") for message in sent(model, 2) if message["role"] == "tool"][1:] == ["A", "B"]
    said = [USER, *one, *two, {"role": "assistant", "content": "Done."}, {"role": "user", "content": "And now?"}]
    assert (await ask(alice_api, *said, tools=[LOOKUP])).session == first.session
    assert await in_thread(lambda: list(Run.objects.order_by("id").values_list("turn", flat=True))) == [1, 2]


async def test_other_calls_of_the_same_message_do_not_resume_its_run(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(calls(FIRST), "Done.")
    first = await ask(alice_api, USER, tools=[LOOKUP])
    step = with_id(results(first, "A"), "mine")
    step[0]["tool_calls"][0]["function"]["arguments"] = '{"q": "another"}'
    other = await ask(alice_api, USER, *step, tools=[LOOKUP])
    assert (other.text, other.run != first.run) == ("Done.", True)


async def test_the_clients_changes_to_text_and_arguments_are_sent(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(
        Says(pieces=("Let me note that.",), calls=(ADD,)), Says(pieces=("And look.",), calls=(FIRST,)), "Done."
    )
    first_step = results(await ask(alice_api, USER, tools=[LOOKUP]), "A")
    first_step[0]["content"] = "Looked."
    first_step[0]["tool_calls"][0]["function"]["arguments"] = "{}"
    await ask(alice_api, USER, *first_step, tools=[LOOKUP])
    _, noted, _, looked, _ = sent(model, 2)
    assert (noted["content"], looked["content"]) == (None, "Looked.")
    assert looked["tool_calls"][0]["function"] == {"name": "lookup", "arguments": "{}"}


async def test_another_model_may_take_the_next_step(
    alice_api: Api, alice: Any, agent: Agent, model: ScriptedModel
) -> None:
    await in_thread(agent_make, "quick", model="small-model")
    model.script(calls(FIRST), "Done.")
    first = await ask(alice_api, USER, tools=[LOOKUP])
    second = await ask(alice_api, USER, *results(first, "A"), tools=[LOOKUP], model="quick")
    assert (second.status, second.run, second.json["model"]) == (200, first.run, "quick")
    assert [call.model for call in model.calls] == ["gpt-4o-mini", "small-model"]
    assert (await in_thread(Run.objects.select_related("session__agent").get)).session.agent.name == "assistant"


async def test_a_model_with_another_book_is_refused(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    await in_thread(agent_make, "apart", book="work")
    model.script(calls(FIRST), "Done.")
    first = await ask(alice_api, USER, tools=[LOOKUP])
    refused = await ask(alice_api, USER, *results(first, "A"), tools=[LOOKUP], model="apart")
    assert (refused.status, refused.code) == (400, "invalid_request")
    assert "Send them to assistant" in refused.json["error"]["message"]
    assert (await ask(alice_api, USER, *results(first, "A"), tools=[LOOKUP])).run == first.run  # it still waits
    unknown = await ask(alice_api, USER, *results(first, "A"), tools=[LOOKUP], model="nobody")
    assert unknown.status == 404


def _call(*call_ids: str) -> dict[str, Any]:
    calls = [{"id": call_id, "type": "function", "function": {}} for call_id in call_ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": call_id}


@pytest.mark.parametrize(
    ("sent_messages", "expected"),
    [
        ([], ["o", "=o", "c1", "=c1", "c2"]),
        ([_result("c2")], ["o", "=o", "c1", "=c1", "c2", "=c2"]),
        ([_call("c1"), _result("c1"), _call("c2"), _result("c2")], ["o", "=o", "c1", "=c1", "c2", "=c2"]),
        ([_call("c2"), _result("c2")], ["o", "=o", "c2", "=c2"]),
        # A stored transcript, which includes our calls, and steps that are repeated or reordered.
        ([_call("o"), _result("o"), _call("c1"), _result("c1")], ["o", "=o", "c1", "=c1"]),
        ([_call("c2"), _result("c2"), _call("c1"), _result("c1")], ["o", "=o", "c2", "=c2", "c1", "=c1"]),
        ([_call("c1"), _call("c1"), _result("c1")], ["o", "=o", "c1", "c1", "=c1"]),
        ([_call("x"), _result("x"), _call("c1"), _result("c1")], ["x", "=x", "o", "=o", "c1", "=c1"]),
        # Steps that the client joined; of a call without a result nothing can be sent.
        ([_call("c1", "c2"), _result("c1"), _result("c2")], ["o", "=o", "c1", "=c1", "c2", "=c2"]),
        ([_call("c1", "c2"), _result("c2")], ["o", "=o", "c2", "=c2"]),
        ([_call("o", "c1"), _result("o"), _result("c1")], ["o", "=o", "c1", "=c1"]),
    ],
)
def test_our_own_calls_and_results_are_merged_into_the_loop(
    sent_messages: list[dict[str, Any]], expected: list[str]
) -> None:
    stored = [_call("o"), _result("o"), _call("c1"), _result("c1"), _call("c2")]
    merged = loop_messages(stored, sent_messages, frozenset({"c1", "c2"}))
    merged_ids = [
        f"={message['tool_call_id']}" if message["role"] == "tool" else message["tool_calls"][0]["id"]
        for message in merged
    ]
    assert merged_ids == expected


def test_loop_start_finds_the_beginning_of_the_loop() -> None:
    user = {"role": "user", "content": "a"}
    ours = frozenset({"c1"})
    assert loop_start([user, _call("x"), _result("x"), _call("c1"), _result("c1")], ours) == 3
    assert loop_start([user, _call("o"), _result("o"), _call("c1"), _result("c1")], ours, frozenset({"o"})) == 1
    assert loop_start([_call("o"), user, _call("x"), _call("c1"), _result("c1")], ours, frozenset({"o"})) == 3
    assert loop_start([user, _call("c1"), user, _result("c1")], ours) == 1
    assert loop_start([user, user, _result("c1")], ours) == 2
    assert loop_start([_result("c1")], ours) == 0
    assert loop_start([{"role": "assistant", "tool_calls": "odd"}, user], ours) == 2
