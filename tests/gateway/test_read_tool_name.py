"""The tool for reading `memory://`: if the client has its own tool named `read`, ours is renamed, and the memory
guidance uses the new name."""

from typing import Any

import pytest

from gateway.models import Agent, Message
from memories.artifacts.store import artifact_put
from memories.database.access import in_thread
from memories.models import Owner, WriteOrigin
from memories.services import Source, book_get_or_create
from memories.tools import free_read_name
from tests.conftest import Api
from tests.factories import agent_make
from tests.gateway.client_tools import results
from tests.gateway.v1 import ask
from tests.reviews.consolidation.rows import settings_make
from tests.scripted_model import ScriptedModel, calls

USER = {"role": "user", "content": "What do you know about harbours?"}
HANDBOOK = '{"path": "memory://root/MEMORY.md"}'


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


@pytest.fixture
def harbour_agent(alice: Owner) -> Agent:
    settings_make()
    book, source = book_get_or_create(alice.pk, "main"), Source(actor="user:1", origin=WriteOrigin.USER)
    artifact_put(book, "memory_summary.md", "Works on harbours.", source)
    artifact_put(book, "MEMORY.md", "Harbour Nine has two cranes.", source)
    return agent_make(inject_memories=False, tools=[])


def offered_tools(model: ScriptedModel) -> list[str]:
    return [tool["function"]["name"] for tool in model.calls[-1].tools]


def name_in_guidance(model: ScriptedModel) -> str:
    """Return the name of the tool in the guidance of the last model call."""
    return str(model.calls[-1].messages[0]["content"].split("use the `")[1].split("`")[0])


async def test_the_tool_is_called_read_by_default(alice_api: Api, harbour_agent: Agent, model: ScriptedModel) -> None:
    model.script("Some.")
    await ask(alice_api, USER, tools=[tool("lookup")])
    assert (offered_tools(model), name_in_guidance(model)) == (["lookup", "read"], "read")


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("client_names", "our_name"),
    [(["read"], "read_memory"), (["read", "read_memory"], "read_memory_2"), (["read_memory"], "read")],
)
async def test_a_taken_name_is_avoided_also_in_the_guidance(
    alice_api: Api, harbour_agent: Agent, model: ScriptedModel, client_names: list[str], our_name: str
) -> None:
    model.script("Some.")
    await ask(alice_api, USER, tools=[tool(name) for name in client_names])
    assert (offered_tools(model), name_in_guidance(model)) == ([*client_names, our_name], our_name)


async def test_custom_tools_of_the_client_take_names_too(
    alice_api: Api, harbour_agent: Agent, model: ScriptedModel
) -> None:
    model.script("Some.")
    await ask(alice_api, USER, tools=[{"type": "custom", "custom": {"name": "read"}}])
    assert name_in_guidance(model) == model.calls[-1].tools[-1]["function"]["name"] == "read_memory"


async def test_both_tools_work_in_one_turn(alice_api: Api, harbour_agent: Agent, model: ScriptedModel) -> None:
    model.script(calls(("read_memory", HANDBOOK)), calls(("read", '{"file": "a.txt"}')), "Two cranes.")
    first = await ask(alice_api, USER, tools=[tool("read")])
    assert [call["function"]["name"] for call in first.json["choices"][0]["message"]["tool_calls"]] == ["read"]
    assert "Harbour Nine has two cranes." in model.calls[1].messages[-1]["content"]
    last = await ask(alice_api, USER, *results(first, "a file"), tools=[tool("read")])
    assert last.text == "Two cranes."
    stored = await in_thread(lambda: list(Message.objects.exclude(tool_calls=None).order_by("seq")))
    assert [row.tool_calls[0]["function"]["name"] for row in stored] == ["read_memory", "read"]


async def test_the_name_stays_the_same_in_a_run_whose_client_stops_sending_tools(
    alice_api: Api, harbour_agent: Agent, model: ScriptedModel
) -> None:
    model.script(calls(("read", "{}")), "Some.")
    first = await ask(alice_api, USER, tools=[tool("read")])
    await ask(alice_api, USER, *results(first, "a file"))
    assert (offered_tools(model), name_in_guidance(model)) == (["read_memory"], "read_memory")
    assert model.calls[0].messages[0] == model.calls[1].messages[0]


async def test_the_guidance_for_a_name_is_identical_in_every_turn(
    alice_api: Api, harbour_agent: Agent, model: ScriptedModel
) -> None:
    model.script("Some.", "Some.", "Some.")
    headers = {"x_daybook_session": "chat"}
    for client_names in ([tool("read")], [], [tool("read")]):
        await ask(alice_api, USER, tools=client_names, headers=headers)
    first, second, third = (call.messages[0]["content"] for call in model.calls)
    assert first == third
    assert second == first.replace("`read_memory`", "`read`")


async def test_other_tools_of_ours_yield_to_the_clients(alice_api: Api, model: ScriptedModel, agent: Agent) -> None:
    model.script("Yes.")
    await ask(alice_api, USER, tools=[tool("add_memory")])
    assert offered_tools(model).count("add_memory") == 1
    assert "read" in offered_tools(model)


async def test_without_the_clients_tool_the_other_name_is_unknown(
    alice_api: Api, harbour_agent: Agent, model: ScriptedModel
) -> None:
    model.script(calls(("read_memory", HANDBOOK)), "Sorry.")
    answer = await ask(alice_api, USER)
    assert answer.text == "Sorry."
    assert "unknown_tool" in model.calls[1].messages[-1]["content"]


def test_a_free_name_is_found_however_many_are_taken() -> None:
    taken = {"read", "read_memory", *(f"read_memory_{number}" for number in range(2, 50))}
    assert free_read_name(taken) == "read_memory_50"
