"""`inject_memories_strategy: llm`: when keywords are requested from the model, and how its answer is used"""

from typing import Any

import pytest

from gateway.models import Run, Session
from memories.counters import recall_lanes
from memories.database.access import in_thread
from memories.models import Owner
from memories.services import book_get_or_create
from tests.conftest import Api
from tests.factories import agent_make, memory_make, session_make
from tests.gateway.v1 import ask
from tests.scripted_model import Hangs, ScriptedModel

pytestmark = pytest.mark.any_database

NAMED = {"x_daybook_session": "chat"}


def llm_agent(**settings: Any) -> None:
    agent_make(**{"inject_memories_strategy": "llm", "frozen_char_limit": 0, "tools": [], **settings})


async def trace() -> Any:
    return (await in_thread(Run.objects.latest, "id")).trace["recall"]


@pytest.fixture
def allergy_memories(alice: Owner) -> None:
    memory_make(alice, "Is allergic to hazelnuts.")
    memory_make(alice, "Plays the cello.")


async def test_no_keywords_are_requested_for_an_empty_book(alice_api: Api, alice: Owner, model: ScriptedModel) -> None:
    await in_thread(llm_agent)
    await in_thread(book_get_or_create, alice.pk, "main")
    model.script("No.")
    await ask(alice_api, "May I serve hazelnut cake?")
    assert (await trace())["keywords"] == {"strategy": "llm", "skipped": "nothing_to_search"}


async def test_no_keywords_are_requested_if_the_whole_book_is_frozen(
    alice_api: Api, allergy_memories: None, model: ScriptedModel
) -> None:
    await in_thread(llm_agent, frozen_char_limit=1000)
    model.script("No.")
    await ask(alice_api, "May I serve hazelnut cake?")
    assert "Is allergic to hazelnuts." in model.calls[0].messages[0]["content"]
    assert (await trace())["keywords"]["skipped"] == "nothing_to_search"


async def test_no_keywords_are_requested_without_injection(
    alice_api: Api, allergy_memories: None, model: ScriptedModel
) -> None:
    await in_thread(llm_agent, inject_memories=False)
    model.script("No.")
    await ask(alice_api, "May I serve hazelnut cake?")
    assert len(model.calls) == 1


async def test_a_frozen_book_and_an_earlier_turn_need_no_keywords(
    alice_api: Api, allergy_memories: None, model: ScriptedModel
) -> None:
    await in_thread(llm_agent, frozen_char_limit=1000)
    model.script("Noted.", "Blue.")
    await ask(alice_api, "The gate code is on the blue door.", headers=NAMED)
    await ask(alice_api, "What is on the blue door?", headers=NAMED)
    assert "<thread_memories>" in str(model.calls[1].messages)


@pytest.mark.parametrize("empty", [" ", "<think>\nHazelnuts do not matter.\n</think>\n\n"])
async def test_an_empty_answer_recalls_nothing_from_the_book(
    empty: str, alice_api: Api, allergy_memories: None, model: ScriptedModel
) -> None:
    await in_thread(llm_agent)
    model.script(empty, "It is 2x.")
    await ask(alice_api, "What is the derivative of x squared?")
    assert "<memories>" not in str(model.calls[1].messages)
    recall = await trace()
    assert (recall["keywords"]["found"], "long_term" in recall) == (0, False)


async def test_an_empty_answer_does_not_affect_the_short_term_lane(
    alice_api: Api, allergy_memories: None, model: ScriptedModel
) -> None:
    await in_thread(llm_agent)
    model.script(" ", "Noted.", " ", "Blue.")
    await ask(alice_api, "The gate code is on the blue door.", headers=NAMED)
    await ask(alice_api, "What is on the blue door?", headers=NAMED)
    sent = str(model.calls[3].messages)
    assert "The gate code is on the blue door." in sent
    assert "<memories>" not in sent


async def test_a_failed_call_falls_back_to_the_local_rule(
    alice_api: Api, allergy_memories: None, model: ScriptedModel, settings: Any
) -> None:
    settings.KEYWORDS_SECONDS = 0.05
    await in_thread(llm_agent)
    model.script(Hangs(), "No.")
    before = recall_lanes["keywords", "timeout"]
    await ask(alice_api, "May I serve hazelnuts?")
    assert "Is allergic to hazelnuts." in str(model.calls[1].messages)
    assert (await trace())["keywords"]["fallback"] == "timeout"
    assert recall_lanes["keywords", "timeout"] == before + 1


async def test_the_local_strategy_is_unaffected(
    alice_api: Api, alice: Owner, allergy_memories: None, model: ScriptedModel
) -> None:
    session: Session = await in_thread(lambda: session_make(alice, agent_make("local", frozen_char_limit=0, tools=[])))
    model.script("Yes.")
    await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "ok"})
    assert "Is allergic to hazelnuts." in str(model.calls[0].messages)
