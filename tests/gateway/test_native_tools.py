"""Native turns with content parts, parameters and tools of the client"""

import json
from typing import Any

import pytest

from gateway.models import Message, Run, Session
from memories.database.access import in_thread
from memories.errors import UpstreamError
from memories.models import Book, ChangeSet, ThreadRecord, WriteOrigin
from memories.services import MemoryFields, Source, book_writing
from prompts.conversation import NO_RESULT
from tests.conftest import Api
from tests.gateway.client_tools import ADD, FIRST, LOOKUP, SECOND
from tests.gateway.native import Turns, results, turns
from tests.scripted_model import Says, ScriptedModel, calls, says

__all__ = ["turns"]  # a fixture
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
PARTS = [{"type": "text", "text": "What is this?"}, IMAGE]


async def waiting_turn(turns: Turns, model: ScriptedModel) -> dict[str, Any]:
    """Start a turn that waits for the results of two calls."""
    model.script(Says(pieces=("One moment.",), calls=(FIRST, SECOND)))
    status, turn = await turns.send("Look it up", tools=[LOOKUP])
    assert (status, turn["state"], turn["content"]) == (200, "awaiting_client_tools", "One moment.")
    return dict(turn)


async def test_content_parts_reach_the_model_and_stay_in_the_transcript(turns: Turns, model: ScriptedModel) -> None:
    model.script("A dot.", "Red.")
    status, turn = await turns.send(PARTS)
    assert (status, turn["content"]) == (200, "A dot.")
    assert model.calls[0].messages[-1]["content"] == PARTS
    _, listed = await turns.api.get(f"/api/sessions/{turns.session.pk}/messages")
    assert listed["data"][0]["content"] == PARTS
    await turns.send("Its colour?")
    assert model.calls[1].messages[1]["content"] == PARTS
    assert (await in_thread(Session.objects.get)).title == "What is this?"


async def test_regenerating_a_turn_keeps_its_attachments(turns: Turns, model: ScriptedModel) -> None:
    model.script("A dot.", "A red dot.")
    _, turn = await turns.send(PARTS)
    status, again = await turns.api.post(turns.path(), {"replaces": turn["id"]})
    assert (status, again["content"]) == (200, "A red dot.")
    assert [message["content"] for message in model.calls[1].messages[1:]] == [PARTS]


async def test_an_image_alone_is_a_message(turns: Turns, model: ScriptedModel) -> None:
    model.script("A dot.")
    status, _ = await turns.send([IMAGE])
    assert status == 200


@pytest.mark.parametrize(
    "content",
    ["", "  ", [], [{"type": "text", "text": " "}], [{"text": "no type"}], ["text"], [{"type": 5}], 5, None, {}],
)
async def test_empty_and_malformed_content_is_refused(turns: Turns, model: ScriptedModel, content: Any) -> None:
    status, body = await turns.send(content)
    assert (status, body["error"]["code"]) == (400, "invalid_request")
    assert "content" in str(body["error"]["param"])


async def test_parameters_reach_the_model(turns: Turns, model: ScriptedModel) -> None:
    model.script("Hi.")
    await turns.send("Hi", parameters={"temperature": 0.2})
    assert model.calls[0].parameters == {"temperature": 0.2}


@pytest.mark.parametrize("name", ["model", "messages", "stream", "tools"])
async def test_parameters_set_by_the_session_are_refused(turns: Turns, model: ScriptedModel, name: str) -> None:
    status, body = await turns.send("Hi", parameters={name: []})
    assert (status, body["error"]["param"]) == (400, "parameters")
    assert name in body["error"]["message"]


async def test_a_turn_waits_for_the_client_and_resumes(turns: Turns, model: ScriptedModel) -> None:
    turn = await waiting_turn(turns, model)
    assert [call["function"]["name"] for call in turn["tool_calls"]] == ["lookup", "lookup"]
    _, shown = await turns.api.get(turns.path(turn))
    assert (shown["state"], shown["tool_calls"]) == ("awaiting_client_tools", turn["tool_calls"])
    model.script("Found it.")
    status, done = await turns.answer(turn, "A", "B", tools=[LOOKUP])
    assert (status, done["id"], done["state"], done["tool_calls"]) == (200, turn["id"], "completed", [])
    assert done["content"] == "One moment.\n\nFound it."
    sent = model.calls[1].messages
    assert [message["role"] for message in sent[1:]] == ["user", "assistant", "tool", "tool"]
    assert [message["content"] for message in sent[-2:]] == ["A", "B"]
    assert [message["tool_call_id"] for message in sent[-2:]] == [call["id"] for call in turn["tool_calls"]]
    session = await in_thread(Session.objects.get)
    assert (session.turns, await in_thread(ThreadRecord.objects.count)) == (1, 1)
    model.script("Yes.")
    await turns.send("Good")
    assert [message["role"] for message in model.calls[2].messages[1:]] == [
        "user", "assistant", "tool", "tool", "assistant", "user",
    ]  # fmt: skip


