"""The same conversation in each of the three APIs of /v1: model requests, stored rows and memories are equal"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway.models import Agent, Run, Session
from memories.database.access import in_thread
from memories.models import Memory, Owner, ThreadRecord
from tests.conftest import Api
from tests.factories import key_make, owner_make
from tests.gateway.v1 import ask
from tests.scripted_model import Hangs, Says, ScriptedModel, calls
from tests.waiting import eventually_async

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
ADD = ("add_memory", '{"content": "Is vegetarian.", "target": "user"}')
# A call of ours and one of the client's in one step, then one of ours alone.
STEPS: tuple[Any, ...] = (
    Says(pieces=("One moment.",), calls=(ADD, ("lookup", '{"q": "dal"}'))),
    "Found it.",
    calls(ADD),
    "As I said.",
)
QUESTION, RESULT, THANKS = "Look it up", "42", "Thanks"


async def by_chat(api: Api) -> list[str]:
    function = {"name": "lookup", "description": "Looks up.", "parameters": SCHEMA}
    more = {"model": "assistant", "tools": [{"type": "function", "function": function}], "max_tokens": 500}
    conversation: list[Any] = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": QUESTION}]
    texts = []
    for _ in range(3):
        said = (await post(api, "/v1/chat/completions", {**more, "messages": conversation}))["choices"][0]["message"]
        texts.append(said["content"])
        made = said.get("tool_calls") or ()
        results = [{"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in made]
        conversation += [said, *(results or [{"role": "user", "content": THANKS}])]
    return texts


async def by_messages(api: Api) -> list[str]:
    tool = {"name": "lookup", "description": "Looks up.", "input_schema": SCHEMA}
    more = {"model": "assistant", "system": "Be kind.", "tools": [tool], "max_tokens": 500}
    conversation: list[Any] = [{"role": "user", "content": QUESTION}]
    texts = []
    for _ in range(3):
        blocks = (await post(api, "/v1/messages", {**more, "messages": conversation}))["content"]
        texts.append("".join(block["text"] for block in blocks if block["type"] == "text"))
        used = [block["id"] for block in blocks if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": call_id, "content": RESULT} for call_id in used]
        conversation += [{"role": "assistant", "content": blocks}, {"role": "user", "content": results or THANKS}]
    return texts


async def by_responses(api: Api, *, chained: bool = False) -> list[str]:
    tool = {"type": "function", "name": "lookup", "description": "Looks up.", "parameters": SCHEMA}
    more = {"model": "assistant", "instructions": "Be kind.", "tools": [tool], "max_output_tokens": 500}
    conversation: list[Any] = [{"role": "user", "content": QUESTION}]
    texts = []
    for _ in range(3):
        answer = await post(api, "/v1/responses", {**more, "input": conversation})
        parts = [part for item in answer["output"] if item["type"] == "message" for part in item["content"]]
        texts.append("".join(part["text"] for part in parts))
        made = [item["call_id"] for item in answer["output"] if item["type"] == "function_call"]
        results = [{"type": "function_call_output", "call_id": call_id, "output": RESULT} for call_id in made]
        new = results or [{"role": "user", "content": THANKS}]
        if chained:
            more["previous_response_id"], conversation = answer["id"], new
        else:
            conversation += [*answer["output"], *new]
    return texts


async def by_chained_responses(api: Api) -> list[str]:
    return await by_responses(api, chained=True)


async def post(api: Api, path: str, body: dict[str, Any]) -> Any:
    response = await api.raw("POST", path, body)
    assert response.status_code == 200, response.content
    return json.loads(response.content)


APIS: tuple[Callable[[Api], Awaitable[list[str]]], ...] = (by_chat, by_messages, by_responses, by_chained_responses)


@pytest.fixture
def people(agent: Agent) -> list[tuple[Owner, Api]]:
    """Return a new person for each API."""
    owners = [owner_make(by.__name__.replace("_", "-")) for by in APIS]
    return [(owner, Api(key_make(owner)[1])) for owner in owners]


async def test_a_conversation_is_equal_in_every_api(people: list[tuple[Owner, Api]], model: ScriptedModel) -> None:
    found = []
    for by, (owner, api) in zip(APIS, people, strict=True):
        model.script(*STEPS)
        before = len(model.calls)
        texts = await by(api)
        requests = [request.body(stream=False) for request in model.calls[before:]]
        found.append((texts, await in_thread(without_ids, requests, owner), await in_thread(stored, owner)))
    texts, requests, rows = found[0]
    assert [result == found[0] for result in found[:-1]] == [True] * 3
    chained_texts, chained_requests, chained_rows = found[-1]
    assert (chained_texts, chained_rows) == (texts, rows)
    # A stored transcript also has the calls of our own tools.
    assert [request["tools"] for request in chained_requests] == [request["tools"] for request in requests]
    _, runs, *_ = rows
    assert texts == ["One moment.", "Found it.", "As I said."]
    assert len(requests) == len(STEPS)
    assert [run[0] for run in runs] == [1, 2]


def without_ids(requests: list[Any], owner: Owner) -> Any:
    """Return the model requests with run IDs replaced by numbers. `max_completion_tokens` is unified with its older
    name `max_tokens`, which some clients use."""
    text = json.dumps(requests).replace("max_completion_tokens", "max_tokens")
    for number, run_id in enumerate(Run.objects.filter(owner=owner).order_by("pk").values_list("pk", flat=True)):
        text = text.replace(run_id.hex, str(number))
    return json.loads(text)


def stored(owner: Owner) -> Any:
    """Return the transcript, runs, counters and records of the only session, and the owner's memories."""
    session = Session.objects.get(owner=owner)
    runs = session.runs.order_by("pk")
    return (
        list(session.messages.order_by("seq").values_list("role", "kind", "text")),
        list(runs.values_list("turn", "state", "counted", "text", "usage")),
        (session.turns, session.turns_since_memory_review, session.title),
        ThreadRecord.objects.filter(run_id__in=runs.values("pk")).count(),
        list(Memory.objects.filter(owner=owner).values_list("content", "target", "write_origin")),
    )


