"""Aligns a request with one recorded conversation and rates the evidence that they are the same. Pure functions on
messages that gateway.runs.comparing has normalised.

The user's words alone prove little, since many people write the same. Both sides must share an answer of ours, or a
tool call with an id of ours."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import groupby
from typing import Any
from uuid import UUID

from gateway.runs.comparing import LITERAL, SAME, ComparableMessage, one_is_prefix, shares_sample, similarity

# Characters of an answer that identify a conversation,
_LONG_ANSWER = 40  # after the recorded user message,
_MIN_ALONE = 80  # without a user message before it,
_MIN_AGAINST_OTHER_WORDS = 200  # after a different user message.
_DISTINCT_WORDS = 12  # characters; shorter user messages are too common to prove anything
_MAX_WEIGHT = 1_000
# The latest messages and turns that are compared word by word
_FUZZY_MESSAGES, _FUZZY_TURNS = 16, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurn:
    """A recorded turn: the user message, and the answer as the client received it. `may_be_repeated`: the client may be
    the one of the request."""

    run_id: UUID
    number: int
    user: ComparableMessage
    answer: ComparableMessage
    complete: bool
    may_be_repeated: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A recorded conversation with its latest turns in order. `fresh`: a short exchange is enough to identify it."""

    session_id: UUID
    turns: Sequence[RecordedTurn]
    fresh: bool = True
    named: bool = False  # its client gave it an id


class Proof(IntEnum):
    """How strongly the matches show that two conversations are the same."""

    NOTHING = 0
    WEAK = 1  # enough if no other conversation matches
    STRONG = 2


@dataclass(frozen=True, slots=True)
class Match:
    """A message of the request (index `at`) and the recorded turn that it matches (index `turn`)."""

    at: int
    turn: int
    is_answer: bool
    similarity: float
    weight: float
    by_call: bool = False
    longer: bool = False  # the user message is longer than the recorded one


@dataclass(frozen=True, eq=False)
class Alignment:
    """The matches between messages of a request (`before` the newest one) and a recorded conversation, in the order of
    both."""

    before: Sequence[ComparableMessage]
    candidate: Candidate
    matches: Sequence[Match]

    @property
    def last(self) -> Match:
        """The last match."""
        return self.matches[-1]

    @cached_property
    def rank(self) -> tuple[Any, ...]:
        """What the better of two alignments has more of, the most important first. A user message is seldom longer in
        the request than in the record: clients often remove what they added earlier, but rarely add text later."""
        longer = sum(found.longer for found in self.matches)
        return self.last.at, self.suffix, self.proof, self.whole, -longer, self.weight

    @property
    def weight(self) -> float:
        """The approximate number of common characters."""
        return sum(found.weight for found in self.matches)

    @cached_property
    def whole(self) -> bool:
        """Whether the request contains every turn of the conversation up to the last match."""
        turns = {found.turn for found in self.matches}
        return self.candidate.turns[0].number == 1 and turns == set(range(self.last.turn + 1))

    @cached_property
    def suffix(self) -> int:
        """The number of consecutive literal matches up to the last one."""
        count, at = 0, self.last.at
        for found in reversed(self.matches):
            if found.at != at or found.similarity < LITERAL:
                break
            count, at = count + 1, at - 1
        return count

    @cached_property
    def proof(self) -> Proof:
        """What the matches prove."""
        questions = {found.turn: found for found in self.matches if not found.is_answer}
        by_answers = Proof.NOTHING
        several: set[int] = set()  # turns whose answers prove something only together
        for found in self.matches:
            if found.by_call:
                return Proof.STRONG
            if found.is_answer:
                size = min(len(self._key(found)), len(self.candidate.turns[found.turn].answer.key))
                proof = self._answer_proof(found, size, questions.get(found.turn))
                by_answers = max(by_answers, proof)
                if proof or (size >= _LONG_ANSWER and found.similarity >= SAME):
                    several.add(found.turn)
        if by_answers == Proof.STRONG or len(several) > 1:
            return Proof.STRONG
        if by_answers and self.candidate.fresh and (self.whole or self._reaches_last_answer()):
            return Proof.WEAK
        return Proof.WEAK if self._has_all_words() or self._is_unanswered_end() else Proof.NOTHING

    def _key(self, found: Match) -> str:
        return self.before[found.at].key

    def _answer_proof(self, found: Match, size: int, question: Match | None) -> Proof:
        """Return what a matching answer of `size` characters proves: most after the recorded user message (`question`
        is its match), least after a different one."""
        same = found.similarity >= SAME
        if question and size >= _LONG_ANSWER:
            return Proof.STRONG if same or question.similarity >= SAME else Proof.NOTHING
        if question:
            distinct = same or len(self._key(question)) >= _DISTINCT_WORDS
            return Proof.WEAK if distinct and question.similarity >= SAME else Proof.NOTHING
        if found.at and self.before[found.at - 1].from_user:
            return Proof.STRONG if size >= _MIN_AGAINST_OTHER_WORDS and found.similarity >= LITERAL else Proof.NOTHING
        if size >= _LONG_ANSWER:
            return Proof.STRONG if size >= _MIN_ALONE else Proof.WEAK
        return Proof.NOTHING

    def _has_all_words(self) -> bool:
        """Return True if the request contains all user messages of a conversation in order, but none of its answers."""
        words = [found for found in self.matches if not found.is_answer and found.similarity >= SAME]
        user_messages = sum(message.from_user for message in self.before)
        distinct = {self._key(found) for found in words if len(self._key(found)) >= _DISTINCT_WORDS}
        is_complete = self.whole and self._reaches_last_answer() and len(words) == user_messages
        return is_complete and len(distinct) > 1

    def _is_unanswered_end(self) -> bool:
        """Return True if the last turn was not completed, and the request repeats its user message without answer."""
        found, turn = self.last, self.candidate.turns[self.last.turn]
        unanswered = not found.is_answer and all(message.from_user for message in self.before[found.at :])
        long_enough = len(self._key(found)) >= _DISTINCT_WORDS and found.similarity >= SAME
        is_last = found.turn == len(self.candidate.turns) - 1
        return unanswered and long_enough and is_last and turn.may_be_repeated and not turn.complete

    def _reaches_last_answer(self) -> bool:
        """Return True if the last match is in the last answered turn, or in the last turn if none was answered."""
        complete = [place for place, turn in enumerate(self.candidate.turns) if turn.complete]
        return self.last.turn == (complete[-1] if complete else len(self.candidate.turns) - 1)


