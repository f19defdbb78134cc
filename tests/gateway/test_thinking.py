"""What a model thought is told while it thinks and kept with its turn, up to a limit."""

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
from tests.gateway.v1 import ask
from tests.scripted_model import Says, ScriptedModel

pytestmark = pytest.mark.any_database


def turns(session: Session) -> str:
    return f"/api/sessions/{session.pk}/turns"


def told(body: str, name: str) -> list[dict[str, Any]]:
    """The data of a stream's events of that name."""
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
def test_each_server_has_its_own_name_for_it(part: dict[str, Any], text: str) -> None:
    assert reasoning_in(part) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<think>\nHm.\n</think>\n\nTea.", "Tea."),
        ("Hm.\n</think>\n\nTea.", "Tea."),
        ("<think>\n\n</think>\n\n", ""),
        ("<think>Hm, tea", ""),
        ("Tea.", "Tea."),
        ("Templates write <think> and </think>.", "Templates write <think> and </think>."),
    ],
)
def test_thinking_in_the_text_is_told_from_the_answer(text: str, said: str) -> None:
    assert without_thinking(text) == said


async def test_it_is_streamed_stored_and_not_sent_again(alice_api: Api, session: Session, model: ScriptedModel) -> None:
    call = ("search_memories", '{"query": "tea"}')
    model.script(Says(thinks=("Let me ", "look."), calls=(call,)), Says(thinks=("So.",), pieces=("Tea.",)), "Yes.")
    _, body = await alice_api.stream(turns(session), {"content": "What do I drink?", "stream": True})
    pieces = told(body, "reasoning")
    assert "".join(piece["text"] for piece in pieces) == "Let me look.\n\nSo."
    assert pieces[0]["at"] == 0
    run = await in_thread(Run.objects.get)
    assert (run.reasoning, run.text) == ("Let me look.\n\nSo.", "Tea.")
    assert run.trace["thought_ms"] >= 0
    await alice_api.post(turns(session), {"content": "Sure?"})
    assert "Let me look" not in json.dumps([m for m in model.calls[-1].messages if m["role"] != "tool"])


async def test_of_an_answer_in_one_piece_it_is_stored_without_a_time(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(Says(thinks=("Hm.",), pieces=("Yes.",)))
    await ask(alice_api, "Hi")
    run = await in_thread(Run.objects.get)
    assert run.reasoning == "Hm."
    assert "thought_ms" not in run.trace


async def test_it_is_bounded(
    alice_api: Api, session: Session, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thinking, "MAX_CHARS", 10)
    model.script(Says(thinks=("12345678", "90123", "4"), pieces=("Yes.",)))
    await alice_api.stream(turns(session), {"content": "Hi", "stream": True})
    assert (await in_thread(Run.objects.get)).reasoning == "1234567890"


async def test_it_is_exported_and_goes_where_memory_is_forgotten(
    alice_api: Api, alice: Owner, session: Session, model: ScriptedModel
) -> None:
    model.script(Says(thinks=("Alice drinks tea.",), pieces=("Tea.",)))
    await alice_api.stream(turns(session), {"content": "Hi", "stream": True})
    lines = await in_thread(lambda: [line for line in export_conversations(alice.pk) if line["type"] == "reasoning"])
    assert [line["content"] for line in lines] == ["Alice drinks tea."]

    def forget() -> str:
        Run.objects.update(recalled=[{"memory_id": "1", "lane": "frozen", "why": ""}])
        for step in erase_traces(alice.pk, []):
            step.batch(100)
        return Run.objects.get().reasoning

    assert await in_thread(forget) == ""
