"""Reduces the messages of a resent conversation so that they can be compared, and measures how similar two of them are.
Clients decorate their messages, shorten answers and leave messages out, so only words are compared, without case, white
space, punctuation and wrappers. Pure functions; of a long text only the beginning and the end are read."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from uuid import UUID

from gateway.runs.call_ids import runs_called
from gateway.runs.fingerprint import Message, last_asked, text_of
from gateway.runs.wrappers import own_words

HALF = 4_000  # characters at the beginning and at the end of a text
# The messages of a request that are compared: the newest. What came before them says little about where it goes on.
MOST_MESSAGES = 48
ALIKE = 0.84  # from here on two texts are versions of one
SAME = 0.9  # hardly anything is changed
LITERAL = 0.95  # one is in the other as it stands, decorated or cut
_NOT_LITERAL = 0.4  # keeps what is not literal below that
_LONG_ENOUGH = 24  # characters that stand inside another text by accident only in boilerplate
_FEW_WORDS = 16  # letters with which many answers begin
_MUCH_LONGER = 3  # times as long
_RUN = 3  # words in a row
_HALF_WORDS = 250  # at the beginning and at the end of a text
_FEW_RUNS = 4
_CONDENSED = 16
_SHORT, _SHORT_ALIKE = 60, 0.7
_PIECE = 20
_LETTERS = re.compile(r"[^\W_]+")
_ATTRIBUTES = re.compile(r"<([A-Za-z][\w-]{0,30})\s[^<>]{0,300}>")
_WORDS = re.compile(r"[0-9a-z]+|[^\W_]")  # a word of Latin letters, or a letter of another script


@dataclass(frozen=True)
class Said:
    """One message of the person or the model. `runs` are our runs whose tool calls it holds."""

    of_person: bool
    text: str = field(repr=False)
    runs: tuple[UUID, ...] = ()

    @cached_property
    def key(self) -> str:
        """Letters and digits only; in a text without any, all characters except white space."""
        folded = unicodedata.normalize("NFKC", self.text).casefold()
        return "".join(_LETTERS.findall(folded)) or "".join(folded.split())

    @cached_property
    def word_runs(self) -> frozenset[tuple[str, ...]]:
        """Every three words that stand in a row."""
        words = _WORDS.findall(unicodedata.normalize("NFKC", self.text).casefold())
        words = words if len(words) <= 2 * _HALF_WORDS else words[:_HALF_WORDS] + words[-_HALF_WORDS:]
        return frozenset(zip(*(words[start:] for start in range(_RUN)), strict=False))


def said(role: str, text: str, runs: tuple[UUID, ...] = ()) -> Said:
    """Return a message in the form that is compared."""
    text = cut(text)
    if role == "assistant":  # some servers leave the tag out that thinking begins with
        before, tag, after = text.rpartition("</think>")
        text = after if tag and "<think>" not in before else text
        return Said(False, _ATTRIBUTES.sub(r"<\1>", own_words(text)), runs)  # clients write tags anew, without them
    return Said(role == "user", own_words(text), runs)


def cut(text: str) -> str:
    """Return the beginning and the end of a long text."""
    return text if len(text) <= 2 * HALF else f"{text[:HALF]}\n{text[-HALF:]}"


def conversation_said(messages: Sequence[Message]) -> tuple[list[Said], Said]:
    """Return the messages before the last message of the person, and that message. Messages that only a client wrote,
    results of tools, and all before the last MOST_MESSAGES are left out."""
    last = last_asked(messages)
    before: list[Said] = []
    for message in reversed(messages[:last]):
        if len(before) == MOST_MESSAGES:
            break
        role = message.get("role")
        if role in {"user", "assistant"}:
            one = said(role, text_of(message.get("content")), runs_called(message))
            if one.key or one.runs:
                before.append(one)
    return before[::-1], said("user", text_of(messages[last].get("content")))


def likeness(one: Said, other: Said) -> float:
    """Return how much of the shorter message is in the longer one, from 0 to 1; small changes reduce it only a
    little."""
    short, long = sorted((one, other), key=lambda message: len(message.key))
    if not short.key:
        return 0.0
    if short.key == long.key:
        return 1.0
    if (long.key.startswith(short.key) or long.key.endswith(short.key)) and not _is_accident(short, long):
        return LITERAL
    if len(short.key) >= _LONG_ENOUGH and short.key in long.key:
        return LITERAL
    common = _common_beginning(short.key, long.key), _common_beginning(short.key[::-1], long.key[::-1])
    if one.of_person and max(common) >= _CONDENSED:  # of condensed messages the words at one end are left
        return ALIKE
    fewer = min(one.word_runs, other.word_runs, key=len)
    if len(fewer) < _FEW_RUNS:
        return ALIKE if _common_letters(short.key, long.key) >= _SHORT_ALIKE else 0.0
    # A run is left where each of its words is: this is about how many of the words are.
    left: float = (len(one.word_runs & other.word_runs) / len(fewer)) ** (1 / _RUN)
    if left < ALIKE:
        return 0.0
    return left if left < SAME else SAME + (left - SAME) * _NOT_LITERAL


def resembles(one: Said, other: Said) -> bool:
    """Return True if any of a few pieces of one message is in the other: a quick check before `likeness`."""
    last = len(one.key) - _PIECE
    places = {0, last // 3, 2 * last // 3, last} if last >= 0 else set()
    return any(one.key[place : place + _PIECE] in other.key for place in places)


def is_held(answer: Said, given: Said) -> bool:
    """Return True if a recorded answer, unless it is short, stands in what a request holds as an answer."""
    return len(answer.key) >= _LONG_ENOUGH and answer.key in given.key


def _common_letters(short: str, long: str) -> float:
    """Return how much two short texts have in common, from 0 to 1, by pairs of adjacent letters."""
    if len(long) > _SHORT:
        return 0.0
    ours, theirs = set(pairwise(short)), set(pairwise(long))
    return 2 * len(ours & theirs) / (len(ours) + len(theirs)) if ours and theirs else 0.0


def _common_beginning(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (here, there) in pairs if here != there), min(len(one), len(other)))


def begins_alike(given: Said, recorded: Said) -> bool:
    """Return True if one of them is the beginning of the other: what a request holds as an answer, and one that was
    stopped."""
    if not (given.key and recorded.key):
        return False
    more = given.key.startswith(recorded.key) and not _is_accident(recorded, given)
    return recorded.key.startswith(given.key) or more


def _is_accident(short: Said, long: Said) -> bool:
    """Return True if many answers begin or end with these few words."""
    return not short.of_person and len(short.key) < _FEW_WORDS and len(long.key) > _MUCH_LONGER * len(short.key)
