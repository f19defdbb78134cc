"""Malformed tool calls: refused in requests, and tolerated in rows stored by earlier versions"""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from gateway.api.session_json import message_json
from gateway.models import Agent, Message
from gateway.runs.window import as_openai
from memories.database.access import in_thread
from memories.limits import TOOLS
from memories.models import Owner
from reviews.consolidation.conversation import read_record
from tests.conftest import Api
from tests.factories import session_make
from tests.gateway.v1 import ask
from tests.scripted_model import ScriptedModel

CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def function(**named: Any) -> list[Any]:
    return [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}", **named}}]


BROKEN: list[tuple[Any, str]] = [
    (5, ""),
    (True, ""),
    (-1, ""),
    ("zz", ""),
    ({}, ""),
    (["x"], "[0]"),
    ([5, None], "[0]"),
    ([CALL, None], "[1]"),
    ([{**CALL, "id": 5}], "[0].id"),
    ([{**CALL, "type": []}], "[0].type"),
    ([{**CALL, "function": "x"}], "[0].function"),
    ([{**CALL, "custom": []}], "[0].custom"),
    (function(name=["x"]), "[0].function.name"),
    (function(arguments={"a": 1}), "[0].function.arguments"),
    ([{"id": "c", "type": "custom", "custom": {"name": "look", "input": 5}}], "[0].custom.input"),
    ([CALL] * (TOOLS + 1), ""),
]
LENIENT: list[Any] = [
    None,
    [],
    function(arguments=""),
    function(arguments=None),
    [{"function": {"name": "look", "arguments": "{}"}}],
    [{**CALL, "index": 0, "extra_content": {"google": {"thought_signature": "s"}}}],
    [{"id": "c", "type": "custom", "custom": {"name": "look", "input": "x"}}],
]


@pytest.mark.parametrize(("tool_calls", "place"), BROKEN)
async def test_malformed_calls_are_refused(alice_api: Api, agent: Agent, tool_calls: Any, place: str) -> None:
    response = await ask(alice_api, "Hi", {"role": "assistant", "content": None, "tool_calls": tool_calls}, "Go on")
    assert (response.status, response.code, response.json["error"]["param"]) == (
        400, "invalid_request", f"messages[1].tool_calls{place}"
    )  # fmt: skip


async def test_the_id_of_a_call_must_be_text(alice_api: Api, agent: Agent) -> None:
    response = await ask(alice_api, "Hi", {"role": "tool", "tool_call_id": [], "content": "x"}, "Go on")
    assert (response.status, response.json["error"]["param"]) == (400, "messages[1].tool_call_id")


@pytest.mark.parametrize("tool_calls", LENIENT)
async def test_call_variants_that_clients_send_are_accepted(
    alice_api: Api, agent: Agent, model: ScriptedModel, tool_calls: Any
) -> None:
    model.script("Yes.")
    message = {"role": "assistant", "content": "Wait.", "tool_calls": tool_calls}
    assert (await ask(alice_api, "Hi", message, {"role": "user", "content": "Go on"})).status == 200
    stored = await in_thread(lambda: Message.objects.filter(role="assistant").order_by("seq")[0])
    assert (stored.tool_calls, stored.calls) == (tool_calls, tool_calls or [])


async def test_calls_in_user_messages_are_not_stored(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script("Yes.")
    assert (await ask(alice_api, {"role": "user", "content": "Hi", "tool_calls": [CALL]})).status == 200
    assert not await in_thread(lambda: Message.objects.filter(tool_calls__isnull=False).exists())


@pytest.mark.any_database
def test_malformed_stored_calls_break_nothing(alice: Owner, bob: Owner, agent: Agent, client: Client) -> None:
    session, values = session_make(alice, agent), [value for value, _ in BROKEN if value != [CALL] * (TOOLS + 1)]
    for number, tool_calls in enumerate(values):
        for place, role in enumerate(("user", "assistant", "tool"), start=1):
            Message.objects.create(
                owner=alice,
                session=session,
                seq=3 * number + place,
                role=role,
                kind=Message.Kind.HISTORY,
                text="Hi",
                tool_calls=tool_calls if role == "assistant" else None,
                tool_call_id="c" if role == "tool" else "",
            )
    assert len(read_record(alice.pk, session.pk, floor=0, token_limit=10_000).items) == 3 * len(values)
    assert all(as_openai(row) and message_json(row) for row in session.messages.order_by("seq"))
    client.force_login(User.objects.get(username="bob"))
    assert client.get(reverse("admin:gateway_session_change", args=[session.pk])).status_code == 200
