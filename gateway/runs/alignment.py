"""Compares a request with one recorded conversation: what they have in common, and how much that proves. Pure functions
on messages that gateway.runs.comparing has reduced, called by gateway.runs.matching.

A person's words alone prove little, since many people write the same. They must share an answer of ours, or calls to
which we gave ids."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from uuid import UUID

from gateway.runs.comparing import LITERAL, SAME, Said, begins_alike, likeness, resembles

_LONG_ANSWER = 40  # characters: with the person's words before it, it is this conversation
_ALONE = 80  # without any words of the person before it
_AGAINST = 200  # with other words of the person before it
_WORDS = 12  # characters of a message of the person that not everybody says
_MOST_WEIGHT = 1_000
# Word by word only so many of the latest messages are compared, with so many of the latest turns.
_CLOSE_MESSAGES, _CLOSE_TURNS = 16, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A recorded turn: the person's words, and the answer as the client received it."""

    run_id: UUID
    number: int
    user: Said
    answer: Said
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A recorded conversation with its latest turns in order. `fresh`: it is recent enough to be recognised by a short
    pair."""

    session_id: UUID
    turns: Sequence[Turn]
    fresh: bool = True
    named: bool = False  # its client gave it an id


class Proof(IntEnum):
    """How much the common part of two conversations proves."""

    NOTHING = 0
    WEAK = 1  # enough if no other conversation has it
    STRONG = 2


@dataclass(frozen=True, slots=True)
class Common:
    """A message of the request with the recorded turn that it belongs to."""

    at: int
    turn: int  # index
    is_answer: bool
    likeness: float
    weight: float
    by_call: bool = False
    longer: bool = False  # words of the person, and more of them than were recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """What a request and a recorded conversation have in common, in the order of both."""

    recorded: Recorded
    common: tuple[Common, ...]
    proof: Proof
    whole: bool  # every turn of the conversation up to the last common one is in the request
    suffix: int  # how many messages up to the last common one stand there literally, one after the other

    @property
    def last(self) -> Common:
        """Return the last message in common."""
        return self.common[-1]

    @property
    def longer(self) -> int:
        """Return how many of the person's messages are longer in the request than in the record. Clients often remove
        what they have added, but rarely add something later."""
        return sum(found.longer for found in self.common)

    @property
    def weight(self) -> float:
        """Return the approximate number of common characters."""
        return sum(found.weight for found in self.common)


def align(before: Sequence[Said], recorded: Recorded) -> Alignment | None:
    """Return what messages have in common with a recorded conversation; None if there is nothing."""
    chain = _heaviest(list(_common_messages(before, recorded)), len(recorded.turns))
    if not chain:
        return None
    turns = {found.turn for found in chain}
    whole = recorded.turns[0].number == 1 and turns == set(range(chain[-1].turn + 1))
    proof = _proof(before, recorded, chain, whole=whole)
    return Alignment(recorded=recorded, common=tuple(chain), proof=proof, whole=whole, suffix=_suffix(chain))


def shares(before: Sequence[Said], recorded: Recorded) -> bool:
    """Return True if any message is equal to one of the conversation, or names one of its runs."""
    keys = {message.key for turn in recorded.turns for message in (turn.user, turn.answer)} - {""}
    runs = {turn.run_id for turn in recorded.turns}
    return any(message.key in keys or not runs.isdisjoint(message.runs) for message in before)


def has_pieces(before: Sequence[Said], recorded: Recorded) -> bool:
    """Return True if a piece of one of the latest messages is in the conversation, or the other way round."""
    if any(
        resembles(message, other) or resembles(other, message)
        for message in before[-_CLOSE_MESSAGES:]
        for turn in recorded.turns[-_CLOSE_TURNS:]
        for other in ((turn.user,) if message.of_person else (turn.answer,))
    ):
        return True
    last = recorded.turns[-1]
    return not last.complete and any(begins_alike(one, last.answer) for one in before[-2:] if not one.of_person)


def _common_messages(before: Sequence[Said], recorded: Recorded) -> Iterator[Common]:
    """Yield every message with each turn that it may belong to. A message that is equal to a recorded one is paired
    only with that."""
    by_key: dict[tuple[bool, str], list[int]] = defaultdict(list)
    for place, turn in enumerate(recorded.turns):
        by_key[True, turn.user.key].append(place)
        by_key[False, turn.answer.key].append(place)
    by_run = {turn.run_id: place for place, turn in enumerate(recorded.turns)}
    first = max(0, len(recorded.turns) - _CLOSE_TURNS)
    for at, message in enumerate(before):
        called = [by_run[run_id] for run_id in message.runs if run_id in by_run]
        if called:
            yield Common(at, called[-1], True, 1.0, _MOST_WEIGHT, by_call=True)
            continue
        equal = by_key.get((message.of_person, message.key), ()) if message.key else ()
        for place in equal:
            yield _in_common(at, place, message, 1.0, len(message.key))
        if equal or not message.key or len(before) - at > _CLOSE_MESSAGES:
            continue
        for place in range(first, len(recorded.turns)):
            turn = recorded.turns[place]
            other = turn.user if message.of_person else turn.answer
            share = likeness(message, other)
            if not message.of_person and not turn.complete and begins_alike(message, other):
                share = 1.0
            if share:
                longer = message.of_person and len(message.key) > len(other.key)
                yield _in_common(at, place, message, share, min(len(message.key), len(other.key)), longer=longer)


def _in_common(at: int, place: int, message: Said, share: float, size: int, *, longer: bool = False) -> Common:
    return Common(at, place, not message.of_person, share, share * min(size, _MOST_WEIGHT), longer=longer)


def _heaviest(found: Sequence[Common], turns: int) -> list[Common]:
    """Return the pairs with the largest total weight that are in the same order on both sides; of equal ones the
    latest. The messages of the steps of one answer may all belong to one turn."""
    best: list[tuple[float, tuple[Common, ...]]] = [(0.0, ())] * (2 * turns)
    by_message: dict[int, list[Common]] = defaultdict(list)
    for one in found:
        by_message[one.at].append(one)
    for at in sorted(by_message):
        grown: list[tuple[int, float, tuple[Common, ...]]] = []
        for one in by_message[at]:
            place = 2 * one.turn + one.is_answer
            weight, chain = max(
                best[: place + 1 if one.is_answer else place], key=lambda pair: pair[0], default=(0.0, ())
            )
            grown.append((place, weight + one.weight, (*chain, one)))
        for place, weight, chain in grown:
            if weight >= best[place][0]:
                best[place] = (weight, chain)
    _, _, chain = max(((weight, place, chain) for place, (weight, chain) in enumerate(best)), default=(0.0, 0, ()))
    return list(chain)


def _proof(before: Sequence[Said], recorded: Recorded, chain: Sequence[Common], *, whole: bool) -> Proof:
    asked = {found.turn: found for found in chain if not found.is_answer}
    by_answers = Proof.NOTHING
    several: set[int] = set()  # turns whose answers say something only together
    for found in chain:
        if found.by_call:
            return Proof.STRONG
        if found.is_answer:
            size = min(len(before[found.at].key), len(recorded.turns[found.turn].answer.key))
            proof = _answer_proof(before, found, size, asked.get(found.turn))
            by_answers = max(by_answers, proof)
            if proof or (size >= _LONG_ANSWER and found.likeness >= SAME):
                several.add(found.turn)
    if by_answers == Proof.STRONG or len(several) > 1:
        return Proof.STRONG
    if by_answers and recorded.fresh and (whole or chain[-1].turn == _leaf(recorded)):
        return Proof.WEAK
    if _only_words(before, recorded, chain, whole=whole) or _never_answered(before, recorded, chain):
        return Proof.WEAK
    return Proof.NOTHING


def _answer_proof(before: Sequence[Said], found: Common, size: int, asked: Common | None) -> Proof:
    """Return how much an answer proves by its size: most after the recorded words `asked`, least after other words."""
    same = found.likeness >= SAME
    if asked and size >= _LONG_ANSWER:
        return Proof.STRONG if same or asked.likeness >= SAME else Proof.NOTHING
    if asked:
        distinct = same or len(before[asked.at].key) >= _WORDS
        return Proof.WEAK if distinct and asked.likeness >= SAME else Proof.NOTHING
    if found.at and before[found.at - 1].of_person:
        return Proof.STRONG if size >= _AGAINST and found.likeness >= LITERAL else Proof.NOTHING
    if size >= _LONG_ANSWER:
        return Proof.STRONG if size >= _ALONE else Proof.WEAK
    return Proof.NOTHING


def _only_words(before: Sequence[Said], recorded: Recorded, chain: Sequence[Common], *, whole: bool) -> bool:
    """Return True if all of the person's words in a conversation are in the request, in order, but no answer is."""
    words = [found for found in chain if not found.is_answer and found.likeness >= SAME]
    said_here = sum(message.of_person for message in before)
    distinct = {before[found.at].key for found in words if len(before[found.at].key) >= _WORDS}
    all_of_it = whole and chain[-1].turn == _leaf(recorded) and len(words) == said_here
    return all_of_it and len(distinct) > 1


def _never_answered(before: Sequence[Said], recorded: Recorded, chain: Sequence[Common]) -> bool:
    """Return True if the last turn of a conversation has not ended, and the request has its words without an answer."""
    found = chain[-1]
    turn = recorded.turns[found.turn]
    unanswered = not found.is_answer and all(message.of_person for message in before[found.at :])
    long_enough = len(before[found.at].key) >= _WORDS and found.likeness >= SAME
    return unanswered and long_enough and not turn.complete and found.turn == len(recorded.turns) - 1


def _leaf(recorded: Recorded) -> int:
    """Return the last answered turn, or the last one if none was answered."""
    complete = [place for place, turn in enumerate(recorded.turns) if turn.complete]
    return complete[-1] if complete else len(recorded.turns) - 1


def _suffix(chain: Sequence[Common]) -> int:
    count, at = 0, chain[-1].at
    for found in reversed(chain):
        if found.at != at or found.likeness < LITERAL:
            break
        count, at = count + 1, at - 1
    return count
