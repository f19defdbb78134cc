"""Memory never breaks a turn: a fault at each step of injection, on each API. The turn is answered, the trace and the
metrics name the step, and the text of the exception is not logged."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from django.db import OperationalError

from gateway import compaction, upstream
from gateway.models import Run, Session
from gateway.upstream import ModelRequest
from gateway.upstream.answer import chunk_of_completion
from memories import providers
from memories.artifacts.store import artifact_put
from memories.counters import recall_lanes
from memories.database.access import in_thread
from memories.errors import UpstreamError
from memories.models import Owner, WriteOrigin
from memories.providers import MemoryProvider
from memories.recall import threads
from memories.recall.snapshot import snapshots
from memories.recall.threads import ThreadCache, ThreadView, thread_cache
from memories.services import Source, book_get_or_create
from prompts.files import PromptError
from search.index import BookIndex
from tests.conftest import Api
from tests.factories import agent_make, memory_make, session_make
from tests.reviews.consolidation.rows import settings_make
from tests.scripted_model import Says, ScriptedModel

pytestmark = pytest.mark.any_database

APIS = ["native", "v1 streamed", "v1 in one piece"]
SECRET = "the words of a person"


class FaultyModel(ScriptedModel):
    """Answers a keyword request with the unstreamed completion in `keywords`, as some servers do, or raises it if it is
    an exception. Everything else is scripted."""

    def __init__(self) -> None:
        super().__init__()
        self.keywords: Any = {"choices": [{"message": {"content": "hazelnuts"}, "finish_reason": "stop"}]}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[dict[str, Any]]:
        if "search words" not in str(request.messages[0]["content"]):
            async for chunk in super().stream(request):
                yield chunk
        elif isinstance(self.keywords, Exception):
            raise self.keywords
        else:
            yield chunk_of_completion(self.keywords)


class BrokenProvider(MemoryProvider):
    name = "broken"

    async def retrieve_context(self, scope: Any, query: str) -> Any:
        raise OperationalError(SECRET)


@pytest.fixture
def faulty_model() -> Any:
    model = FaultyModel()
    upstream.install(model)
    yield model
    model.assert_complete()


@pytest.fixture
def session_with_memory(alice: Owner) -> Session:
    """A session whose agent uses every step of injection."""
    settings_make()
    memory_make(alice, "Is allergic to hazelnuts.")
    source = Source(actor="user:1", origin=WriteOrigin.USER)
    artifact_put(book_get_or_create(alice.pk, "main"), "memory_summary.md", "Works on harbours.", source)
    return session_make(alice, agent_make(inject_memories_strategy="llm", frozen_char_limit=0, tools=[]))


async def say(api: Api, session: Session, api_kind: str, content: str) -> str:
    """Run one turn and return its raw answer."""
    if api_kind == "native":
        status, turn = await api.post(f"/api/sessions/{session.pk}/turns", {"content": content})
        assert status == 200, turn
        return str(turn["content"])
    body: dict[str, Any] = {"model": "assistant", "messages": [{"role": "user", "content": content}]}
    body["stream"] = api_kind == "v1 streamed"
    status, text = await api.stream("/v1/chat/completions", body, x_daybook_session=str(session.pk))
    assert status == 200, text
    return text


def raiser(error: Exception) -> Callable[..., Any]:
    def fault(*args: object, **kwargs: object) -> Any:
        raise error

    return fault


def no_snapshot(patch: pytest.MonkeyPatch, settings: Any, model: FaultyModel) -> None:
    patch.setattr("memories.recall.snapshot.load_view", raiser(OperationalError(SECRET)))


def no_thread(patch: pytest.MonkeyPatch, settings: Any, model: FaultyModel) -> None:
    patch.setattr(threads.thread_reader, "_value", raiser(OperationalError(SECRET)))


def no_short_term(patch: pytest.MonkeyPatch, settings: Any, model: FaultyModel) -> None:
    patch.setattr(ThreadView, "search", raiser(RuntimeError(SECRET)))


def no_long_term(patch: pytest.MonkeyPatch, settings: Any, model: FaultyModel) -> None:
    patch.setattr(BookIndex, "search", raiser(RuntimeError(SECRET)))


def no_guidance(patch: pytest.MonkeyPatch, settings: Any, model: FaultyModel) -> None:
    patch.setattr("gateway.turns.injection.guidance", raiser(PromptError(SECRET)))


def no_blocks(patch: pytest.MonkeyPatch, settings: Any, model: FaultyModel) -> None:
    patch.setattr("memories.recall.two_lanes.thread_block", raiser(PromptError(SECRET)))


def no_embedding(patch: pytest.MonkeyPatch, settings: Any, model: FaultyModel) -> None:
    settings.EMBEDDING_MODEL, model.embedding_fault = "letters", TypeError(SECRET)


def no_provider(patch: pytest.MonkeyPatch, settings: Any, model: FaultyModel) -> None:
    settings.MEMORY_PROVIDERS = [f"{__name__}.BrokenProvider"]


def no_providers(patch: pytest.MonkeyPatch, settings: Any, model: FaultyModel) -> None:
    settings.MEMORY_PROVIDERS = ["no.such.Provider"]


FAULTS = {
    "snapshot": (no_snapshot, "OperationalError"),
    "thread": (no_thread, "OperationalError"),
    "short_term": (no_short_term, "RuntimeError"),
    "long_term": (no_long_term, "RuntimeError"),
    "guidance": (no_guidance, "PromptError"),
    "blocks": (no_blocks, "PromptError"),
    "embedding": (no_embedding, "TypeError"),
    "broken": (no_provider, "OperationalError"),
    "providers": (no_providers, "ProviderUnusable"),
}


# The steps do not know which API asked, so that one fault is enough for the others.
@pytest.mark.parametrize(
    ("name", "api_kind"), [*((name, "native") for name in FAULTS), *(("long_term", kind) for kind in APIS[1:])]
)
async def test_a_fault_does_not_fail_the_turn_and_is_named_in_the_trace(
    alice_api: Api,
    session_with_memory: Session,
    faulty_model: FaultyModel,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
    api_kind: str,
) -> None:
    faulty_model.script("Noted.", "Yes.")
    await say(
        alice_api, session_with_memory, "v1 in one piece", "The gate code is on the blue door, near the hazelnuts."
    )
    # Move the first turn out of the window of a native session as well.
    await in_thread(
        compaction.compaction_store, session_with_memory.pk, epoch=0, up_to=2, summary="They spoke of a door."
    )
    snapshots.clear()
    thread_cache.clear()
    fault, kind = FAULTS[name]
    fault(monkeypatch, settings, faulty_model)
    counted = recall_lanes[name, "failed"]
    with caplog.at_level(logging.INFO, logger="daybook"):
        assert "Yes." in await say(alice_api, session_with_memory, api_kind, "What is on the blue door, hazelnuts?")
    run = await in_thread(Run.objects.latest, "id")
    assert (run.state, run.superseded, run.text) == ("completed", False, "Yes.")
    trace = run.trace["recall"][name]
    assert (trace["state"], trace["kind"]) == ("failed", kind)
    assert recall_lanes[name, "failed"] > counted
    assert SECRET not in caplog.text
    assert SECRET not in str(run.trace)


async def test_a_summary_that_cannot_be_rendered_does_not_fail_the_turn(
    alice_api: Api, session_with_memory: Session, faulty_model: FaultyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty_model.script("Noted.", "Yes.")
    await say(alice_api, session_with_memory, "native", "The gate code is on the blue door.")
    await in_thread(
        compaction.compaction_store, session_with_memory.pk, epoch=0, up_to=2, summary="They spoke of a door."
    )
    monkeypatch.setattr("gateway.turns.injection.earlier_block", raiser(PromptError(SECRET)))
    assert await say(alice_api, session_with_memory, "native", "What is on the blue door?") == "Yes."
    run = await in_thread(Run.objects.latest, "id")
    assert run.trace["recall"]["earlier_conversation"] == {"state": "failed", "kind": "PromptError"}


async def test_a_failed_snapshot_does_not_affect_the_short_term_lane(
    alice_api: Api, session_with_memory: Session, faulty_model: FaultyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty_model.script("Noted.", "Yes.")
    await say(alice_api, session_with_memory, "v1 in one piece", "The gate code is on the blue door.")
    snapshots.clear()
    no_snapshot(monkeypatch, None, faulty_model)
    await say(alice_api, session_with_memory, "v1 in one piece", "What is on the blue door?")
    assert "The gate code is on the blue door." in str(faulty_model.calls[-1].messages)


@pytest.mark.parametrize("api_kind", APIS)
async def test_a_keyword_answer_without_a_message_falls_back_to_the_local_rule(
    alice_api: Api, session_with_memory: Session, faulty_model: FaultyModel, api_kind: str
) -> None:
    faulty_model.keywords = {"choices": [{"message": None}]}
    faulty_model.script("Yes.")
    assert "Yes." in await say(alice_api, session_with_memory, api_kind, "May I serve hazelnuts?")
    assert "Is allergic to hazelnuts." in str(faulty_model.calls[-1].messages)


@pytest.mark.parametrize(
    ("keywords", "fallback"),
    [
        ({"choices": [{"message": None}]}, "unusable_answer"),
        ({"choices": [{}]}, "unusable_answer"),
        ({"choices": [None]}, "unusable_answer"),
        ({"choices": []}, "unusable_answer"),
        ({"choices": {"0": {}}}, "unusable_answer"),
        ({}, "unusable_answer"),
        ({"choices": [{"message": {"content": None}}]}, "unusable_answer"),
        ({"choices": [{"message": {"content": [{"type": "image_url"}, None]}}]}, "unusable_answer"),
        ({"choices": [{"message": {"content": ""}, "finish_reason": "length"}]}, "unusable_answer"),
        (UpstreamError(SECRET), "upstream_error"),
        (KeyError(SECRET), "failed:KeyError"),
    ],
)
async def test_an_unusable_keyword_answer_falls_back_to_the_local_rule(
    alice_api: Api, session_with_memory: Session, faulty_model: FaultyModel, keywords: Any, fallback: str
) -> None:
    faulty_model.keywords = keywords
    faulty_model.script("Yes.")
    assert await say(alice_api, session_with_memory, "native", "May I serve hazelnuts?") == "Yes."
    assert "Is allergic to hazelnuts." in str(faulty_model.calls[-1].messages)
    run = await in_thread(Run.objects.get)
    assert run.trace["recall"]["keywords"] == {"strategy": "llm", "fallback": fallback, "usage": {}}


async def test_a_keyword_answer_may_be_a_list_of_parts(
    alice_api: Api, session_with_memory: Session, faulty_model: FaultyModel
) -> None:
    parts = [{"type": "text", "text": "hazelnuts, "}, {"type": "text", "text": "cake"}]
    faulty_model.keywords = {"choices": [{"message": {"content": parts}}]}
    faulty_model.script("No.")
    await say(alice_api, session_with_memory, "native", "May I serve it?")
    assert "Is allergic to hazelnuts." in str(faulty_model.calls[-1].messages)
    assert (await in_thread(Run.objects.get)).trace["recall"]["keywords"]["found"] == 2


@pytest.mark.parametrize("api_kind", APIS)
@pytest.mark.parametrize("inject", [True, False])
async def test_an_unusable_provider_does_not_affect_the_answer(
    alice_api: Api, alice: Owner, model: ScriptedModel, settings: Any, api_kind: str, inject: bool
) -> None:
    settings.MEMORY_PROVIDERS = ["no.such.Provider"]
    agent = await in_thread(agent_make, inject_memories=inject)
    session = await in_thread(session_make, alice, agent)
    model.script("Yes.")
    assert "Yes." in await say(alice_api, session, api_kind, "Hi")
    await asyncio.gather(*providers._pending)
    run = await in_thread(Run.objects.get)
    assert (run.state, run.superseded, run.text, run.error) == ("completed", False, "Yes.", None)
    assert (await in_thread(Session.objects.get, pk=session.pk)).turns == 1


async def test_a_failure_to_cache_the_record_does_not_affect_the_answer(
    alice_api: Api, session: Session, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ThreadCache, "append", raiser(RuntimeError(SECRET)))
    model.script("Yes.")
    assert await say(alice_api, session, "native", "Hi") == "Yes."
    run = await in_thread(Run.objects.get)
    assert (run.state, run.superseded) == ("completed", False)


@pytest.mark.parametrize("place", ["gateway.turns.own_tools.conversation_of", "memories.tools.run_calls"])
async def test_a_fault_of_a_tool_is_a_result_of_its_call(
    alice_api: Api, session: Session, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(place, raiser(OperationalError(SECRET)))
    model.script(Says(calls=(("add_memory", '{"content": "Is vegetarian."}'), ("recall", "{}"))), "Noted.")
    status, turn = await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "No meat, please"})
    assert (status, turn["content"], turn["memory_changes"]) == (200, "Noted.", [])
    failed, unknown = (json.loads(message["content"]) for message in model.calls[1].messages[-2:])
    assert (failed["error"], unknown["error"]) == ("memory_failed", "unknown_tool")
    trace = (await in_thread(Run.objects.get)).trace
    assert trace["tools"] == {"state": "failed", "kind": "OperationalError"}
