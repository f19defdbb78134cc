"""The number of statements of a turn: two transactions, and nothing else when the caches are warm"""

import pytest

from gateway.models import Agent, Session
from memories.database.access import in_thread
from memories.models import Owner
from memories.services import book_get_or_create
from tests.conftest import Api
from tests.factories import key_make, memory_make
from tests.gateway.v1 import Chat, ask
from tests.queries import statements
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.any_database


async def test_statements_of_a_new_v1_session(alice_api: Api, alice: Owner, agent: Agent, model: ScriptedModel) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    model.script("Hello.", "Hello.")
    await ask(alice_api, "hi")
    async with statements() as executed:
        await ask(alice_api, "hi there")
    # open: agent with key, earlier runs; run, message and session inserted; book. The view of the book is shared.
    # close: session locked, run, message, record of the turn, session, usage of the day.
    assert len(executed) == 12, executed


async def test_daily_limits_of_a_key_add_one_statement(alice: Owner, agent: Agent, model: ScriptedModel) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    _, plain = await in_thread(lambda: key_make(alice, tokens_per_day=1000, money_per_day=1, streams_at_once=5))
    model.script("Hello.", "Hello.")
    await ask(Api(plain), "hi")
    async with statements() as executed:
        await ask(Api(plain), "hi there")
    assert len(executed) == 13, executed


async def test_statements_of_a_continued_v1_session(
    alice_api: Api, alice: Owner, agent: Agent, model: ScriptedModel
) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    chat = Chat(alice_api, model)
    await chat.say("hi", "Hello.")
    await chat.say("more", "Yes.")
    async with statements() as executed:
        await chat.say("and more", "No.")
    # open: agent with key, session by hash, its latest run, its open run; run, message, session; book, newest record.
    # close: as above.
    assert len(executed) == 15, executed


async def test_statements_of_a_native_turn(
    alice_api: Api, alice: Owner, session: Session, model: ScriptedModel
) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    model.script("Hello.", "Yes.")
    path = f"/api/sessions/{session.pk}/turns"
    await alice_api.post(path, {"content": "hi"})
    async with statements() as executed:
        await alice_api.post(path, {"content": "more"})
    # key; open: session with agent and key, its open run, transcript; run, message, session; book, newest record.
    # close: as above.
    assert len(executed) == 15, executed


async def test_a_temporary_turn_does_not_read_memory(
    alice_api: Api, alice: Owner, agent: Agent, model: ScriptedModel
) -> None:
    await in_thread(book_get_or_create, alice.pk, "main")
    model.script("Hello.", "Hello.")
    await ask(alice_api, "hi", metadata={"temporary": "true"})
    async with statements() as executed:
        await ask(alice_api, "hi there", metadata={"temporary": "true"})
    assert not [sql for sql in executed if "memories_" in sql and "gateway_" not in sql]
