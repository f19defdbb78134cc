"""Memory is injected once per run: the injected text is the same in every HTTP round of a client's tool loop, in
whichever process the round arrives, with one keyword call and one embedding call."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from gateway.models import Agent, Run
from gateway.runs.ending import complete_waiting, stop_lapsed
from memories.artifacts.store import artifact_put
from memories.database.access import in_thread
from memories.errors import UpstreamError
from memories.models import Book, Owner, WriteOrigin
from memories.recall.snapshot import snapshots
from memories.recall.threads import thread_cache
from memories.services import MemoryFields, Source, book_get_or_create, book_writing
from tests.conftest import Api
from tests.factories import agent_make, memory_make
from tests.gateway.client_tools import LOOKUP, results
from tests.gateway.v1 import Answer, ask, stream
from tests.reviews.consolidation.rows import settings_make
from tests.scripted_model import Says, ScriptedModel, calls
from tests.unsliced import book_clear, forget_memories

USER = {"role": "user", "content": "May I serve hazelnut cake?"}
CALL = ("lookup", '{"q": "cake"}')
KEYWORDS = Says(pieces=("hazelnuts, allergy",), usage={"prompt_tokens": 50, "completion_tokens": 4, "total_tokens": 54})


@pytest.fixture
def llm_agent(alice: Owner) -> Agent:
    """An agent with part of its book frozen, a summary, and keywords from the model."""
    settings_make()
    source = Source(actor="user:1", origin=WriteOrigin.USER)
    artifact_put(book_get_or_create(alice.pk, "main"), "memory_summary.md", "Works on harbours.", source)
    memory_make(alice, "Is allergic to hazelnuts.", target="memory")
    memory_make(alice, "Plays the cello.", pinned=True)
    return agent_make(inject_memories_strategy="llm", frozen_char_limit=20, tools=[])


def loop_steps(model: ScriptedModel) -> list[tuple[dict[str, Any], ...]]:
    """Return the messages of each model call except keyword calls."""
    return [call.messages for call in model.calls if "search words" not in str(call.messages[0]["content"])]


def before_the_loop(messages: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    return messages[: [message["role"] for message in messages].index("user") + 1]


def clear_caches() -> None:
    """Clear the caches, as if another process took the next request."""
    snapshots.clear()
    thread_cache.clear()


async def run_in_three_rounds(api: Api, model: ScriptedModel, *, between: Any = None) -> list[Answer]:
    """Send the three requests of one run: two that end in calls of the client's tool, and one for the answer."""
    model.script(calls(CALL), calls(CALL), "No.")
    first = await ask(api, USER, tools=[LOOKUP])
    tail = results(first, "A")
    if between:
        await in_thread(between)
    second = await ask(api, USER, *tail, tools=[LOOKUP])
    clear_caches()
    third = await ask(api, USER, *tail, *results(second, "B"), tools=[LOOKUP])
    assert third.text == "No."
    assert {answer.run for answer in (first, second, third)} == {first.run}
    return [first, second, third]


async def test_every_round_begins_with_the_same_bytes(alice_api: Api, llm_agent: Agent, model: ScriptedModel) -> None:
    model.script(KEYWORDS)
    await run_in_three_rounds(alice_api, model)
    first, second, third = (before_the_loop(messages) for messages in loop_steps(model))
    assert first == second == third
    assert [message["role"] for message in first] == ["system", "system", "user"]
    assert "Works on harbours." in first[0]["content"]
    assert "Plays the cello." in first[0]["content"]
    assert "Is allergic to hazelnuts." in first[1]["content"]


async def test_notes_of_the_client_do_not_move_the_recall(
    alice_api: Api, llm_agent: Agent, model: ScriptedModel
) -> None:
    note = {"role": "user", "content": "<system-reminder>Be quick.</system-reminder>"}
    model.script(KEYWORDS, calls(CALL), calls(CALL), "No.")
    tail = [*results(await ask(alice_api, USER, tools=[LOOKUP]), "A"), note]
    second = await ask(alice_api, USER, *tail, tools=[LOOKUP])
    await ask(alice_api, USER, *tail, *results(second, "B"), tools=[LOOKUP])
    first, *others = loop_steps(model)
    assert [messages[: len(first)] for messages in others] == [first, first]


