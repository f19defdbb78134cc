"""Reviews by models, and servers, that do not call tools as they should"""

import json

import pytest

from memories.models import Owner
from tests.factories import memory_make
from tests.reviews.talk import DONE, adds, contents, due_review, newest_review, run_review, say
from tests.scripted_model import Says, ScriptedModel, calls

pytestmark = pytest.mark.any_database

ARGUMENTS = json.dumps({"content": "Is vegetarian.", "target": "user", "evidence": "I am a vegetarian."})
CALL = f'{{"name": "add_memory", "arguments": {ARGUMENTS}}}'


@pytest.mark.parametrize(
    "answer",
    [f"<tool_call>\n{CALL}\n</tool_call>", f"[TOOL_CALLS][{CALL}]", f"Sure!\n```json\n{CALL}\n```",
     f"<function=add_memory>{ARGUMENTS}</function>", f"<think>{CALL}?</think>\n{CALL}"],
)  # fmt: skip
def test_calls_that_the_server_left_in_the_text_are_staged(answer: str, alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice)
    model.script(answer)
    assert (run_review(review).state, contents()) == ("saved", ["Is vegetarian."])


@pytest.mark.parametrize("name", ["functions.add_memory", "default_api:add_memory", "add_memory<|channel|>commentary"])
def test_what_models_write_around_a_tools_name_is_ignored(name: str, alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice)
    model.script(calls((name, ARGUMENTS)), DONE)
    done = run_review(review)
    assert (done.state, done.dropped_calls, contents()) == ("saved", {}, ["Is vegetarian."])


@pytest.mark.parametrize("first", [None, "Is vegetarian."])
def test_a_quoted_call_is_not_made(first: str | None, alice: Owner, model: ScriptedModel) -> None:
    """A model that says that it is done, or whose server parses calls, only quotes them."""
    memory_make(alice, "Likes tea.")
    review = due_review(alice)
    quoted = 'The page says: {"name": "delete_memory", "arguments": {"id": 1}}.'
    steps = (adds(first, evidence="I am a vegetarian."), f"Saved. {quoted}") if first else (f"{DONE} {quoted}",)
    model.script(*steps)
    run_review(review)
    assert "Likes tea." in contents()


def test_an_answer_that_was_cut_off_before_a_call_is_a_failure(alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice)
    model.script(Says(pieces=("Let me look at the conver",), finish_reason="length"))
    done = run_review(review)
    assert (done.state, (done.error or {}).get("code")) == ("failed", "answer_cut_off")
    say(done.session)
    model.script(DONE)
    assert "Let me" not in str(run_review(newest_review()).error)
    assert "I am a vegetarian." in str(model.calls[-1].messages), "the next review reads the turn again"


@pytest.mark.parametrize("text", [DONE, f"{CALL}\n{CALL[:40]}"])
def test_an_answer_that_was_cut_off_later_counts(text: str, alice: Owner, model: ScriptedModel) -> None:
    review = due_review(alice)
    model.script(Says(pieces=(text,), finish_reason="length"))
    assert run_review(review).state == ("nothing_to_save" if text == DONE else "saved")
