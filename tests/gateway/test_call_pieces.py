"""Streamed tool calls of the client: pieces are passed on as they arrive, including those of custom tools"""

import asyncio
import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import tool_calls
from gateway.models import Agent, Message, Run
from gateway.tool_calls import FiniteNumbers, ObjectEnd, object_in, object_text
from memories.database.access import in_thread
from memories.models import Memory
from tests.conftest import Api
from tests.gateway.client_tools import LOOKUP, USER
from tests.gateway.played import Plays, custom, piece, plays
from tests.gateway.v1 import PATH, ask, stream
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.any_database

SHELL = {"type": "custom", "custom": {"name": "shell"}}
TOOLS = [LOOKUP, SHELL]
ADD = '{"content": "Is vegetarian.", "target": "user"}'
__all__ = ["plays"]  # a fixture


def pieces_of(chunks: Sequence[Any]) -> list[dict[str, Any]]:
    return [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls") or ()]


def assembled(chunks: Sequence[Any]) -> list[tuple[str, str, str]]:
    """Return (id, name, arguments) of each call as a client assembles them."""
    found: list[list[str]] = []
    for call in pieces_of(chunks):
        part = call.get("function") or call["custom"]
        if call["index"] == len(found):
            found.append([call["id"], part["name"], ""])
        assert call.get("id", found[call["index"]][0]) == found[call["index"]][0]
        found[call["index"]][2] += part.get("arguments", part.get("input", ""))
    return [(call_id, name, arguments) for call_id, name, arguments in found]


async def test_a_name_that_grows_through_the_name_of_another_tool(alice_api: Api, agent: Agent, plays: Plays) -> None:
    longer = {"type": "function", "function": {"name": "lookup_all"}}
    plays([piece(0, name="lookup"), piece(0, name="lookup_all"), piece(0, "{}"), piece(1, "{}", name="lookup")])
    chunks = await stream(alice_api, USER, tools=[LOOKUP, longer])
    assert [call[1:] for call in assembled(chunks)] == [("lookup_all", "{}"), ("lookup", "{}")]


async def test_pieces_are_passed_on_before_the_model_finishes(alice_api: Api, agent: Agent, plays: Plays) -> None:
    may_continue = asyncio.Event()
    plays([piece(0, name="lookup"), piece(0, '{"q": '), may_continue, piece(0, '"a"}')])
    body = {"model": "assistant", "messages": [USER], "stream": True, "tools": TOOLS}
    response = await alice_api.raw("POST", PATH, body)
    seen: list[Any] = []
    async with asyncio.timeout(20):
        while len(pieces_of(seen)) < 2:
            seen.append(json.loads((await anext(response.source)).removeprefix(b"data: ")))
    assert not may_continue.is_set()
    (call,) = assembled(seen)
    assert call[1:] == ("lookup", '{"q": ')
    assert call[0].startswith("call_")
    may_continue.set()
    rest = [part async for part in response.source]
    seen += [json.loads(part.removeprefix(b"data: ")) for part in rest if b"[DONE]" not in part]
    assert assembled(seen) == [(call[0], "lookup", '{"q": "a"}')]
    assert seen[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_results_are_matched_by_the_call_ids_we_generate(alice_api: Api, agent: Agent, plays: Plays) -> None:
    requests = plays([piece(0, name="lookup"), piece(1, "{", name="lookup"), piece(0, "[]"), piece(1, "}")], ["Found."])
    chunks = await stream(alice_api, USER, tools=TOOLS)
    made = assembled(chunks)
    assert [(name, arguments) for _, name, arguments in made] == [("lookup", "[]"), ("lookup", "{}")]
    run = await in_thread(Run.objects.get)
    assert (run.state, [call_id for call_id, *_ in made]) == (
        "awaiting_client_tools",
        [f"call_{run.pk.hex}_{number}" for number in (0, 1)],
    )
    results = [{"role": "tool", "tool_call_id": call_id, "content": call_id} for call_id, *_ in made]
    await stream(alice_api, USER, *results, tools=TOOLS)
    assert [message["tool_call_id"] for message in requests[1].body(stream=True)["messages"][-2:]] == ["up_0", "up_1"]
    assert (await in_thread(Run.objects.get)).text == "Found."


@pytest.mark.parametrize("ours_first", [True, False])
async def test_our_own_calls_are_hidden_from_a_mixed_stream(
    alice_api: Api, agent: Agent, plays: Plays, ours_first: bool
) -> None:
    theirs, ours = (1, 0) if ours_first else (0, 1)
    first_pieces = sorted(
        [piece(theirs, name="lookup"), piece(ours, name="add_memory")], key=lambda call: call["index"]
    )
    requests = plays([*first_pieces, piece(theirs, "{}"), piece(ours, ADD)], ["Done."])
    chunks = await stream(alice_api, USER, tools=TOOLS)
    (call,) = assembled(chunks)
    assert call[1:] == ("lookup", "{}")
    assert await in_thread(Memory.objects.filter(content="Is vegetarian.").exists)
    await stream(alice_api, USER, {"role": "tool", "tool_call_id": call[0], "content": "42"}, tools=TOOLS)
    step = requests[1].body(stream=True)["messages"][-3:]
    contents = {message["tool_call_id"]: message["content"] for message in step[1:]}
    assert contents[f"up_{theirs}"] == "42"
    assert '"ok": true' in contents[f"up_{ours}"]


async def test_a_name_that_arrives_in_parts_is_held_back_until_complete(
    alice_api: Api, agent: Agent, plays: Plays
) -> None:
    plays([piece(0, name="add_"), piece(0, name="memory"), piece(0, ADD)], ["Noted."])
    chunks = await stream(alice_api, USER, tools=TOOLS)
    assert pieces_of(chunks) == []
    assert await in_thread(Memory.objects.exists)


def at_0(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"index": 0, "id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([at_0("x", "lookup", '{"q": 1}'), at_0("y", "lookup", '{"q": 2}')], ['{"q": 1}', '{"q": 2}']),
        ([at_0("x", "lookup", ""), at_0("y", "lookup", "{}")], ["", "{}"]),
        ([at_0("", "lookup", '{"q": 1}'), at_0("", "lookup", '{"q": 2}')], ['{"q": 1}', '{"q": 2}']),
        ([at_0("x", "lookup", '{"q"'), at_0("x", "lookup", ": 1}")], ['{"q": 1}']),
        ([at_0("x", "lookup", ""), at_0("x", "lookup", '{"q": 1}')], ['{"q": 1}']),
        ([at_0("", "lookup", '{"q"'), at_0("", "lookup", ": 1}")], ['{"q": 1}']),
        ([at_0("x", "lookup", '{"q"'), at_0("y", "", ": 1}")], ['{"q": 1}']),
    ],
)
async def test_several_calls_with_index_0_are_told_apart(
    alice_api: Api, agent: Agent, plays: Plays, pieces: list[Any], expected: list[str]
) -> None:
    """Gemini and Ollama send index 0 for every call. A name repeated in each piece does not start another call."""
    plays(pieces)
    made = assembled(await stream(alice_api, USER, tools=TOOLS))
    assert [(name, arguments) for _, name, arguments in made] == [("lookup", text) for text in expected]
    stored = await in_thread(Message.objects.get, role="assistant")
    assert [call["function"] for call in stored.tool_calls] == [
        {"name": "lookup", "arguments": text} for text in expected
    ]


async def test_a_call_of_an_unknown_tool_is_passed_to_the_client(alice_api: Api, agent: Agent, plays: Plays) -> None:
    plays([piece(0, name="made_up"), piece(1, "{}", name="lookup")])
    made = assembled(await stream(alice_api, USER, tools=TOOLS))
    assert [(name, arguments) for _, name, arguments in made] == [("made_up", ""), ("lookup", "{}")]
    stored = await in_thread(Message.objects.get, role="assistant")
    assert {call["id"]: call["function"]["name"] for call in stored.tool_calls} == {key: name for key, name, _ in made}


async def test_custom_calls_are_streamed(alice_api: Api, agent: Agent, plays: Plays) -> None:
    requests = plays([custom(0, name="shell"), custom(0, "ls "), custom(0, "-l")], ["Two files."])
    chunks = await stream(alice_api, USER, tools=TOOLS)
    assert pieces_of(chunks)[0]["type"] == "custom"
    ((call_id, name, given),) = assembled(chunks)
    assert (name, given) == ("shell", "ls -l")
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    await stream(alice_api, USER, {"role": "tool", "tool_call_id": call_id, "content": "a b"}, tools=TOOLS)
    said = requests[1].body(stream=True)["messages"][-2]
    assert said["tool_calls"] == [{"id": "up_0", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}}]


