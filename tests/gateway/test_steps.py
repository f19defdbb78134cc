"""Model steps: several of one turn, whose texts and usage are joined, and single ones outside a turn"""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from gateway.models import Agent, Message, Run, Session
from gateway.runs.native import open_native
from gateway.steps import MAX_AROUND
from gateway.steps import ask as ask_model
from gateway.turns.engine import Turn
from gateway.turns.events import Delta, TurnOptions
from gateway.upstream import ModelTarget
from gateway.upstream.usage import add_usage, usage_since
from memories.database.access import in_thread
from memories.errors import RateLimited, TooLarge, UpstreamTimeout
from memories.models import Owner
from tests.conftest import Api
from tests.factories import caller_make
from tests.gateway.client_tools import ADD, LOOKUP
from tests.gateway.v1 import ask, stream, streamed_text
from tests.scripted_model import Hangs, Says, ScriptedModel

USAGE: dict[str, Any] = {
    "prompt_tokens": 7,
    "completion_tokens": 3,
    "total_tokens": 10,
    "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": None},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
TARGET = ModelTarget("local", "llama")
MESSAGES = ({"role": "user", "content": "Hi"},)


def pieces(*texts: str, **more: Any) -> Says:
    return Says(pieces=texts, calls=(ADD,), **more)


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        (("One ", "moment."), ("Not", "ed."), "One moment.\n\nNoted."),
        (("One moment. ",), ("Noted.",), "One moment. Noted."),
        (("One moment.",), ("\nNoted.",), "One moment.\nNoted."),
        ((), ("Noted.",), "Noted."),
    ],
)
async def test_texts_around_our_tools_are_separated(
    alice_api: Api, agent: Agent, model: ScriptedModel, before: tuple[str, ...], after: tuple[str, ...], joined: str
) -> None:
    model.script(pieces(*before), Says(pieces=after), pieces(*before), Says(pieces=after))
    assert streamed_text(await stream(alice_api, "I'm vegetarian")) == joined
    whole = await ask(alice_api, "As I said, I'm vegetarian")
    assert whole.text == joined
    assert await in_thread(lambda: list(Run.objects.values_list("text", flat=True))) == [joined, joined]
    model.script("You are.")
    resent = await ask(alice_api, "As I said, I'm vegetarian", joined, "Am I?")
    assert resent.session == whole.session


