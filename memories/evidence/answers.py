"""Find model answers that a client sends back as user messages, as aider's architect mode does with a plan that another
agent carries out. Text found in such an answer does not count as the person's own. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass

from memories.evidence.quotes import folded, original_span

MIN_ANSWER_CHARS = 24  # letters and digits; people also write shorter texts themselves
MAX_ANSWER_CHARS = 16_000  # only the first characters of a longer answer are compared
MAX_ANSWERS = 32  # the latest ones of a conversation, and of others: each is looked up in each message


@dataclass(frozen=True, slots=True)
class EarlierAnswer:
    """A model answer in folded form. `foreign`: it may repeat foreign text. `truncated`: `key` is only its
    beginning."""

    key: str
    foreign: bool
    truncated: bool


def earlier_answer(text: str, *, foreign: bool) -> EarlierAnswer | None:
    """Return the folded form used for matching, or None if the text is too short."""
    key = folded(text[:MAX_ANSWER_CHARS])
    return EarlierAnswer(key, foreign, len(text) >= MAX_ANSWER_CHARS) if len(key) >= MIN_ANSWER_CHARS else None


def find_answers(text: str, answers: Sequence[EarlierAnswer]) -> list[tuple[int, int, EarlierAnswer]]:
    """Return `(start, end, answer)` for each answer that a message contains in full, in order; of overlapping ones only
    the longest."""
    possible = [answer for answer in answers if len(answer.key) <= len(text)]
    key = folded(text) if possible else ""
    found: list[tuple[int, int, EarlierAnswer]] = []
    for answer in sorted(possible, key=lambda answer: -len(answer.key)):
        start = key.find(answer.key)
        end = start + len(answer.key)
        if start < 0 or any(begins < end and start < ends for begins, ends, _ in found):
            continue
        found.append((start, len(key) if answer.truncated else end, answer))
    return [
        (*original_span(text, start, end), answer) for start, end, answer in sorted(found, key=lambda item: item[0])
    ]
