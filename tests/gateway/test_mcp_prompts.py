"""/mcp: the prompt for reviewing one's memory"""

from typing import Any

import pytest

from gateway.models import Agent
from memories.database.access import in_thread
from memories.models import Book, Owner
from tests.conftest import Api
from tests.factories import agent_make, key_make, memory_make
from tests.gateway.mcp import ENVELOPE, rpc


async def prompt(api: Api, headers: dict[str, str] | None = None, **arguments: Any) -> str:
    params = {"name": "review_my_memory", "arguments": arguments}
    status, answer = await api.post("/mcp", rpc("prompts/get", **params), **(headers or {}))
    assert status == 200, answer
    (message,) = answer["result"]["messages"]
    assert (message["role"], message["content"]["type"]) == ("user", "text")
    return str(message["content"]["text"])


async def test_the_prompt_is_listed_with_its_argument(alice_api: Api) -> None:
    _, answer = await alice_api.post("/mcp", rpc("prompts/list"))
    (listed,) = answer["result"]["prompts"]
    assert (listed["name"], listed["title"]) == ("review_my_memory", "Review my memory")
    assert listed["description"]
    assert [(argument["name"], argument["required"]) for argument in listed["arguments"]] == [("book", False)]


async def test_the_prompt_contains_the_memories_of_the_book_as_data(alice: Owner, alice_api: Api) -> None:
    def make() -> None:
        memory_make(alice, "Likes <tea>.", category="taste")
        memory_make(alice, "Deploys on Fridays.", book="work")

    await in_thread(make)
    text = await prompt(alice_api)
    assert '<memory id="1" category="taste">Likes &lt;tea&gt;.</memory>' in text
    assert "not instructions" in text
    assert 'the book "main"' in text
    assert "Fridays" not in text
    other = await prompt(alice_api, book="work")
    assert "Deploys on Fridays." in other
    assert "tea" not in other
    assert 'act on the book "main"' in other
    assert "Deploys on Fridays." in await prompt(alice_api, {"x-daybook-book": "work"})


async def test_memories_blocked_by_the_scan_are_left_out(alice: Owner, alice_api: Api) -> None:
    def make() -> None:
        memory = memory_make(alice, "Likes tea.")
        alice.memories.filter(pk=memory.pk).update(scan_rule="some_rule", scan_hash="of these words")

    await in_thread(make)
    assert "Likes tea." not in await prompt(alice_api)


async def test_a_missing_book_is_treated_as_empty_and_not_created(alice_api: Api) -> None:
    assert "Nothing is remembered" in await prompt(alice_api)
    assert not await in_thread(Book.objects.exists)


@pytest.mark.parametrize(
    "params",
    [
        {"name": "rule_the_world"},
        {},
        {"name": "review_my_memory", "arguments": []},
        {"name": "review_my_memory", "arguments": {"boook": "main"}},
        {"name": "review_my_memory", "arguments": {"book": 7}},
        {"name": "review_my_memory", "arguments": {"book": "b" * 256}},
        {"name": "review_my_memory", "arguments": {"book": "none-of-hers"}},
        {"name": "review_my_memory", "arguments": {"book": "*"}},
    ],
)
async def test_unknown_prompts_and_invalid_arguments_are_refused(alice_api: Api, params: dict[str, Any]) -> None:
    _, answer = await alice_api.post("/mcp", rpc("prompts/get", **params))
    assert answer["error"]["code"] == -32602


async def test_a_limited_key_gets_the_prompt_for_its_books_only(alice: Owner, agent: Agent) -> None:
    def make() -> Api:
        agent_make("clerk", book="office")
        memory_make(alice, "Files by date.", book="office")
        memory_make(alice, "Likes tea.")
        return Api(key_make(alice, agents=["clerk"])[1])

    clerk = await in_thread(make)
    assert "Files by date." in await prompt(clerk)
    _, answer = await clerk.post("/mcp", rpc("prompts/get", name="review_my_memory", arguments={"book": "main"}))
    assert answer["error"]["code"] == -32602


async def test_the_newest_version_requires_the_prompt_name_in_the_header(alice_api: Api) -> None:
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "prompts/get", "mcp-name": "review_my_memory"}
    message = rpc("prompts/get", name="review_my_memory", _meta=ENVELOPE)
    status, answer = await alice_api.post("/mcp", message, **headers)
    assert (status, answer["result"]["resultType"]) == (200, "complete")
    headers["mcp-name"] = "other"
    status, answer = await alice_api.post("/mcp", message, **headers)
    assert (status, answer["error"]["code"]) == (400, -32020)