async def test_a_resumed_turn_lists_the_memory_changes_from_before(turns: Turns, model: ScriptedModel) -> None:
    model.script(calls(ADD, FIRST), "Done.")
    _, turn = await turns.send("No meat, please", tools=[LOOKUP])
    _, done = await turns.answer(turn, "A")
    assert [change["memory_id"] for change in done["memory_changes"]] == ["1"]


def add_words(number: int) -> None:
    """Add search keywords, as the background job does."""
    source = Source(actor="system", origin=WriteOrigin.SYSTEM, kind=ChangeSet.Kind.SYSTEM)
    with book_writing(Book.objects.get(), source) as writer:
        writer.update(number, MemoryFields(keywords=["paint"]))


@pytest.mark.any_database
async def test_the_writes_of_a_turn_are_one_change_set(turns: Turns, model: ScriptedModel) -> None:
    contents = ("Likes red.", "Likes green.", "Likes blue.")
    writes = [("add_memory", json.dumps({"content": content, "evidence": content})) for content in contents]
    # Two steps of one request, and one after the client's tool results.
    model.script(calls(writes[0]), calls(writes[1], FIRST), calls(writes[2]), "Done.")
    _, turn = await turns.send(" ".join(contents), tools=[LOOKUP])
    await in_thread(add_words, int(turn["memory_changes"][0]["memory_id"]))
    _, turn = await turns.answer(turn, "nothing", tools=[LOOKUP])
    assert [change["after"] for change in turn["memory_changes"]] == [*contents]
    (change_set,) = {change["change_set"] for change in turn["memory_changes"]}
    _, undone = await turns.api.post(f"/api/changes/{change_set}/undo")
    assert len(undone["undone"]) == 3
    model.script(calls(writes[0]), "Done.")
    _, other = await turns.send(contents[0])
    assert other["memory_changes"][0]["change_set"] != change_set, "another turn has its own"


@pytest.mark.any_database
async def test_an_undo_of_a_turn_keeps_what_the_person_changed_between_its_steps(
    turns: Turns, model: ScriptedModel
) -> None:
    model.script(calls(ADD, FIRST), calls(("update_memory", '{"id": 1, "content": "Likes blue."}')), "Done.")
    _, turn = await turns.send("Likes blue.", tools=[LOOKUP])
    number = turn["memory_changes"][0]["memory_id"]
    await turns.api.call("PATCH", f"/api/memories/{number}", {"content": "Likes green."})
    _, turn = await turns.answer(turn, "nothing", tools=[LOOKUP])
    before, after = (change["change_set"] for change in turn["memory_changes"])
    for change_set in (after, before):
        await turns.api.post(f"/api/changes/{change_set}/undo")
    _, memory = await turns.api.get(f"/api/memories/{number}")
    assert memory["content"] == "Likes green."


@pytest.mark.any_database
async def test_a_write_after_an_undo_is_a_change_set_of_its_own(turns: Turns, model: ScriptedModel) -> None:
    model.script(calls(ADD, FIRST), calls(("add_memory", '{"content": "Likes blue."}')), "Done.")
    _, turn = await turns.send("Likes blue.", tools=[LOOKUP])
    before = turn["memory_changes"][0]["change_set"]
    await turns.api.post(f"/api/changes/{before}/undo")
    _, turn = await turns.answer(turn, "nothing", tools=[LOOKUP])
    assert turn["memory_changes"][1]["change_set"] != before
    await turns.api.post(f"/api/changes/{before}/undo")
    _, listed = await turns.api.get("/api/memories")
    assert [memory["content"] for memory in listed["data"]] == ["Likes blue."]


