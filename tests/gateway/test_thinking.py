"""Reasoning of the model: streamed while it is generated, and stored with its turn up to a limit"""

import json
from typing import Any

import pytest

from gateway.models import Agent, Run, Session
from gateway.portability import erase_traces, export_conversations
from gateway.turns import output
from gateway.upstream.reasoning import ThoughtInText, reasoning_in
from memories.database.access import in_thread
from memories.models import Owner
from tests.conftest import Api
from tests.gateway.native import turns_path
from tests.gateway.v1 import ask, stream
from tests.scripted_model import Says, ScriptedModel

pytestmark = pytest.mark.any_database

MODEL = ("lab", "thinker")


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
    assert ThoughtInText().moved({"content": text}, last=True)["content"] == answer


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
    monkeypatch.setattr(output, "MAX_REASONING", 10)
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


def moved(text: str, size: int) -> tuple[str, str]:
    """Return the thought and the text that come out of a stream of pieces of this size."""
    splitter, parts = ThoughtInText(), [text[at : at + size] for at in range(0, len(text), size)]
    found = [*(splitter.moved({"content": part}) for part in parts), splitter.moved({}, last=True)]
    return "".join(part.get("reasoning_content", "") for part in found), "".join(
        part.get("content", "") for part in found
    )


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>Hm.</think>\n\nTea.", ("Hm.", "Tea.")),
        ("\n<think>\nA < b </thin\n</think> Tea </think>", ("A < b </thin\n", "Tea </think>")),
        ("<think>\n\n</think>\n\nTea.", ("", "Tea.")),
        ("<think>Hm, tea </thi", ("Hm, tea </thi", "")),
        ("<think>", ("", "")),
        ("<thin", ("", "<thin")),
        ("<thinking> is a tag.", ("", "<thinking> is a tag.")),
        ("[THINK]Hm, </think>.[/THINK]Tea.", ("Hm, </think>.", "Tea.")),
        ("[THINK]Hm, tea [/THI", ("Hm, tea [/THI", "")),
        ("[THIS] is a tag.", ("", "[THIS] is a tag.")),
        ("Tea <think>x</think>.", ("", "Tea <think>x</think>.")),
        ("  \n", ("", "  \n")),
        ("", ("", "")),
    ],
)
def test_a_thought_at_the_beginning_of_a_text_is_moved(text: str, expected: tuple[str, str], size: int) -> None:
    assert moved(text, size) == expected


def test_a_stream_of_white_space_is_not_held_back_without_end() -> None:
    thought = ThoughtInText()
    passed = [thought.moved({"content": " " * 100})["content"] for _ in range(50)]
    assert len("".join(passed)) > 4_000, "only what is passed on counts towards the limit of an answer"


def test_white_space_is_not_held_back_behind_a_call() -> None:
    call = {"index": 0, "id": "call_0", "function": {"name": "lookup", "arguments": "{}"}}
    for part in ({"content": "\n\n", "tool_calls": [call]}, {"content": None, "tool_calls": [call]}):
        assert ThoughtInText().moved(part) is part
    thought = ThoughtInText()
    passed = [thought.moved(part).get("content") for part in ({"content": "\n\n"}, {"tool_calls": [call]})]
    assert passed == ["", "\n\n"]


def test_a_thought_in_a_whole_message_is_added_to_that_of_the_server() -> None:
    message = {"role": "assistant", "content": "<think>So.</think>Tea.", "reasoning_content": "Hm. "}
    whole = ThoughtInText().moved(message, last=True)
    assert whole == {"role": "assistant", "content": "Tea.", "reasoning_content": "Hm. So."}
    parts = {"content": [{"type": "text", "text": "<think>"}]}
    assert ThoughtInText().moved(parts, last=True) is parts