async def test_each_step_is_stored_with_its_own_text(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script(pieces("One moment."), "Noted.")
    await ask(alice_api, "I'm vegetarian")
    stored = Message.objects.filter(role="assistant").order_by("seq")
    assert await in_thread(lambda: list(stored.values_list("text", flat=True))) == ["One moment.", "Noted."]


async def test_the_separator_is_not_stored_in_the_messages_of_a_stopped_turn(
    alice: Owner, session: Session, model: ScriptedModel
) -> None:
    model.script(pieces("One moment."), Hangs(pieces=("Half",)))
    context = await in_thread(
        open_native, caller_make(alice), session_id=session.pk, content="Hi", replaces=None, request_id="r"
    )
    events = Turn(context, TurnOptions()).events()
    text_so_far = ""
    async for event in events:
        text_so_far += event.text if isinstance(event, Delta) else ""
        if text_so_far.endswith("Half"):
            break
    await events.aclose()
    run = await in_thread(Run.objects.get)
    assert (text_so_far, run.text, run.state) == ("One moment.\n\nHalf", text_so_far, "stopped")
    stored = Message.objects.filter(role="assistant").order_by("seq")
    assert await in_thread(lambda: list(stored.values_list("text", flat=True))) == ["One moment.", "Half"]


async def test_text_after_the_clients_tools_starts_a_new_message(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    user = {"role": "user", "content": "Look it up"}
    model.script(Says(pieces=("One moment.",), calls=(("lookup", "{}"),)), pieces("Found it."), "Noted.")
    first = await ask(alice_api, user, tools=[LOOKUP])
    message = first.json["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "A"}
    second = await ask(alice_api, user, message, result, tools=[LOOKUP])
    assert (first.text, second.text) == ("One moment.", "Found it.\n\nNoted.")
    assert (await in_thread(Run.objects.get)).text == "One moment.\n\nFound it.\n\nNoted."


async def test_the_separator_is_sent_together_with_fields_of_the_upstream(
    alice_api: Api, agent: Agent, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = iter([("One moment.", [ADD]), ("Noted.", [])])

    async def stream_with_reasoning(request: Any) -> Any:
        text, made = next(steps)
        for index, (name, arguments) in enumerate(made):
            call = {"index": index, "id": "a", "function": {"name": name, "arguments": arguments}}
            yield {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}
        yield {"choices": [{"index": 0, "delta": {"content": text, "reasoning_content": "Hm."}}]}

    monkeypatch.setattr(model, "stream", stream_with_reasoning)
    chunks = await stream(alice_api, "I'm vegetarian")
    assert streamed_text(chunks) == "One moment.\n\nNoted."
    assert sum("reasoning_content" in chunk["choices"][0]["delta"] for chunk in chunks) == 2


async def test_usage_is_summed_including_details(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    plain = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    model.script(pieces("One moment.", usage=USAGE), Says(pieces=("Noted.",), usage=USAGE), pieces(usage=plain))
    model.script(Says(pieces=("Noted.",), usage=USAGE))
    whole = await ask(alice_api, "I'm vegetarian")
    summed = {
        "prompt_tokens": 14,
        "completion_tokens": 6,
        "total_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 4},
    }
    assert whole.json["usage"] == summed
    chunks = await stream(alice_api, "Again", stream_options={"include_usage": True})
    assert chunks[-1]["usage"] == add_usage(plain, USAGE)
    assert chunks[-1]["usage"]["prompt_tokens_details"] == {"cached_tokens": 4}


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({}, (0, 0, 0)),
        ({"prompt_tokens": 7, "completion_tokens": 3}, (7, 3, 10)),
        ({"total_tokens": 5}, (0, 0, 5)),
        ({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 12, "cost": 0.5}, (7, 5, 12)),
    ],
)
async def test_the_usage_of_a_stream_has_every_figure(
    alice_api: Api, agent: Agent, model: ScriptedModel, reported: dict[str, Any], expected: tuple[int, ...]
) -> None:
    """Clients that request usage add the figures up, but some servers report none or only some of them."""
    model.script(Says(pieces=("Tea.",), usage=reported))
    usage = (await stream(alice_api, "Hi", stream_options={"include_usage": True}))[-1]["usage"]
    assert tuple(usage.pop(name) for name in ("prompt_tokens", "completion_tokens", "total_tokens")) == expected
    assert usage == {name: value for name, value in reported.items() if name == "cost"}


def test_the_usage_of_a_request_is_the_increase_of_the_runs_usage() -> None:
    assert usage_since(add_usage(USAGE, USAGE), USAGE) == add_usage({}, USAGE)
    assert usage_since(USAGE, {}) == add_usage({}, USAGE)
    assert add_usage({}, {}) == usage_since({}, {}) == {}


# ---- a step outside a turn ----


async def test_ask_collects_text_calls_usage_and_model(model: ScriptedModel) -> None:
    model.script(Says(pieces=("One ", "moment."), calls=(("add", "{}"),)))
    tool = {"type": "function", "function": {"name": "add"}}
    answer = await ask_model(TARGET, MESSAGES, seconds=7, tools=[tool], request_id="r")
    assert (answer.text, [call.name for call in answer.calls]) == ("One moment.", ["add"])
    assert (answer.usage["total_tokens"], answer.model) == (10, "scripted")
    (sent,) = model.calls
    assert (sent.upstream, sent.model, sent.request_id) == ("local", "llama", "r")
    assert (sent.messages, sent.tools) == (MESSAGES, (tool,))
    assert 0 < sent.seconds <= 7


async def test_ask_raises_typed_errors(model: ScriptedModel) -> None:
    model.script(RateLimited("Later.", status=429), Hangs(pieces=("Half",)), "A long answer.")
    with pytest.raises(RateLimited):
        await ask_model(TARGET, MESSAGES, seconds=5)
    with pytest.raises(UpstreamTimeout):
        await ask_model(TARGET, MESSAGES, seconds=0.5)
    with pytest.raises(TooLarge):
        await ask_model(TARGET, MESSAGES, seconds=5, answer_bytes=5)


async def test_the_fields_around_an_answer_are_limited_in_number(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stream(*_: Any) -> AsyncGenerator[dict[str, Any]]:
        for number in range(MAX_AROUND + 10):
            yield {f"x{number}": 1, "choices": [{"index": 0, "delta": {"content": "a"}}]}

    monkeypatch.setattr(model, "stream", stream)
    assert len((await ask_model(TARGET, MESSAGES, seconds=5)).around) == MAX_AROUND