async def test_custom_calls_are_returned_without_streaming(
    alice_api: Api, agent: Agent, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {"id": "up_0", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}}
    requests: list[Any] = []

    async def complete(request: Any) -> dict[str, Any]:
        requests.append(request)
        said = {"content": None, "tool_calls": [made]} if len(requests) == 1 else {"content": "Two files."}
        return {"choices": [{"index": 0, "message": {"role": "assistant", **said}}]}

    monkeypatch.setattr(model, "complete", complete)
    first = await ask(alice_api, USER, tools=TOOLS)
    choice = first.json["choices"][0]
    (call,) = choice["message"]["tool_calls"]
    assert (choice["finish_reason"], call) == ("tool_calls", {**made, "id": f"call_{first.run.replace('-', '')}_0"})
    stored = await in_thread(Message.objects.get, role="assistant")
    assert stored.tool_calls == [call]
    result = {"role": "tool", "tool_call_id": call["id"], "content": "a b"}
    second = await ask(alice_api, USER, choice["message"], result, tools=TOOLS)
    assert (second.run, second.text) == (first.run, "Two files.")
    assert requests[1].body(stream=False)["messages"][-2]["tool_calls"] == [made]


async def test_a_custom_call_named_like_our_tool_is_the_clients(alice_api: Api, agent: Agent, plays: Plays) -> None:
    plays([custom(0, "Is vegetarian.", name="add_memory")])
    made = assembled(await stream(alice_api, USER, tools=TOOLS))
    assert [(name, given) for _, name, given in made] == [("add_memory", "Is vegetarian.")]
    assert not await in_thread(Memory.objects.exists)


