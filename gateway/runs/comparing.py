"""Normalises messages of a resent conversation and measures how similar two of them are. Clients decorate messages,
shorten answers and omit messages, so only words are compared, without case, white space, punctuation and wrappers. Pure
functions; of a long text they read only the beginning and the end."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from uuid import UUID

from gateway.messages import ChatMessage, last_user_index, text_of
from gateway.runs.call_ids import runs_called
from gateway.runs.wrappers import own_words
from memories.history.matching import common_prefix
from search.normal_form import normalized

END_CHARS = 4_000  # characters compared at the beginning and at the end of a text
# The newest messages of a request are compared. Earlier ones say little about where the conversation continues.
MAX_MESSAGES = 48
# Thresholds of similarity
ALIKE = 0.84  # versions of one text
SAME = 0.9  # hardly any change
LITERAL = 0.95  # one text contains the other, decorated or cut
_NOT_LITERAL = 0.4  # scales similarities above SAME so that they stay below LITERAL
_MIN_CONTAINED = 24  # characters; shorter texts occur inside others by coincidence
_COMMON_PHRASE = 16  # characters of phrases with which many answers begin
_MUCH_LONGER = 3  # times
_WORDS_PER_TRIGRAM = 3
_END_WORDS = 250  # words compared at the beginning and at the end of a text
_MIN_TRIGRAMS = 4
_MIN_COMMON_END = 16  # characters
_SHORT_CHARS, _SHORT_SIMILARITY = 60, 0.7
_SAMPLE = 20  # characters
_LETTERS = re.compile(r"[^\W_]+")
_ATTRIBUTES = re.compile(r"<([A-Za-z][\w-]{0,30})\s[^<>]{0,300}>")
_WORDS = re.compile(r"[0-9a-z]+|[^\W_]")  # a word of Latin letters, or a letter of another script


@dataclass(frozen=True)
class ComparableMessage:
    """A normalised message of the user or the model. `runs` are our runs whose tool calls it contains."""

    from_user: bool
    text: str = field(repr=False)
    runs: tuple[UUID, ...] = ()

    @cached_property
    def key(self) -> str:
        """The letters and digits of the text; if there are none, all characters except white space."""
        folded = normalized(self.text).casefold()
        return "".join(_LETTERS.findall(folded)) or "".join(folded.split())

    @cached_property
    def trigrams(self) -> frozenset[tuple[str, ...]]:
        """All sequences of three words."""
        words = _WORDS.findall(normalized(self.text).casefold())
        words = words if len(words) <= 2 * _END_WORDS else words[:_END_WORDS] + words[-_END_WORDS:]
        return frozenset(zip(*(words[start:] for start in range(_WORDS_PER_TRIGRAM)), strict=False))


def comparable_message(role: str, text: str, runs: tuple[UUID, ...] = ()) -> ComparableMessage:
    """Return a message normalised for comparison."""
    text = cut(text)
    if role == "assistant":
        before, tag, after = text.rpartition("</think>")
        text = after if tag and "<think>" not in before else text  # some servers omit the opening tag
        words = _ATTRIBUTES.sub(r"<\1>", own_words(text))  # clients drop attributes of tags
        return ComparableMessage(False, words, runs)
    return ComparableMessage(role == "user", own_words(text), runs)


def cut(text: str) -> str:
    """Return the beginning and the end of a long text."""
    return text if len(text) <= 2 * END_CHARS else f"{text[:END_CHARS]}\n{text[-END_CHARS:]}"


def comparable_messages(messages: Sequence[ChatMessage]) -> tuple[list[ComparableMessage], ComparableMessage]:
    """Return the last MAX_MESSAGES messages before the last user message, and that message. Tool results and messages
    that contain only text of the client itself are left out."""
    last = last_user_index(messages)
    before: list[ComparableMessage] = []
    for message in reversed(messages[:last]):
        if len(before) == MAX_MESSAGES:
            break
        role = message.get("role")
        if role in {"user", "assistant"}:
            normalised = comparable_message(role, text_of(message.get("content")), runs_called(message))
            if normalised.key or normalised.runs:
                before.append(normalised)
    return before[::-1], comparable_message("user", text_of(messages[last].get("content")))


def similarity(one: ComparableMessage, other: ComparableMessage) -> float:
    """Return the share of the shorter message that the longer one contains, from 0 to 1, despite small changes."""
    short, long = sorted((one, other), key=lambda message: len(message.key))
    if not short.key:
        return 0.0
    if short.key == long.key:
        return 1.0
    if (long.key.startswith(short.key) or long.key.endswith(short.key)) and not _may_be_coincidence(short, long):
        return LITERAL
    if len(short.key) >= _MIN_CONTAINED and short.key in long.key:
        return LITERAL
    common = common_prefix(short.key, long.key), common_prefix(short.key[::-1], long.key[::-1])
    if one.from_user and max(common) >= _MIN_COMMON_END:  # a condensed message keeps the words at one end
        return ALIKE
    fewer = min(one.trigrams, other.trigrams, key=len)
    if len(fewer) < _MIN_TRIGRAMS:
        return ALIKE if _bigram_similarity(short.key, long.key) >= _SHORT_SIMILARITY else 0.0
    # A trigram is shared if all three of its words are, so the cube root estimates the share of common words.
    share: float = (len(one.trigrams & other.trigrams) / len(fewer)) ** (1 / _WORDS_PER_TRIGRAM)
    if share < ALIKE:
        return 0.0
    return share if share < SAME else SAME + (share - SAME) * _NOT_LITERAL


def shares_sample(one: ComparableMessage, other: ComparableMessage) -> bool:
    """Return True if `other` contains one of a few samples of `one`. A cheap check before `similarity`."""
    last = len(one.key) - _SAMPLE
    places = {0, last // 3, 2 * last // 3, last} if last >= 0 else set()
    return any(one.key[place : place + _SAMPLE] in other.key for place in places)


def contains_answer(answer: ComparableMessage, given: ComparableMessage) -> bool:
    """Return True if the answer in a request contains a recorded answer that is long enough to be distinctive."""
    return len(answer.key) >= _MIN_CONTAINED and answer.key in given.key


def _bigram_similarity(short: str, long: str) -> float:
    """Return the Dice similarity of the letter bigrams of two short texts, from 0 to 1; 0 if one is not short."""
    if len(long) > _SHORT_CHARS:
        return 0.0
    pairs, other_pairs = set(pairwise(short)), set(pairwise(long))
    return 2 * len(pairs & other_pairs) / (len(pairs) + len(other_pairs)) if pairs and other_pairs else 0.0


def one_is_prefix(given: ComparableMessage, recorded: ComparableMessage) -> bool:
    """Return True if the answer in a request is a prefix of a stopped answer, or the other way round."""
    if not (given.key and recorded.key):
        return False
    is_longer = given.key.startswith(recorded.key) and not _may_be_coincidence(recorded, given)
    return recorded.key.startswith(given.key) or is_longer


def _may_be_coincidence(short: ComparableMessage, long: ComparableMessage) -> bool:
    """Return True if `short` is a phrase with which many answers begin or end."""
    return not short.from_user and len(short.key) < _COMMON_PHRASE and len(long.key) > _MUCH_LONGER * len(short.key)
