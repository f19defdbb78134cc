"""A stored response equals the one that was returned, including call names and truncation"""

import json
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from gateway.api import responses
from gateway.api.openai_body import CompletionBody
from gateway.api.v1_turn import begin_turn
from gateway.runs.requested import V1Request
from gateway.turns.joined import AnyTurn
from memories.caller import Caller
from memories.errors import RateLimited
from tests.conftest import Api
from tests.gateway.attachments import LARGE, picture
from tests.gateway.played import Plays, piece, plays
from tests.scripted_model import Says, ScriptedModel, calls

pytestmark = [pytest.mark.any_database, pytest.mark.usefixtures("agent")]

LONG = "mcp__calendar__" + "find_" * 16
LOOKUP = {"type": "function", "name": "lookup", "parameters": {"type": "object"}}
TOOLS = [{"type": "namespace", "name": "mcp__files", "tools": [LOOKUP]}, {**LOOKUP, "name": LONG}]
__all__ = ["plays"]  # a fixture


async def create(api: Api, **body: Any) -> dict[str, Any]:
    status, response = await api.post("/v1/responses", {"model": "assistant", "input": "Hi", **body})
    assert status == 200, response
    return dict(response)


async def retrieve(api: Api, response: dict[str, Any]) -> dict[str, Any]:
    status, found = await api.get(f"/v1/responses/{response['id']}")
    assert status == 200, found
    return dict(found)


async def test_calls_have_the_names_known_to_the_client(alice_api: Api, model: ScriptedModel) -> None:
    model.script("Hm.")
    await create(alice_api, tools=TOOLS, store=False)
    flat, short = [tool["function"]["name"] for tool in model.calls[0].body(stream=False)["tools"][:2]]
    assert len(short) == 64
    model.script(calls((flat, "{}"), (short, "{}")), "So.")
    response = await create(alice_api, tools=TOOLS)
    named = [(call["name"], call.get("namespace")) for call in response["output"]]
    assert named == [("lookup", "mcp__files"), (LONG, None)]
    assert (await retrieve(alice_api, response))["output"] == response["output"]
    outputs = [
        {"type": "function_call_output", "call_id": call["call_id"], "output": "42"} for call in response["output"]
    ]
    last = await create(alice_api, tools=TOOLS, input=outputs, previous_response_id=response["id"])
    _, items = await alice_api.get(f"/v1/responses/{last['id']}/input_items?order=asc")
    assert [item for item in items["data"] if item["type"] == "function_call"] == response["output"]
    for one in (response, last):
        assert one["completed_at"] is not None
        assert (await retrieve(alice_api, one))["completed_at"] == one["completed_at"]
    assert "names" not in await retrieve(alice_api, last)


async def test_a_call_without_arguments_has_an_empty_object(alice_api: Api, model: ScriptedModel) -> None:
    model.script(calls(("lookup", "")))
    response = await create(alice_api, tools=[LOOKUP])
    assert [call["arguments"] for call in response["output"]] == ["{}"]
    assert (await retrieve(alice_api, response))["output"] == response["output"]