def completeness(*pieces: str) -> list[bool]:
    """Return for each piece whether the object is complete after it."""
    end = ObjectEnd()
    return [end.reached(pieces[: count + 1]) for count in range(len(pieces))]


@pytest.mark.parametrize(
    ("written", "sent"),
    [('{"a":1}', '{"a":1}'), ('{"a": NaN, "b": -Infinity}', '{"a": null, "b": null}'), ("[1", '{"arguments": "[1"}')],
)
def test_arguments_are_sent_as_a_json_object(written: str, sent: str) -> None:
    assert object_text(written) == sent


def test_the_end_of_a_json_object_is_found_across_pieces() -> None:
    assert completeness(" ", "", '{"a": "x}', "\\", '"}', '", "b": [{}', "]", "}") == [False] * 7 + [True]
    assert completeness('{"a": "\\\\"}') == [True]
    assert completeness('{"a": "\\', "", '\\"}') == [False, False, True]
    assert completeness("{}") == [True]
    assert completeness("null", "{}") == completeness("", '"{}"') == [False, False]


@given(
    value=st.dictionaries(st.text(), st.recursive(st.text() | st.floats() | st.none(), st.lists, max_leaves=5)),
    data=st.data(),
)
def test_numbers_that_json_lacks_become_null_in_pieces_as_in_a_whole_text(value: dict[str, Any], data: Any) -> None:
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    numbers = FiniteNumbers()
    pieces = [numbers.take(text[begin:end]) for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert json.loads("".join([*pieces, numbers.end()]), parse_constant=int) == object_in(text)


def test_a_long_number_in_many_pieces_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read, words = [], tool_calls._WORDS

    def sub(replaced: Any, text: str) -> str:
        read.append(text)
        return words.sub(replaced, text)

    monkeypatch.setattr(tool_calls, "_WORDS", SimpleNamespace(sub=sub))
    numbers, text = FiniteNumbers(), '{"a": ' + "1" * 400 + "}"
    assert json.loads("".join([*map(numbers.take, text), numbers.end()])) == json.loads(text)
    assert len("".join(read)) < 2 * len(text)


@given(
    value=st.dictionaries(st.text(), st.recursive(st.text() | st.integers(), st.lists, max_leaves=5)), data=st.data()
)
def test_a_json_object_is_complete_exactly_with_its_last_character(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    pieces = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    complete = ["".join(pieces[: count + 1]) == text for count in range(len(pieces))]
    assert completeness(*pieces) == complete


@pytest.mark.parametrize("ids", [("up_0", "up_1", "up_0", "up_1"), (None, None, None, None), ("a", "b", "c", "d")])
async def test_each_step_of_a_loop_is_sent_once_with_its_own_results(
    ids: Sequence[str | None], alice_api: Api, agent: Agent, plays: Plays
) -> None:
    """Some servers number the calls of each answer, or give them no ids."""
    made = [("add_memory", ADD), ("get_memories", "{}"), ("lookup", "{}"), ("search_memories", '{"query": "food"}')]
    pieces = [piece(at % 2, given, name, id=ids[at]) for at, (name, given) in enumerate(made)]
    requests = plays(pieces[:2], pieces[2:], ["Done."])
    body = {"model": "assistant", "stream": True, "tools": [{"type": "function", "name": "lookup"}]}
    _, text = await alice_api.stream("/v1/responses", {**body, "input": "Look it up"})
    response = json.loads(text.rstrip().rpartition("data: ")[2])["response"]
    result = {"type": "function_call_output", "call_id": response["output"][-1]["call_id"], "output": "Found."}
    await alice_api.stream("/v1/responses", {**body, "input": [result], "previous_response_id": response["id"]})
    messages = requests[-1].body(stream=True)["messages"]
    results = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    assert [call["function"]["name"] for call in calls] == [name for name, _ in made]
    added, listed, looked_up, found = (results[call["id"]] for call in calls)
    assert looked_up == "Found."
    assert sorted(json.loads(added)) == ["id", "ok"]
    assert ('"target"' in listed, '"target"' in found) == (True, False), "only the list has it"
