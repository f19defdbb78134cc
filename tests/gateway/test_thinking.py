"""Reasoning of the model: streamed while it is generated, and stored with its turn up to a limit"""

import json
from typing import Any

import pytest

from gateway.models import Agent, Run, Session
from gateway.portability import erase_traces, export_conversations
from gateway.turns import thinking
from gateway.upstream.reasoning import reasoning_in, without_thinking
from memories.database.access import in_thread
from memories.models import Owner
from tests.conftest import Api
from tests.gateway.native import turns_path
from tests.gateway.v1 import ask
from tests.scripted_model import Says, ScriptedModel

pytestmark = pytest.mark.any_database


def event_data(body: str, name: str) -> list[dict[str, Any]]:
    """Return the data of the events with that name."""
    blocks = [block.splitlines() for block in body.split("\n\n")]
    found = [block for block in blocks if f"event: {name}" in block]
    return [json.loads(line.removeprefix("data: ")) for block in found for line in block if line.startswith("data: ")]


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"reasoning_content": "Hm."}, "Hm."),
        ({"reasoning": "Hm."}, "Hm."),
        ({"reasoning": {"effort": "low"}}, ""),
        (
            {"reasoning_details": [{"type": "reasoning.text", "text": "H"}, {"summary": "m."}, {"data": "sealed"}]},
            "Hm.",
        ),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"text": "Yes."}]}, "Hm."),
        ({"content": [{"type": "thinking", "thinking": "Hm."}]}, "Hm."),
        ({"content": "Yes."}, ""),
    ],
)
def test_reasoning_is_found_under_every_servers_field(part: dict[str, Any], text: str) -> None:
    assert reasoning_in(part) == text


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>\nHm.\n</think>\n\nTea.", "Tea."),
        ("Hm.\n</think>\n\nTea.", "Tea."),
        ("<think>\n\n</think>\n\n", ""),
        ("<think>Hm, tea", ""),
        ("Tea.", "Tea."),
        ("Templates write <think> and </think>.", "Templates write <think> and </think>."),
    ],
)
def test_reasoning_in_the_text_is_separated_from_the_answer(text: str, answer: str) -> None:
    assert without_thinking(text) == answer


async def test_reasoning_is_streamed_and_stored_but_not_resent(
    alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    call = ("search_memories", '{"query": "tea"}')
    model.script(Says(thinks=("Let me ", "look."), calls=(call,)), Says(thinks=("So.",), pieces=("Tea.",)), "Yes.")
    _, body = await alice_api.stream(turns_path(session), {"content": "What do I drink?", "stream": True})
    pieces = event_data(body, "reasoning")
    assert "".join(piece["text"] for piece in pieces) == "Let me look.\n\nSo."
    assert pieces[0]["at"] == 0
    run = await in_thread(Run.objects.get)
    assert (run.reasoning, run.text) == ("Let me look.\n\nSo.", "Tea.")
    assert run.trace["thought_ms"] >= 0
    await alice_api.post(turns_path(session), {"content": "Sure?"})
    assert "Let me look" not in json.dumps([m for m in model.calls[-1].messages if m["role"] != "tool"])


async def test_reasoning_of_an_unstreamed_answer_is_stored_without_a_duration(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(Says(thinks=("Hm.",), pieces=("Yes.",)))
    await ask(alice_api, "Hi")
    run = await in_thread(Run.objects.get)
    assert run.reasoning == "Hm."
    assert "thought_ms" not in run.trace


async def test_stored_reasoning_is_limited(
    alice_api: Api, session: Session, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thinking, "MAX_CHARS", 10)
    model.script(Says(thinks=("12345678", "90123", "4"), pieces=("Yes.",)))
    await alice_api.stream(turns_path(session), {"content": "Hi", "stream": True})
    assert (await in_thread(Run.objects.get)).reasoning == "1234567890"


async def test_reasoning_is_exported_and_erased_when_memory_is_forgotten(
    alice_api: Api, alice: Owner, session: Session, model: ScriptedModel
) -> None:
    model.script(Says(thinks=("Alice drinks tea.",), pieces=("Tea.",)))
    await alice_api.stream(turns_path(session), {"content": "Hi", "stream": True})
    lines = await in_thread(lambda: [line for line in export_conversations(alice.pk) if line["type"] == "reasoning"])
    assert [line["content"] for line in lines] == ["Alice drinks tea."]

    def forget() -> str:
        Run.objects.update(recalled=[{"memory_id": "1", "lane": "frozen", "why": ""}])
        for step in erase_traces(alice.pk, []):
            step.batch(100)
        return Run.objects.get().reasoning

    assert await in_thread(forget) == ""