async def test_a_long_name_that_is_resent_is_the_same_tool(alice_api: Api, model: ScriptedModel) -> None:
    model.script("So.")
    call = {"type": "function_call", "call_id": "c1", "name": LONG, "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "42"}
    await create(alice_api, tools=TOOLS, input=[{"role": "user", "content": "Hi"}, call, output])
    body = model.calls[0].body(stream=False)
    (made,) = [message["tool_calls"][0] for message in body["messages"] if message.get("tool_calls")]
    assert made["function"]["name"] == body["tools"][1]["function"]["name"]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_a_truncated_response_is_stored_as_incomplete(alice_api: Api, model: ScriptedModel, reason: str) -> None:
    model.script(Says(pieces=("Once upon",), finish_reason=reason))
    response = await create(alice_api)
    assert (response["output"][0]["status"], response["completed_at"]) == ("incomplete", None)
    assert await retrieve(alice_api, response) == response


async def test_a_stored_response_has_its_items_in_the_order_of_the_steps(alice_api: Api, model: ScriptedModel) -> None:
    model.script(
        Says(thinks=("Let me look.",), pieces=("Looking.",), calls=(("get_memories", "{}"),)),
        Says(thinks=("And ask.",), pieces=("Asking.",), calls=(("lookup", "{}"),)),
    )
    response = await create(alice_api, tools=[LOOKUP])
    assert [item["type"] for item in response["output"]] == ["reasoning", "message", "reasoning", "function_call"]
    stored = await retrieve(alice_api, response)
    assert [item["id"] for item in stored["output"]] == [item["id"] for item in response["output"]]


async def test_text_between_calls_is_stored_where_it_was_streamed(alice_api: Api, plays: Plays) -> None:
    requests = plays(["First A.", piece(0, "{}", "lookup"), "Then B.", piece(1, "{}", "lookup"), "So."], ["Done."])
    body = {"model": "assistant", "input": "Look it up", "tools": [LOOKUP], "stream": True}
    status, text = await alice_api.stream("/v1/responses", body)
    response = json.loads(text.strip().rpartition("data: ")[2])["response"]
    assert status == 200
    assert [item["type"] for item in response["output"]] == ["message", "function_call"] * 2 + ["message"]
    assert (await retrieve(alice_api, response))["output"] == response["output"]

    results = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "42"}
        for item in response["output"]
        if item["type"] == "function_call"
    ]
    references = [{"type": "item_reference", "id": item["id"]} for item in response["output"]]
    last = await create(alice_api, input=[{"role": "user", "content": "Look it up"}, *references, *results])
    assert (await retrieve(alice_api, last))["output"][0]["content"][0]["text"] == "Done."
    sent = requests[1].body(stream=False)["messages"]
    assert [message["content"] for message in sent[-3:]] == ["First A.Then B.So.", "42", "42"]
    _, items = await alice_api.get(f"/v1/responses/{last['id']}/input_items?order=asc")
    written = [item for item in items["data"] if item["type"] == "function_call" or item.get("role") == "assistant"]
    assert [_content(item) for item in written] == [_content(item) for item in response["output"]]


async def test_a_reference_to_text_after_a_call_of_an_older_response_is_ignored(
    alice_api: Api, model: ScriptedModel
) -> None:
    """The places of its calls were not stored, so that its first message has all text."""
    model.script(Says(pieces=("One moment. ", "It takes a while."), calls=(("lookup", "{}"),)), "Found it.")
    first = await create(alice_api, tools=[LOOKUP])
    message, call = first["output"]
    ids = [message["id"], call["id"], message["id"].removesuffix("_0") + "_1"]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "42"}
    given = [{"role": "user", "content": "Hi"}, *({"type": "item_reference", "id": id} for id in ids), result]
    await create(alice_api, tools=[LOOKUP], input=given)
    _, asked, answered, found = model.calls[1].messages
    assert (asked["role"], answered["content"], found["role"]) == ("user", "One moment. It takes a while.", "tool")


