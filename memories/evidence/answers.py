"""Answers of models that come back as messages of the person: a client hands what one agent planned to another that
carries it out, as aider's architect does. What stands in such an answer is nobody's own words. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass

from memories.evidence.quotes import folded, unfolded

SHORTEST = 24  # letters and digits; what is shorter is said by people, too
LONGEST = 16_000  # characters that are read of an answer
MOST = 32  # the latest answers of a conversation, and of others: each is looked for in each message


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer that was given before, folded. `foreign`: it may repeat text from elsewhere. `goes_on`: it was cut."""

    key: str
    foreign: bool
    goes_on: bool


def answered(text: str, *, foreign: bool) -> Answered | None:
    """Return an answer in the form that is looked for; None if it is too short."""
    key = folded(text[:LONGEST])
    return Answered(key, foreign, len(text) >= LONGEST) if len(key) >= SHORTEST else None


def answers_in(text: str, answers: Sequence[Answered]) -> list[tuple[int, int, Answered]]:
    """Return where answers stand in a message as a whole, each with the answer; of answers within one another the
    longest."""
    possible = [one for one in answers if len(one.key) <= len(text)]
    key = folded(text) if possible else ""
    found: list[tuple[int, int, Answered]] = []
    for one in sorted(possible, key=lambda one: -len(one.key)):
        start = key.find(one.key)
        end = start + len(one.key)
        if start < 0 or any(begins < end and start < ends for begins, ends, _ in found):
            continue
        found.append((start, len(key) if one.goes_on else end, one))
    return [(*unfolded(text, start, end), one) for start, end, one in sorted(found, key=lambda place: place[0])]
