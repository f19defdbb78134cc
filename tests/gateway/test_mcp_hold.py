"""Writes over /mcp have no conversation as evidence: `memory_hold` of the key's agents decides what happens to them"""

from typing import Any

import pytest

from memories.database.access import in_thread
from memories.models import Memory, Owner
from tests.conftest import Api
from tests.factories import agent_make, key_make, memory_make
from tests.gateway.mcp import call

pytestmark = pytest.mark.any_database

FACT: dict[str, Any] = {"content": "Collects stamps.", "target": "user", "evidence": "I collect stamps"}


async def test_untrusted_saves_the_memory_without_evidence(alice_api: Api) -> None:
    await in_thread(agent_make)
    assert (await call(alice_api, "add_memory", **FACT))["ok"]
    memory = await in_thread(Memory.objects.get)
    assert (memory.evidence.kind, memory.evidence.quote) == ("none", "")


async def test_strict_holds_the_memory_until_the_person_decides(alice: Owner, alice_api: Api) -> None:
    await in_thread(lambda: agent_make(memory_hold="strict"))
    held = await call(alice_api, "add_memory", **FACT)
    assert (held["error"], held["rule"]) == ("held", "evidence_none")
    assert not await in_thread(Memory.objects.exists)
    again = await call(alice_api, "add_memory", **FACT)
    assert again["proposal_id"] == held["proposal_id"]
    _, proposal = await alice_api.get(f"/api/proposals/{held['proposal_id']}")
    assert (proposal["source"], proposal["session_id"], proposal["times"]) == ("turn", None, 2)
    status, done = await alice_api.post(f"/api/proposals/{held['proposal_id']}/approve", {"content": "Likes stamps."})
    assert (status, done["state"]) == (200, "approved")
    memory = await in_thread(Memory.objects.get)
    assert (memory.content, memory.evidence.kind, memory.write_origin) == ("Likes stamps.", "hand", "tool")


async def test_an_empty_text_of_an_approval_is_named_as_the_client_sent_it(alice_api: Api) -> None:
    await in_thread(lambda: agent_make(memory_hold="strict"))
    held = await call(alice_api, "add_memory", **FACT)
    status, refused = await alice_api.post(f"/api/proposals/{held['proposal_id']}/approve", {"content": " "})
    assert (status, refused["error"]["param"]) == (400, "content")


async def test_strict_holds_an_update_and_allows_a_deletion(alice: Owner, alice_api: Api) -> None:
    await in_thread(lambda: agent_make(memory_hold="strict"))
    await in_thread(memory_make, alice, "Likes tea.")
    held = await call(alice_api, "update_memory", id=1, content="Likes coffee.")
    _, proposal = await alice_api.get(f"/api/proposals/{held['proposal_id']}")
    assert (proposal["action"], proposal["before"], proposal["after"]) == ("update", "Likes tea.", "Likes coffee.")
    assert (await call(alice_api, "delete_memory", id=1))["ok"]


@pytest.mark.parametrize(
    ("holds", "agents", "book", "held"),
    [
        ({"one": "off"}, [], "main", False),
        ({"one": "untrusted", "two": "strict"}, [], "main", True),  # the strictest of the book's agents
        ({"one": "untrusted", "two": "strict"}, ["one"], "main", False),  # the strictest that the key may use
        ({"one": "untrusted", "two": "strict"}, ["two"], "main", True),
        ({"one": "strict"}, [], "other", False),  # no agent uses the book
    ],
)
async def test_the_strictest_agent_of_the_key_and_book_decides(
    alice: Owner, holds: dict[str, str], agents: list[str], book: str, held: bool
) -> None:
    for name, hold in holds.items():
        await in_thread(agent_make, name, memory_hold=hold)
    key = Api((await in_thread(lambda: key_make(alice, agents=agents)))[1])
    result = await call(key, "add_memory", headers={"X-Daybook-Book": book}, **FACT)
    assert (result.get("error") == "held") is held