async def test_answers_and_errors_name_session_and_turn(turns: Turns, model: ScriptedModel) -> None:
    for step, status in (("Fine.", 200), (UpstreamError("Not well."), 502)):
        model.script(step)
        response = await turns.api.raw("POST", turns.path(), {"content": "Hi"})
        assert (response.status_code, response["x-daybook-session"]) == (status, str(turns.session.pk))
        assert (await turns.api.get(turns.path({"id": response["x-daybook-run"]})))[0] == 200
    command = await turns.api.raw("POST", turns.path(), {"content": "/memory help"})
    assert command["x-daybook-run"] == command.json()["id"]


async def test_the_continuation_is_streamed(turns: Turns, model: ScriptedModel) -> None:
    turn = await waiting_turn(turns, model)
    model.script(says("Found", " it."))
    body = {"results": results(turn, "A", "B"), "stream": True}
    status, text = await turns.api.stream(turns.path(turn, "/results"), body)
    assert status == 200
    events = [block.splitlines() for block in text.strip().split("\n\n")]
    parsed_events = [
        (lines[-2].removeprefix("event: "), json.loads(lines[-1].removeprefix("data: "))) for lines in events
    ]
    assert "".join(data["text"] for name, data in parsed_events if name == "delta") == "\n\nFound it."
    assert (parsed_events[-1][0], parsed_events[-1][1]["content"]) == ("done", "One moment.\n\nFound it.")


async def test_events_continue_after_the_last_event_that_a_browser_received(turns: Turns, model: ScriptedModel) -> None:
    """An EventSource that reconnects sends the address that it was opened with, and the last id in a header."""
    model.script("Fine, thanks.")
    _, turn = await turns.send("How are you?")
    path = turns.path(turn, "/events?after=2")
    for last, rest in (({}, "ne, thanks."), ({"Last_Event_ID": "6"}, "thanks.")):
        response = await turns.api.raw("GET", path, **last)
        text = b"".join([piece async for piece in response.streaming_content]).decode()
        assert f'event: delta\ndata: {{"text": "{rest}"}}' in text
    assert (await turns.api.raw("GET", path, Last_Event_ID="x")).status_code == 400


async def test_the_injected_memory_stays_the_same_after_results(turns: Turns, model: ScriptedModel) -> None:
    model.script(calls(ADD, FIRST))
    _, turn = await turns.send("I'm vegetarian", tools=[LOOKUP])
    assert [change["after"] for change in turn["memory_changes"]] == ["Is vegetarian."]
    assert [call["function"]["name"] for call in turn["tool_calls"]] == ["lookup"]
    model.script("Done.")
    await turns.answer(turn, "A")
    assert model.calls[1].messages[0] == model.calls[0].messages[0]


async def test_a_call_without_a_result_is_sent_with_a_placeholder(turns: Turns, model: ScriptedModel) -> None:
    turn = await waiting_turn(turns, model)
    model.script("Half.")
    await turns.answer(turn, "A")
    assert [message["content"] for message in model.calls[1].messages[-2:]] == ["A", NO_RESULT]


async def test_the_next_message_completes_a_waiting_turn(turns: Turns, model: ScriptedModel) -> None:
    turn = await waiting_turn(turns, model)
    model.script("As you like.")
    status, _ = await turns.send("Never mind")
    assert status == 200
    sent = model.calls[1].messages
    assert [message["role"] for message in sent[1:]] == ["user", "assistant", "tool", "tool", "user"]
    assert [message["content"] for message in sent[3:5]] == [NO_RESULT, NO_RESULT]
    assert (await in_thread(Run.objects.get, pk=turn["id"])).state == "completed"
    status, body = await turns.answer(turn, "A", "B")
    assert (status, body["error"]["code"], body["error"]["details"]) == (409, "conflict", {"state": "completed"})


@pytest.mark.parametrize("kind", ["zz", "", "input_text", "video", "tool_use"])
async def test_a_content_part_of_an_unknown_type_is_refused(turns: Turns, kind: str) -> None:
    content = [*PARTS, {"type": kind, kind or "x": {}}]
    status, answer = await turns.send(content)
    assert (status, answer["error"]["code"], answer["error"]["param"]) == (400, "invalid_request", "content[2].type")
    assert "text, image_url, input_audio or file" in answer["error"]["message"]
    results = {"results": [{"tool_call_id": "c", "content": content}]}
    status, answer = await turns.api.post(turns.path({"id": turns.session.pk}, "/results"), results)
    assert (status, answer["error"]["param"]) == (400, "results[0].content[2].type")