def align(before: Sequence[ComparableMessage], candidate: Candidate) -> Alignment | None:
    """Return the alignment of messages with a recorded conversation, or None if nothing matches."""
    chain = _best_chain(_matches(before, candidate), len(candidate.turns))
    return Alignment(before, candidate, chain) if chain else None


def has_equal_message(before: Sequence[ComparableMessage], candidate: Candidate) -> bool:
    """Return True if any message equals one of the conversation, or contains a call of one of its runs."""
    keys = {message.key for turn in candidate.turns for message in (turn.user, turn.answer)} - {""}
    runs = {turn.run_id for turn in candidate.turns}
    return any(message.key in keys or not runs.isdisjoint(message.runs) for message in before)


def may_be_similar(before: Sequence[ComparableMessage], candidate: Candidate) -> bool:
    """Return True if one of the latest messages shares a sample of text with one of the conversation's latest turns."""
    if any(
        shares_sample(message, other) or shares_sample(other, message)
        for message in before[-_FUZZY_MESSAGES:]
        for turn in candidate.turns[-_FUZZY_TURNS:]
        for other in ((turn.user,) if message.from_user else (turn.answer,))
    ):
        return True
    last = candidate.turns[-1]
    answers = (message for message in before[-2:] if not message.from_user)
    return not last.complete and any(one_is_prefix(answer, last.answer) for answer in answers)


def _matches(before: Sequence[ComparableMessage], candidate: Candidate) -> Iterator[Match]:
    """Yield every possible match, in the order of the messages. A message that equals a recorded one is matched only
    with that."""
    by_key: dict[tuple[bool, str], list[int]] = defaultdict(list)
    for place, turn in enumerate(candidate.turns):
        by_key[True, turn.user.key].append(place)
        by_key[False, turn.answer.key].append(place)
    by_run = {turn.run_id: place for place, turn in enumerate(candidate.turns)}
    first = max(0, len(candidate.turns) - _FUZZY_TURNS)
    for at, message in enumerate(before):
        called = [by_run[run_id] for run_id in message.runs if run_id in by_run]
        if called:
            yield Match(at, called[-1], True, 1.0, _MAX_WEIGHT, by_call=True)
            continue
        equal = by_key.get((message.from_user, message.key), ()) if message.key else ()
        for place in equal:
            yield _match(at, place, message, 1.0, len(message.key))
        if equal or not message.key or len(before) - at > _FUZZY_MESSAGES:
            continue
        for place in range(first, len(candidate.turns)):
            turn = candidate.turns[place]
            other = turn.user if message.from_user else turn.answer
            share = similarity(message, other)
            if not message.from_user and not turn.complete and one_is_prefix(message, other):
                share = 1.0
            if share:
                longer = message.from_user and len(message.key) > len(other.key)
                yield _match(at, place, message, share, min(len(message.key), len(other.key)), longer=longer)


def _match(at: int, place: int, message: ComparableMessage, share: float, size: int, *, longer: bool = False) -> Match:
    return Match(at, place, not message.from_user, share, share * min(size, _MAX_WEIGHT), longer=longer)


def _best_chain(found: Iterable[Match], turns: int) -> Sequence[Match]:
    """Return the chain of matches with the largest total weight that is in the same order on both sides; of equal
    chains the latest. Several messages, the steps of one answer, may match the same turn."""
    best: list[tuple[float, tuple[Match, ...]]] = [(0.0, ())] * (2 * turns)
    for _, matches in groupby(found, key=lambda match: match.at):
        extended: list[tuple[int, float, tuple[Match, ...]]] = []
        for match in matches:
            place = 2 * match.turn + match.is_answer
            weight, chain = max(
                best[: place + 1 if match.is_answer else place], key=lambda pair: pair[0], default=(0.0, ())
            )
            extended.append((place, weight + match.weight, (*chain, match)))
        for place, weight, chain in extended:
            if weight >= best[place][0]:
                best[place] = (weight, chain)
    _, _, chain = max(((weight, place, chain) for place, (weight, chain) in enumerate(best)), default=(0.0, 0, ()))
    return chain