@pytest.mark.any_database
@pytest.mark.parametrize("dialect", ["openai", "strict"])
async def test_the_recall_precedes_a_loop_that_is_sent_without_a_user_message(
    alice_api: Api, llm_agent: Agent, model: ScriptedModel, settings: Settings, dialect: str
) -> None:
    settings.DAYBOOK_UPSTREAMS = {"default": {"url": "http://127.0.0.1:1/v1", "key": "", "dialect": dialect}}
    model.script(KEYWORDS, calls(CALL), "No.")
    loop = results(await ask(alice_api, USER, tools=[LOOKUP]), "A")
    await ask(alice_api, {"role": "assistant", "content": "Ready."}, *loop, tools=[LOOKUP])
    _, greeting, recall, *rest = loop_steps(model)[-1]
    assert (greeting["content"], "Is allergic to hazelnuts." in recall["content"]) == ("Ready.", True)
    assert [(message["role"], message["content"]) for message in rest] == [("assistant", None), ("tool", "A")]


@pytest.mark.any_database
async def test_changes_take_effect_in_the_next_run(
    alice_api: Api, alice: Owner, llm_agent: Agent, model: ScriptedModel
) -> None:
    def change() -> None:
        with book_writing(Book.objects.get(), Source(actor="user:1", origin=WriteOrigin.USER)) as writer:
            writer.update(1, MemoryFields(content="Is allergic to hazelnuts and walnuts."))
        memory_make(alice, "Likes hazelnut trees.")
        agent_make(inject_memories_strategy="llm", frozen_char_limit=0, tools=[], instructions="You are chatty.")
        clear_caches()

    model.script(KEYWORDS)
    await run_in_three_rounds(alice_api, model, between=change)
    first, second, third = (before_the_loop(messages) for messages in loop_steps(model))
    assert first == second == third
    model.script(KEYWORDS, "No.")
    await ask(alice_api, USER)
    newest = str(model.calls[-1].messages)
    assert "You are chatty." in newest
    assert "hazelnuts and walnuts" in newest


async def test_a_run_makes_one_keyword_call_and_one_embedding_call(
    alice_api: Api, llm_agent: Agent, model: ScriptedModel, settings: Any
) -> None:
    settings.EMBEDDING_MODEL = "letters"
    model.script(KEYWORDS)
    await run_in_three_rounds(alice_api, model)
    assert (len(model.calls), model.embedded) == (4, [(USER["content"],)])


async def test_the_keyword_call_counts_in_the_usage_of_the_first_round(
    alice_api: Api, llm_agent: Agent, model: ScriptedModel
) -> None:
    model.script(KEYWORDS)
    answers = await run_in_three_rounds(alice_api, model)
    assert [answer.json["usage"]["total_tokens"] for answer in answers] == [64, 10, 10]
    run = await in_thread(Run.objects.get)
    assert (run.usage["total_tokens"], run.usage["prompt_tokens"]) == (84, 71)
    assert run.trace["recall"]["keywords"] == {"strategy": "llm", "found": 2, "usage": KEYWORDS.usage}


async def test_the_keyword_call_counts_in_a_stream_and_in_a_native_turn(
    alice_api: Api, llm_agent: Agent, model: ScriptedModel
) -> None:
    model.script(KEYWORDS, "No.", KEYWORDS, "No.")
    chunks = await stream(alice_api, USER, stream_options={"include_usage": True})
    assert chunks[-1]["usage"]["total_tokens"] == 64
    _, created = await alice_api.post("/api/sessions", {"agent": "assistant"})
    _, turn = await alice_api.post(f"/api/sessions/{created['id']}/turns", {"content": USER["content"]})
    assert turn["usage"]["total_tokens"] == 64


async def test_failed_calls_are_not_repeated(
    alice_api: Api, llm_agent: Agent, model: ScriptedModel, settings: Any
) -> None:
    settings.EMBEDDING_MODEL, model.embedding_fault = "letters", UpstreamError("down")
    model.script(UpstreamError("down"))
    await run_in_three_rounds(alice_api, model)
    assert (len(model.calls), len(model.embedded)) == (4, 1)
    recall = (await in_thread(Run.objects.get)).trace["recall"]
    assert (recall["keywords"]["fallback"], recall["embedding"]) == ("upstream_error", "upstream_error")