@pytest.mark.parametrize("part", [{"type": "text", "text": 5}, {"type": "text", "text": None}, {"type": "text"}])
async def test_a_text_part_must_contain_text(turns: Turns, part: Any) -> None:
    status, answer = await turns.send([*PARTS, part])
    assert (status, answer["error"]["param"]) == (400, "content[2].text")


async def test_every_known_type_of_content_part_is_passed_on(turns: Turns, model: ScriptedModel) -> None:
    content = [*PARTS, {"type": "input_audio", "input_audio": {}}, {"type": "file", "file": {}}]
    model.script("Yes.")
    assert (await turns.send(content))[0] == 200
    assert model.calls[0].messages[-1]["content"] == content


@pytest.mark.parametrize("stream", ["false", "true", 0, 1, [], "x"])
async def test_stream_must_be_a_boolean(turns: Turns, stream: Any) -> None:
    for path, body in (
        (turns.path(), {"content": "Hi"}),
        (turns.path({"id": turns.session.pk}, "/results"), {"results": [{"tool_call_id": "c", "content": "x"}]}),
    ):
        status, answer = await turns.api.post(path, {**body, "stream": stream})
        assert (status, answer["error"]["code"], answer["error"]["param"]) == (400, "invalid_request", "stream")


@pytest.mark.parametrize("replaces", ["", "zz"])
async def test_replacing_an_unknown_turn_is_not_found(turns: Turns, replaces: str) -> None:
    status, answer = await turns.send("Hi", replaces=replaces)
    assert (status, answer["error"]["code"]) == (404, "not_found")


async def test_stream_may_be_null(turns: Turns, model: ScriptedModel) -> None:
    model.script("Yes.")
    status, turn = await turns.send("Hi", stream=None)
    assert (status, turn["content"]) == (200, "Yes.")


async def test_a_waiting_turn_can_be_stopped(turns: Turns, model: ScriptedModel) -> None:
    turn = await waiting_turn(turns, model)
    for _ in range(2):
        assert (await turns.api.post(turns.path(turn, "/stop")))[1]["state"] == "stopped"
    assert (await turns.answer(turn, "A", "B"))[0] == 409
    stored = await in_thread(Session.objects.get)
    assert (stored.turns, await in_thread(ThreadRecord.objects.count)) == (0, 0)
    model.script("Gladly.")
    await turns.send("Never mind")
    sent = model.calls[-1].messages[1:]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool", "user"]
    assert [message["content"] for message in sent[2:4]] == [NO_RESULT, NO_RESULT]


async def test_a_waiting_turn_can_be_replaced(turns: Turns, model: ScriptedModel) -> None:
    turn = await waiting_turn(turns, model)
    model.script("Plainly.")
    status, again = await turns.send("Just say it", replaces=turn["id"])
    assert (status, again["state"]) == (200, "completed"), again
    assert [message["content"] for message in model.calls[1].messages[1:]] == ["Just say it"]
    assert (await in_thread(Session.objects.get)).turns == 1


async def test_two_results_of_one_call_are_refused(turns: Turns, model: ScriptedModel) -> None:
    turn = await waiting_turn(turns, model)
    twice = {"results": [*results(turn, "1"), *results(turn, "2")]}
    status, answer = await turns.api.post(turns.path(turn, "/results"), twice)
    assert (status, answer["error"]["param"]) == (400, "results")
    model.script("Done.")
    assert (await turns.answer(turn, "1", "2"))[0] == 200


async def test_results_for_other_calls_change_nothing(turns: Turns, model: ScriptedModel, charlie_api: Api) -> None:
    turn = await waiting_turn(turns, model)
    address = turns.path(turn, "/results")
    foreign = {"results": [{"tool_call_id": "call_x", "content": "A"}]}
    status, body = await turns.api.post(address, foreign)
    assert (status, body["error"]["param"]) == (400, "results")
    assert (await charlie_api.post(address, {"results": results(turn, "A")}))[0] == 404
    assert (await in_thread(Run.objects.get)).state == "awaiting_client_tools"
    assert not await in_thread(Message.objects.filter(role="tool").exists)
    model.script("Found it.")
    assert (await turns.answer(turn, "A", "B"))[0] == 200
