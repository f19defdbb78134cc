"""Calls of tools in what a client resends: refused where they are none, and skipped where one is stored already."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from gateway.api.session_json import message_json
from gateway.models import Agent, Message, Session
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


@pytest.mark.parametrize(("made", "place"), BROKEN)
async def test_calls_that_are_none_are_refused(alice_api: Api, agent: Agent, made: Any, place: str) -> None:
    got = await ask(alice_api, "Hi", {"role": "assistant", "content": None, "tool_calls": made}, "Go on")
    assert (got.status, got.code, got.json["error"]["param"]) == (
        400, "invalid_request", f"messages[1].tool_calls{place}"
    )  # fmt: skip


async def test_the_id_of_a_call_is_text(alice_api: Api, agent: Agent) -> None:
    got = await ask(alice_api, "Hi", {"role": "tool", "tool_call_id": [], "content": "x"}, "Go on")
    assert (got.status, got.json["error"]["param"]) == (400, "messages[1].tool_call_id")


@pytest.mark.parametrize("made", LENIENT)
async def test_calls_as_clients_send_them_are_taken(
    alice_api: Api, agent: Agent, model: ScriptedModel, made: Any
) -> None:
    model.script("Yes.")
    given = {"role": "assistant", "content": "Wait.", "tool_calls": made}
    assert (await ask(alice_api, "Hi", given, {"role": "user", "content": "Go on"})).status == 200
    stored = await in_thread(lambda: Message.objects.filter(role="assistant").order_by("seq")[0])
    assert (stored.tool_calls, stored.calls) == (made, made or [])


async def test_calls_in_words_of_the_person_are_not_stored(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script("Yes.")
    assert (await ask(alice_api, {"role": "user", "content": "Hi", "tool_calls": [CALL]})).status == 200
    assert not await in_thread(lambda: Message.objects.filter(tool_calls__isnull=False).exists())


def _stored(owner: Owner, agent: Agent, made: Any) -> Session:
    session = session_make(owner, agent)
    for seq, role in enumerate(("user", "assistant", "tool"), start=1):
        Message.objects.create(
            owner=owner,
            session=session,
            seq=seq,
            role=role,
            kind=Message.Kind.HISTORY,
            text="Hi",
            tool_calls=made if role == "assistant" else None,
            tool_call_id="c" if role == "tool" else "",
        )
    return session


@pytest.mark.parametrize("made", [made for made, _ in BROKEN if made != [CALL] * (TOOLS + 1)])
def test_stored_calls_that_are_none_break_nothing(
    alice: Owner, bob: Owner, agent: Agent, client: Client, made: Any
) -> None:
    session = _stored(alice, agent, made)
    assert len(read_record(alice.pk, session.pk, floor=0, token_limit=1000).items) == 3
    assert all(as_openai(row) and message_json(row) for row in session.messages.order_by("seq"))
    client.force_login(User.objects.get(username="bob"))
    assert client.get(reverse("admin:gateway_session_change", args=[session.pk])).status_code == 200