async def test_fields_required_by_strict_clients_are_present(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    """OpenRouter's SDK refuses answers without these fields, which may be empty."""
    model.script("Hello.", "Hello.")
    said = {"model": "assistant", "messages": [{"role": "user", "content": "Hi"}]}
    assert (await post(alice_api, "/v1/chat/completions", said))["system_fingerprint"] is None
    response = await post(alice_api, "/v1/responses", {"model": "assistant", "input": "Hi", "presence_penalty": 0.5})
    found = {name: response[name] for name in ("frequency_penalty", "presence_penalty")}
    assert found == {"frequency_penalty": 0.0, "presence_penalty": 0.5}
    assert response["completed_at"] >= response["created_at"]
    assert dict(model.calls[1].parameters)["presence_penalty"] == 0.5


in_every_api = pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
        ("/v1/messages", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 50}),
        ("/v1/responses", {"input": "Hi"}),
    ],
)


@pytest.mark.any_database
@in_every_api
async def test_a_client_that_disconnects_stops_its_run(
    alice_api: Api, agent: Agent, model: ScriptedModel, path: str, body: dict[str, Any]
) -> None:
    model.script(Hangs(pieces=("Hel", "lo")), "Yes.")
    response = await alice_api.raw("POST", path, {"model": "assistant", "stream": True, **body})
    async with asyncio.timeout(2):
        while b'"lo"' not in await anext(response.source):
            pass
        await response.source.aclose()

    async def stopped() -> bool:
        return await in_thread(Run.objects.filter(state="stopped", text="Hello").exists)

    await eventually_async(stopped, within=5)
    again = await ask(alice_api, "Hi", "Hello", "Go on")
    assert again.session == str((await in_thread(Session.objects.get)).pk)


@in_every_api
async def test_every_line_of_a_stream_stays_whole_however_a_client_splits_lines(
    alice_api: Api, agent: Agent, model: ScriptedModel, path: str, body: dict[str, Any]
) -> None:
    """Some clients, such as httpx's `iter_lines`, also split lines at Unicode's separators."""
    model.script("One\u2028two\u2029three\x85four")
    _, text = await alice_api.stream(path, {"model": "assistant", "stream": True, **body})
    lines = [line for line in text.splitlines() if line not in {"", "data: [DONE]"} and not line.startswith("event: ")]
    found = json.dumps([json.loads(line.removeprefix("data: ")) for line in lines])
    assert all(f"\\u{code}" in found for code in ("2028", "2029", "0085"))
