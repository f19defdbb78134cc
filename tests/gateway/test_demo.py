"""The demo model: what it saves in turns and reviews, what it ignores, and how it uses the injected memory"""

import json

import httpx2
import pytest

from gateway.demo.brain import answer
from gateway.demo.statements import statements
from gateway.demo.transport import DemoTransport
from prompts.review import ExistingMemory, review_prompt
from tests.gateway.v1 import user
from tests.growth import cost_ratio

REVIEW = ("add_memory", "update_memory", "delete_memory")
TURN = (*REVIEW, "get_memories")


def result(**values: object) -> dict[str, str]:
    return {"role": "tool", "content": json.dumps(values)}


def asked_to_review(*stored: str) -> dict[str, str]:
    existing = [
        ExistingMemory(number=number, target="user", category="fact", content=content)
        for number, content in enumerate(stored, start=1)
    ]
    return user(review_prompt(existing, room={}, max_writes=5))


@pytest.mark.parametrize(
    ("said", "noted"),
    [
        ("I'm vegetarian and I prefer short answers", ["Is vegetarian.", "Prefers short answers."]),
        ("I'm coeliac, what could I bake?", ["Is coeliac."]),
        ("By the way, my cello is called Bruno.", ["Their cello is called Bruno."]),
        ("I live in Turin! I work as a nurse.", ["Lives in Turin.", "Works as a nurse."]),
        ("Hello, call me Ada", ["Wants to be called Ada."]),
        ("Please remember that parking is behind my house.", ["Parking is behind their house."]),
        ("I don't like coriander.", ["Dislikes coriander."]),
        ("We use Mercurial.", ["They use Mercurial."]),
        ("I am <b>Zoe</b>", ["Is <b>Zoe</b>."]),
        ("My name is Zoë… Thanks.", ["Their name is Zoë."]),
        (
            "Hi, I'm Nora. I live in Bergen and I am allergic to peanuts. Remember that please.",
            ["Is Nora.", "Lives in Bergen.", "Is allergic to peanuts."],
        ),
        ("Remember that I work as a nurse, please.", ["Works as a nurse."]),
        ("Remember this: I like tea.", ["Prefers tea."]),
        ("Please remember that it is my turn in May.", ["It is their turn in May."]),
    ],
)
def test_plain_statements_become_memories(said: str, noted: list[str]) -> None:
    assert [statement.content for statement in statements(said)] == noted


@pytest.mark.parametrize(
    "said",
    [
        "Am I a morning person?",
        "I'm hungry and tired.",
        "I'm writing a report about eels.",
        "My train is on track nine today.",
        "Suppose I'm a ferry captain.",
        "Forget that I'm left-handed.",
        "> I prefer the red one",
        "```\nI like tabs\n```",
        "Do you remember that song?",
        "Remember that, please!",
        "Please remember all this for me.",
    ],
)
def test_questions_passing_states_and_quoted_text_are_ignored(said: str) -> None:
    assert list(statements(said)) == []


def test_a_statement_keeps_the_original_sentence() -> None:
    (statement,) = statements("Hello! I am vegetarian and live in Bern, but not in winter.")
    assert statement.said == "I am vegetarian and live in Bern, but not in winter."


def test_keywords_are_words_that_are_not_in_the_memory() -> None:
    (said,) = statements("I'm vegetarian.")
    arguments = said.arguments()
    assert (arguments["content"], arguments["target"], arguments["category"]) == ("Is vegetarian.", "user", "fact")
    assert {"food", "recipe"} <= set(arguments["keywords"])
    assert "vegetarian" not in arguments["keywords"]


def test_a_turn_saves_what_it_is_asked_to_remember() -> None:
    said = answer([user("Call me Ada.")], TURN)
    assert [(name, arguments["content"]) for name, arguments in said.calls] == [
        ("add_memory", "Wants to be called Ada.")
    ]
    assert answer([user("Call me Ada."), result(ok=True, id=1)], TURN).text == "I saved 1 memory."


@pytest.mark.parametrize(
    "refused", [{"ok": False, "error": "blocked"}, {"ok": True, "id": 1, "note": "Already known."}]
)
def test_a_turn_does_not_claim_to_have_saved_refused_or_known_facts(refused: dict[str, object]) -> None:
    assert answer([user("Call me Ada."), result(**refused)], TURN).text == "Nothing new was saved."


def test_other_statements_wait_for_a_review() -> None:
    said = answer([user("I'm left-handed.")], TURN)
    assert said.calls == ()
    assert "I heard: Is left-handed. That is not saved yet" in said.text


def test_a_turn_uses_the_injected_memory() -> None:
    given = {"role": "system", "content": '<memory id="1" category="fact">Is left-handed &amp; tall.</memory>'}
    told = answer([given, user("What do you know about me?")], TURN).text
    assert "- Is left-handed & tall." in told
    assert "I was given 1 memory" in answer([given, user("Hello.")], TURN).text
    assert "I heard" not in answer([given, user("I'm left-handed & tall.")], TURN).text


def test_a_review_saves_new_facts_and_ends_after_its_calls() -> None:
    conversation = [user("I'm left-handed. I live in Turin."), {"role": "assistant", "content": "I am a model."}]
    asked = [*conversation, user("I'm left-handed."), asked_to_review("Lives in Turin.")]
    said = answer(asked, REVIEW)
    assert [(name, arguments["content"]) for name, arguments in said.calls] == [("add_memory", "Is left-handed.")]
    done = answer([*asked, result(ok=True, id=2)], REVIEW)
    assert (done.text, done.calls) == ("Nothing to save.", ())


def test_a_review_without_lasting_facts_saves_nothing() -> None:
    said = answer([user("Hello there."), asked_to_review()], REVIEW)
    assert (said.text, said.calls) == ("Nothing to save.", ())


def test_a_review_writes_at_most_five_times() -> None:
    facts = " ".join(f"I live in {place}." for place in ("Aix", "Bonn", "Cork", "Delft", "Essen", "Faro"))
    assert len(answer([user(facts), asked_to_review()], REVIEW).calls) == 5


@pytest.mark.parametrize(
    "tool", [{"type": "custom", "custom": {"name": "shell"}}, {}, {"function": None}, {"function": {}}]
)
async def test_unknown_and_malformed_tools_are_tolerated(tool: dict[str, object]) -> None:
    async with httpx2.AsyncClient(transport=DemoTransport(), base_url="http://demo.invalid") as client:
        asked = {"model": "demo", "messages": [user("Hello")], "tools": [tool]}
        assert (await client.post("/chat/completions", json=asked)).status_code == 200


async def test_the_token_count_ignores_the_data_of_pictures() -> None:
    async with httpx2.AsyncClient(transport=DemoTransport(), base_url="http://demo.invalid") as client:
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 40_000}}
        asked = {"model": "demo", "messages": [{"role": "user", "content": [picture]}]}
        completion = (await client.post("/chat/completions", json=asked)).json()
        assert completion["usage"]["prompt_tokens"] < 100


@pytest.mark.parametrize(
    ("begun", "repeated"),
    [
        ("", '<memory id="7">'),
        ("`raw_memory` and `rollout_summary`", "<session>\n"),
        ("`memory_md`", "<notes>\n"),
        ("`memory_md`<notes>\n\n</notes>", '<document path="MEMORY.md">\n'),
    ],
)
def test_tags_that_are_never_closed_take_linear_time(begun: str, repeated: str) -> None:
    def answered(size: int) -> None:
        text = begun + repeated * size
        answer([{"role": "system", "content": text}, user(text)], ())

    assert cost_ratio(answered, 1_500) < 20