async def test_references_count_with_the_length_of_what_they_refer_to(
    alice_api: Api, model: ScriptedModel, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    async def begin(caller: Caller, v1_request: V1Request, body: CompletionBody) -> AnyTurn:
        opened.append(v1_request.is_large)
        return await begin_turn(caller, v1_request, body)

    monkeypatch.setattr(responses, "begin_turn", begin)
    model.script("word " * 10_000, "Hello.")
    first = await create(alice_api)
    settings.DAYBOOK_MAX_BODY = 100_000
    reference = {"type": "item_reference", "id": first["output"][0]["id"]}
    said = {"role": "user", "content": "Hi"}
    await create(alice_api, input=[said, reference, said])
    assert opened == [False, True]  # so that the second is read outside of the event loop
    body = {"model": "assistant", "input": [said, *[reference] * 5, said]}
    status, answer = await alice_api.post("/v1/responses", body)
    assert (status, answer["error"]["param"]) == (413, "input")


def _content(item: dict[str, Any]) -> Any:
    return item.get("call_id") or item["content"][0]["text"]


async def test_a_failed_response_contains_the_text_before_the_failure(alice_api: Api, model: ScriptedModel) -> None:
    known = ("get_memories", "{}")
    model.script(Says(pieces=("Once ", "upon"), calls=(known,)), RateLimited("Later.", retry_after=7))
    status, text = await alice_api.stream("/v1/responses", {"model": "assistant", "input": "Hi", "stream": True})
    last = json.loads(text.strip().rpartition("data: ")[2])
    assert (status, last["type"]) == (200, "response.failed")
    error = (await retrieve(alice_api, last["response"]))["error"]
    assert (error["code"], error) == ("rate_limit_exceeded", last["response"]["error"])
    (item,) = last["response"]["output"]
    assert (item["status"], item["content"][0]["text"]) == ("incomplete", "Once upon")


async def test_streaming_a_stored_response_is_refused(alice_api: Api, model: ScriptedModel) -> None:
    """An SDK that expects events would find none in JSON and end silently."""
    model.script("Tea.")
    address = f"/v1/responses/{(await create(alice_api))['id']}"
    assert (await alice_api.get(f"{address}?stream=false"))[0] == 200
    status, refused = await alice_api.get(f"{address}?stream=true")
    assert (status, refused["error"]["param"]) == (400, "stream")
    assert "`stream` is not supported" in refused["error"]["message"]


async def test_an_empty_input_is_refused_as_empty(alice_api: Api) -> None:
    for empty in ("", [], None):
        status, answer = await alice_api.post("/v1/responses", {"model": "assistant", "input": empty})
        assert (status, answer["error"]["param"]) == (400, "input")
        assert "empty" in answer["error"]["message"]


async def test_the_stored_steps_of_a_turn_are_limited(alice_api: Api, model: ScriptedModel, settings: Settings) -> None:
    settings.DAYBOOK_MAX_BODY = 1000
    model.script(*[calls(("lookup", "{}"))] * 3)
    response = await create(alice_api, tools=[LOOKUP])
    for last in (False, False, True):
        output = {"type": "function_call_output", "call_id": response["output"][0]["call_id"], "output": "x" * 680}
        body = {"model": "assistant", "input": [output], "previous_response_id": response["id"], "tools": [LOOKUP]}
        status, response = await alice_api.post("/v1/responses", body)
        assert status == (413 if last else 200), response
    assert response["error"]["code"] == "too_large"


async def test_a_conversation_before_a_response_is_read_up_to_the_size_of_a_body(
    alice_api: Api, model: ScriptedModel, settings: Settings
) -> None:
    settings.DAYBOOK_MAX_BODY = 200
    model.script("x" * 120, "y" * 120, "z" * 120, "So.")
    response: dict[str, Any] = {}
    for number in range(4):
        response = await create(alice_api, input=f"Message {number}", previous_response_id=response.get("id"))
    said = [message["content"] for message in model.calls[-1].messages if message["role"] == "user"]
    assert said == ["Message 1", "Message 2", "Message 3"]


async def test_a_page_of_input_items_has_about_as_many_bytes_as_a_body(
    alice_api: Api, model: ScriptedModel, settings: Settings
) -> None:
    model.script("So.", "So.")
    image = {"type": "input_image", "image_url": picture(LARGE)["image_url"]["url"], "detail": "auto"}
    message = {"role": "user", "content": [{"type": "input_text", "text": "What is this?"}, image]}
    first = await create(alice_api, input=[message])
    second = await create(alice_api, input=[message], previous_response_id=first["id"])
    settings.DAYBOOK_MAX_BODY = 10_000  # one picture
    pages, after = [], ""
    while True:
        _, page = await alice_api.get(f"/v1/responses/{second['id']}/input_items?order=asc&after={after}")
        pages.append([item["content"][-1]["type"] for item in page["data"]])
        after = page["last_id"]
        if not page["has_more"]:
            break
    assert pages == [["input_image", "output_text"], ["input_image"]]


def developer(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]}


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