async def test_a_failed_snapshot_is_not_retried_in_the_run(
    alice_api: Api, llm_agent: Agent, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(state: Any) -> Any:
        raise RuntimeError("no view")

    monkeypatch.setattr("memories.recall.snapshot.load_view", fail)
    await run_in_three_rounds(alice_api, model, between=monkeypatch.undo)
    systems = [messages[0]["content"] for messages in loop_steps(model)]
    assert systems == ["You are terse."] * 3


async def test_the_run_stores_its_recalled_memories_and_trace(
    alice_api: Api, llm_agent: Agent, model: ScriptedModel
) -> None:
    model.script(KEYWORDS)
    await run_in_three_rounds(alice_api, model)
    run = await in_thread(Run.objects.get)
    assert [item["lane"] for item in run.recalled] == ["frozen", "long_term"]
    assert (run.trace["recall"]["long_term"]["found"], run.trace["steps"]) == (1, 3)


async def test_the_injected_text_is_deleted_with_the_end_of_the_run(
    alice_api: Api, llm_agent: Agent, model: ScriptedModel
) -> None:
    model.script(KEYWORDS, calls(CALL), "No.")
    first = await ask(alice_api, USER, tools=[LOOKUP])
    waiting = await in_thread(Run.objects.get)
    assert "Is allergic to hazelnuts." in waiting.injected["recall"]
    await ask(alice_api, USER, *results(first, "A"), tools=[LOOKUP])
    assert (await in_thread(Run.objects.get)).injected is None


async def test_a_run_that_waits_too_long_loses_its_injected_text(
    alice_api: Api, llm_agent: Agent, model: ScriptedModel
) -> None:
    model.script(KEYWORDS, calls(CALL))
    await ask(alice_api, USER, tools=[LOOKUP])
    assert await in_thread(complete_waiting, timezone.now() + timedelta(minutes=61)) == 1
    run = await in_thread(Run.objects.get)
    assert (run.state, run.injected) == ("completed", None)


async def test_a_run_whose_process_died_loses_its_injected_text(
    alice_api: Api, llm_agent: Agent, model: ScriptedModel
) -> None:
    model.script(KEYWORDS, calls(CALL))
    await ask(alice_api, USER, tools=[LOOKUP])
    past = timezone.now() - timedelta(hours=1)
    await in_thread(Run.objects.update, state="running", lease_expires_at=past)
    assert await in_thread(stop_lapsed, timezone.now()) == 1
    assert (await in_thread(Run.objects.get)).injected is None


async def test_forgetting_removes_the_injected_text_of_a_waiting_run(
    alice_api: Api, alice: Owner, llm_agent: Agent, model: ScriptedModel
) -> None:
    model.script(KEYWORDS, calls(CALL), "No.")
    first = await ask(alice_api, USER, tools=[LOOKUP])
    await in_thread(forget_memories, alice.pk)
    run = await in_thread(Run.objects.get)
    assert (run.injected, run.recalled, run.trace) == (None, [], {})
    await ask(alice_api, USER, *results(first, "A"), tools=[LOOKUP])
    assert "hazelnuts" not in str(model.calls[-1].messages)
    assert "harbours" not in str(model.calls[-1].messages)


async def test_forgetting_removes_injected_guidance_too(
    alice_api: Api, alice: Owner, llm_agent: Agent, model: ScriptedModel
) -> None:
    await in_thread(agent_make, inject_memories=False, tools=[])
    model.script(calls(CALL))
    await ask(alice_api, USER, tools=[LOOKUP])
    await in_thread(forget_memories, alice.pk)
    assert (await in_thread(Run.objects.get)).injected is None


async def test_a_cleared_book_is_not_injected_from_a_waiting_run(
    alice_api: Api, alice: Owner, llm_agent: Agent, model: ScriptedModel
) -> None:
    model.script(KEYWORDS, calls(CALL), "No.")
    first = await ask(alice_api, USER, tools=[LOOKUP])
    await in_thread(lambda: book_clear(Book.objects.get(), actor="user:1"))
    await ask(alice_api, USER, *results(first, "A"), tools=[LOOKUP])
    assert before_the_loop(model.calls[-1].messages) == ({"role": "system", "content": "You are terse."}, USER)


async def test_a_run_that_is_prepared_again_keeps_its_earlier_trace(
    alice_api: Api, llm_agent: Agent, model: ScriptedModel
) -> None:
    """That its model searched the web counts for the memories that it writes later."""
    model.script(KEYWORDS, Says(calls=(CALL,), cites=("https://example.org",)), "No.")
    first = await ask(alice_api, USER, tools=[LOOKUP])
    await in_thread(lambda: book_clear(Book.objects.get(), actor="user:1"))
    await ask(alice_api, USER, *results(first, "A"), tools=[LOOKUP])
    trace = (await in_thread(Run.objects.get)).trace
    assert (trace["steps"], trace["searched"]) == (2, True)