@pytest.mark.parametrize("streamed", [False, True])
async def test_clients_get_a_thought_in_the_text_as_reasoning(
    streamed: bool, alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(Says(pieces=("<thi", "nk>They like", " tea.</th", "ink>\n", "\nTea.")))
    if streamed:
        deltas = [choice["delta"] for chunk in await stream(alice_api, "I like tea") for choice in chunk["choices"]]
        answer = {key: "".join(d.get(key) or "" for d in deltas) for key in ("content", "reasoning_content")}
    else:
        answer = (await ask(alice_api, "I like tea")).json["choices"][0]["message"]
    assert (answer["content"], answer["reasoning_content"]) == ("Tea.", "They like tea.")
    run = await in_thread(Run.objects.get)
    assert (run.text, run.reasoning) == ("Tea.", "They like tea.")


async def test_a_thought_that_never_ends_is_no_answer(alice_api: Api, session: Session, model: ScriptedModel) -> None:
    model.script(Says(pieces=("<think>They like tea, or ",), finish_reason="length"))
    _, turn = await alice_api.post(turns_path(session), {"content": "I like tea"})
    assert (turn["content"], turn["reasoning"]) == ("", "They like tea, or ")


def streamed(
    text: str, size: int, *, cut_off: bool = False, answered_by: tuple[str, str] = MODEL, **parameters: Any
) -> tuple[str, str]:
    """Return the thought and the text of a stream of pieces of this size, and let it teach."""
    splitter, parts = ThoughtInText(MODEL, parameters), [text[at : at + size] for at in range(0, len(text), size)]
    found = [*(splitter.moved({"content": part}) for part in parts), splitter.moved({}, last=True, cut_off=cut_off)]
    answer = "".join(part.get("content", "") for part in found)
    splitter.ended(answered_by, answer)
    return "".join(part.get("reasoning_content", "") for part in found), answer


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_model_that_closes_unopened_thoughts_is_remembered(size: int) -> None:
    text = "They like tea.\n</think>\n\nTea."
    assert streamed(text, size) == ("", text)  # the first one is only known at its end
    assert streamed(text, size) == ("They like tea.\n", "Tea.")
    assert streamed("<think>\nHm.\n</think>\nTea.", size) == ("Hm.\n", "Tea.")
    assert streamed("", size) == ("", "")
    assert streamed("They like </thi", size, cut_off=True) == ("They like </thi", "")
    assert streamed(text, size) == ("They like tea.\n", "Tea.")


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_an_answer_without_a_thought_is_kept_and_two_of_them_forget_the_model(size: int) -> None:
    text = "They like tea.\n</think>\n\nTea."
    streamed(text, size)
    assert streamed("Tea, no thought </thi", size)[1] == "Tea, no thought </thi"
    assert streamed(text, size) == ("They like tea.\n", "Tea.")
    assert streamed("Tea.", size)[1] == "Tea."
    assert streamed("", size) == ("", "")  # only a tool call: says nothing
    assert streamed("Tea.", size)[1] == "Tea."
    assert streamed("Tea.", size) == ("", "Tea.")


@pytest.mark.parametrize(
    "off", [{"chat_template_kwargs": {"enable_thinking": False}}, {"reasoning_effort": "none"}], ids=str
)
def test_an_agent_that_switches_thinking_off_is_learned_of_by_itself(off: dict[str, Any]) -> None:
    text = "They like tea.\n</think>\n\nTea."
    streamed(text, 3)
    for _ in range(3):
        assert streamed("Tea.", 3, temperature=1, **off) == ("", "Tea."), "its text is not streamed as a thought"
    assert streamed(text, 3, temperature=2) == ("They like tea.\n", "Tea.")


def test_a_whole_message_is_split_at_the_line_with_the_tag() -> None:
    message = {"content": "The tag `</think>` ends it. I plan.\n</think>\n\nTea."}
    whole = ThoughtInText(MODEL).moved(message, last=True)
    assert whole == {"content": "Tea.", "reasoning_content": "The tag `</think>` ends it. I plan."}


def test_a_fallback_teaches_about_itself_only() -> None:
    text = "They like tea.\n</think>\n\nTea."
    streamed(text, 3, answered_by=("lab", "fallback"))
    assert streamed("Tea.", 3) == ("", "Tea.")
    streamed(text, 3)
    for _ in range(2):
        streamed("Tea.", 3, answered_by=("lab", "fallback"))
    assert streamed(text, 3) == ("They like tea.\n", "Tea.")


def test_an_answer_about_the_tag_is_not_taken_for_a_thought() -> None:
    for text in (
        "It ends with </think> and a line break.",
        "```\n<think>\nHm.\n</think>\n```\nLike this.",
        "Like this:\n```\n</think>\n```\nThat is all.",
    ):
        assert ThoughtInText(MODEL).moved({"content": text}, last=True) == {"content": text}
        assert streamed(text, 5) == ("", text)
        assert streamed("Tea.", 2) == ("", "Tea.")


@pytest.mark.parametrize("stream_it", [False, True])
async def test_clients_get_an_unopened_thought_as_reasoning(
    stream_it: bool, alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(*[Says(pieces=("They like", " tea.\n</th", "ink>\n\nTea."))] * (1 + stream_it))
    if stream_it:
        await stream(alice_api, "I like tea")  # its end shows that the thought was one
        deltas = [choice["delta"] for chunk in await stream(alice_api, "I like tea") for choice in chunk["choices"]]
        answer = {key: "".join(d.get(key) or "" for d in deltas) for key in ("content", "reasoning_content")}
    else:
        answer = (await ask(alice_api, "I like tea")).json["choices"][0]["message"]
    assert (answer["content"], answer["reasoning_content"].strip()) == ("Tea.", "They like tea.")
    run = await in_thread(lambda: Run.objects.latest("started_at"))
    assert (run.text, run.reasoning.strip()) == ("Tea.", "They like tea.")
