"""Matching a request to one of several recorded conversations (pure functions)"""

import time
from typing import Any
from uuid import UUID

import pytest

from gateway.runs.alignment import Candidate, RecordedTurn
from gateway.runs.comparing import ALIKE, LITERAL, SAME, comparable_message, comparable_messages, similarity
from gateway.runs.matching import Continuation, judge
from gateway.runs.requested import Rule

LONG = "Fry the onion first, then add the lentils and the stock, and let everything simmer for twenty minutes."
ANSWERS = (
    LONG,
    "Ground coriander does as well, with a pinch of paprika.",
    "Three days in the fridge, in a closed box.",
)
ASKED = ("How do I cook lentils?", "I am out of cumin", "How long do they keep?")


def recorded(number: int, *pairs: tuple[str, str], stopped: bool = False, **more: Any) -> Candidate:
    turns = [
        RecordedTurn(
            run_id=UUID(int=100 * number + place),
            number=place,
            user=comparable_message("user", asked),
            answer=comparable_message("assistant", answer),
            complete=not stopped or place < len(pairs),
        )
        for place, (asked, answer) in enumerate(pairs, start=1)
    ]
    return Candidate(session_id=UUID(int=number), turns=turns, **more)


def verdict_for(*talk: str, among: list[Candidate]) -> Continuation:
    messages = [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(talk)]
    return judge(*comparable_messages(messages), among)


PAIRS = list(zip(ASKED, ANSWERS, strict=True))


def test_the_end_of_a_conversation_is_enough() -> None:
    continuation = verdict_for(ASKED[2], ANSWERS[2], "Thanks", among=[recorded(1, *PAIRS)])
    assert (continuation.session_id, continuation.through, continuation.again) == (UUID(int=1), 3, None)


def test_an_earlier_turn_is_repeated_or_branched_from() -> None:
    one = recorded(1, *PAIRS)
    again = verdict_for(ASKED[0] + "!", ANSWERS[0], ASKED[1], among=[one])
    assert (again.rule, again.session_id, again.again, again.following) == (
        Rule.ALIKE,
        UUID(int=1),
        UUID(int=102),
        UUID(int=102),
    )
    left = verdict_for(ASKED[0] + "!", ANSWERS[0], "I am out of onions", among=[one])
    assert (left.rule, left.session_id, left.following) == (Rule.EDITED, UUID(int=1), UUID(int=102))


@pytest.mark.parametrize(
    "talk",
    [
        (ASKED[0], "Boil them.", "Thanks"),  # only the first message is the same
        ("Why not?", "Go on.", "Thanks"),
        ("Which mushrooms may I eat?", ANSWERS[1], "Thanks"),  # the same answer to another question
        (ASKED[0], "Boil them.", ASKED[1], "Leave it out.", "And beans?", "Soak them.", "Thanks"),
    ],
)
def test_too_little_in_common_matches_nothing(talk: tuple[str, ...]) -> None:
    assert verdict_for(*talk, among=[recorded(1, *PAIRS)]) == Continuation()


@pytest.mark.parametrize(
    ("stopped_at", "given", "is_known"),
    [
        ("Fry the onion first, then", "Fry the onion", True),  # the client received less
        ("Fry the onion first, then", LONG, True),  # the client received more
        ("Fry", "Fry", True),
        ("Fry", LONG, False),  # another answer may start this way
    ],
)
def test_a_stopped_answer_is_recognised_by_its_beginning(stopped_at: str, given: str, is_known: bool) -> None:
    one = recorded(1, (ASKED[0], stopped_at), stopped=True)
    assert (verdict_for(ASKED[0], given, "Thanks", among=[one]).session_id is not None) == is_known


def test_two_equally_good_matches_are_both_rejected() -> None:
    continuation = verdict_for(ASKED[2], ANSWERS[2], "Thanks", among=[recorded(1, *PAIRS), recorded(2, *PAIRS)])
    assert continuation.rule == Rule.SEVERAL
    assert continuation.session_id in {UUID(int=1), UUID(int=2)}
    named = verdict_for(ASKED[2], ANSWERS[2], "Thanks", among=[recorded(1, *PAIRS), recorded(2, *PAIRS, named=True)])
    assert named.session_id == UUID(int=1)


def test_a_turn_that_only_one_candidate_has_decides() -> None:
    other = recorded(2, ("Is rice better?", "That depends on what you cook it with, and your hunger."), PAIRS[2])
    talk = (ASKED[1], ANSWERS[1], ASKED[2], ANSWERS[2], "Thanks")
    assert verdict_for(*talk, among=[other, recorded(1, *PAIRS)]).session_id == UUID(int=1)


def test_an_exact_match_beats_a_common_beginning() -> None:
    among = [recorded(1, ("Hi", "Hello.")), recorded(2, ("Hi 3 of you", "Hello.")), recorded(3, ("Hi 3", "Hello."))]
    assert verdict_for("Hi 3 of you", "Hello.", "Thanks", among=among).session_id == UUID(int=2)


def test_a_short_exchange_matches_only_recent_sessions() -> None:
    pairs = [*PAIRS, ("ok", "Good.")]
    assert verdict_for("ok", "Good.", "More", among=[recorded(1, *pairs)]).session_id == UUID(int=1)
    assert verdict_for("ok", "Good.", "More", among=[recorded(1, *pairs, fresh=False)]) == Continuation()


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        (LONG, LONG.upper().replace(",", ""), 1.0, 1.0),
        (LONG, LONG[:50] + "…", LITERAL, LITERAL),
        (LONG, f"Note: {LONG} (edited)", LITERAL, LITERAL),
        (LONG, LONG.replace("twenty", "thirty"), SAME, 0.949),
        (LONG, LONG.replace("onion", "leek").replace("twenty", "thirty"), ALIKE, SAME),
        (LONG, ANSWERS[1], 0.0, 0.0),
        ("There are eight planets.", "There are 8 planets.", ALIKE, ALIKE),
        ("Yes.", "No.", 0.0, 0.0),
        ("", LONG, 0.0, 0.0),
    ],
)
def test_similarity(one: str, other: str, least: float, most: float) -> None:
    found = similarity(comparable_message("assistant", one), comparable_message("assistant", other))
    assert found == similarity(comparable_message("assistant", other), comparable_message("assistant", one))
    assert least <= found <= most


def test_a_large_request_is_compared_in_limited_time() -> None:
    words = " ".join(f"word{number % 97} of{number % 89}" for number in range(4_000))
    among = [recorded(n, *((f"{n} {at} {words}", f"{at} {n} {words}") for at in range(16))) for n in range(1, 25)]
    repeated = [recorded(n, *((("continue", "Go on."),) * 16)) for n in range(25, 49)]
    began = time.monotonic()
    verdict_for(*([f"altered {words}"] * 2_001), among=among)
    verdict_for(*(["continue", "Go on."] * 1_000), "continue", among=repeated)
    assert time.monotonic() - began < 10