async def listed(api: Api, response: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the role and text of each input item, oldest first, after following each page to the end."""
    items: list[Any] = []
    page: dict[str, Any] = {"has_more": True, "last_id": ""}
    while page["has_more"]:
        path = f"/v1/responses/{response['id']}/input_items?order=asc&limit=2&after={page['last_id']}"
        page = (await api.get(path))[1]
        items += page["data"]
    return [(item["role"], item["content"][0]["text"]) for item in items]


async def test_developer_messages_of_earlier_input_stay_in_the_conversation(
    alice_api: Api, model: ScriptedModel
) -> None:
    model.script("Arr.", "Aye.", "Two.", "Three.", "Four.")
    one = await create(alice_api, input=[developer("Talk like a pirate."), said("Hi")])
    two = await create(alice_api, input=[developer("Be brief."), said("Tea?")], previous_response_id=one["id"])
    three = await create(alice_api, input="More?", previous_response_id=two["id"])
    fork = await create(alice_api, input="Less?", previous_response_id=one["id"])
    assert model.calls[2].messages == (
        {"role": "system", "content": "You are terse.\n\nTalk like a pirate."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Arr."},
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "Tea?"},
        {"role": "assistant", "content": "Aye."},
        {"role": "user", "content": "More?"},
    )
    before = [("developer", "Talk like a pirate."), ("user", "Hi"), ("assistant", "Arr.")]
    added = [("developer", "Be brief."), ("user", "Tea?"), ("assistant", "Aye."), ("user", "More?")]
    assert await listed(alice_api, three) == [*before, *added]
    assert await listed(alice_api, fork) == [*before, ("user", "Less?")]
    assert (await retrieve(alice_api, two)) == two
    await create(alice_api, input="And now?", previous_response_id=fork["id"])
    assert model.calls[4].messages[0]["content"] == "You are terse.\n\nTalk like a pirate."


async def test_a_developer_message_beside_outputs_stays_there(alice_api: Api, model: ScriptedModel) -> None:
    model.script(calls(("lookup", "{}")), "Found it.", "Yes.")
    one = await create(alice_api, tools=[LOOKUP])
    output = {"type": "function_call_output", "call_id": one["output"][0]["call_id"], "output": "A"}
    beside = {"input": [output, developer("Be brief.")], "previous_response_id": one["id"]}
    two = await create(alice_api, tools=[LOOKUP], **beside)
    await create(alice_api, input="More?", previous_response_id=two["id"])
    expected = ["system", "user", "assistant", "tool", "developer"]
    assert [message["role"] for message in model.calls[1].messages] == expected
    assert [message["role"] for message in model.calls[2].messages] == [*expected, "assistant", "user"]


async def test_a_whole_conversation_has_only_its_own_developer_messages(alice_api: Api, model: ScriptedModel) -> None:
    model.script("Arr.", "Aye.", "So.")
    await create(alice_api, input=[developer("Talk like a pirate."), said("Hi")])
    whole = [developer("Be brief."), said("Hi"), {"role": "assistant", "content": "Arr."}, said("Tea?")]
    two = await create(alice_api, input=whole)
    await create(alice_api, input="More?", previous_response_id=two["id"])
    assert model.calls[2].messages[0]["content"] == "You are terse.\n\nBe brief."
    assert [message["role"] for message in model.calls[2].messages].count("developer") == 0


@pytest.mark.parametrize(
    "ignored",
    [{"type": "reasoning", "role": ["x"]}, {"type": "it", "role": {}}, {"type": "it", "role": "system", "content": 5}],
)
async def test_the_role_of_an_ignored_item_does_not_matter(
    alice_api: Api, model: ScriptedModel, ignored: dict[str, Any]
) -> None:
    model.script("Hello.")
    response = await create(alice_api, input=[ignored, said("Hi")])
    assert await listed(alice_api, response) == [("user", "Hi")]


async def test_the_role_of_an_output_does_not_matter(alice_api: Api, model: ScriptedModel) -> None:
    model.script(calls(("lookup", "{}")), "Found it.", "Yes.")
    one = await create(alice_api, tools=[LOOKUP])
    output = {"type": "function_call_output", "call_id": one["output"][0]["call_id"], "output": "A", "role": "system"}
    two = await create(alice_api, tools=[LOOKUP], input=[output], previous_response_id=one["id"])
    items = (await alice_api.get(f"/v1/responses/{two['id']}/input_items?order=asc"))[1]["data"]
    assert [item["type"] for item in items] == ["message", "function_call", "function_call_output"]
    await create(alice_api, input="More?", previous_response_id=two["id"])
    assert [message["role"] for message in model.calls[2].messages].count("tool") == 1
