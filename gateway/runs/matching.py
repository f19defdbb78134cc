"""Decides which recorded conversation a request continues, and from which turn. Pure functions; gateway.runs.candidates
reads the conversations, gateway.runs.alignment aligns them. If two fit equally well, neither is chosen."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from uuid import UUID

from gateway.runs.alignment import Alignment, Candidate, Proof, align, has_equal_message, may_be_similar
from gateway.runs.comparing import ComparableMessage
from gateway.runs.requested import Rule

_CLEAR_MARGIN = 8  # characters
_MAX_FUZZY_CONVERSATIONS = 8  # conversations without an equal message that are compared word by word


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """Where a request continues, and why: in the session `session_id`, there perhaps as a repetition of the turn
    `again`; in a fork of it (EDITED, SEVERAL); or, if it is None, nowhere."""

    session_id: UUID | None = None
    rule: Rule = Rule.NEW
    again: UUID | None = None
    following: UUID | None = None  # the recorded turn after the last one that the request contains
    through: int = 0  # the number of the last turn that the request contains
    common: dict[str, int] = field(default_factory=dict)
    hidden: UUID | None = None  # the run on another branch with whose answer the request's earlier messages end
    message_seq: int = 0  # Session.message_seq when the session was read, before the transaction


def judge(
    before: Sequence[ComparableMessage], newest: ComparableMessage, candidates: Sequence[Candidate]
) -> Continuation:
    """Return where a request continues whose user message `newest` follows the messages `before`. Takes O(n log n) in
    the size of the compared texts, which is bounded."""
    equal = [candidate for candidate in candidates if has_equal_message(before, candidate)]
    others = [candidate for candidate in candidates if candidate not in equal and may_be_similar(before, candidate)]
    aligned = filter(None, (align(before, candidate) for candidate in (*equal, *others[:_MAX_FUZZY_CONVERSATIONS])))
    found = sorted(filter(attrgetter("proof"), aligned), key=attrgetter("rank"), reverse=True)
    if not found:
        return Continuation()
    best, rivals = found[0], [other for other in found[1:] if not _is_clearly_better(found[0], other)]
    if rivals:
        unnamed = [alignment for alignment in (best, *rivals) if not alignment.candidate.named]
        if len(unnamed) != 1:
            return Continuation(session_id=best.candidate.session_id, rule=Rule.SEVERAL, common=_common_counts(best))
        best = unnamed[0]
    return _continuation(before, newest, best)


def _is_clearly_better(best: Alignment, other: Alignment) -> bool:
    """Return True if `best` outranks `other` by another criterion than weight, or has strong proof and clearly more."""
    if best.rank[:-1] != other.rank[:-1]:
        return True
    return best.proof == Proof.STRONG and best.weight - other.weight >= _CLEAR_MARGIN


def _continuation(before: Sequence[ComparableMessage], newest: ComparableMessage, best: Alignment) -> Continuation:
    """Return whether the request continues at the end of the conversation, repeats a turn, or branches off earlier."""
    turns, last = best.candidate.turns, best.last
    later = turns[last.turn + 1 :]
    following = later[0].run_id if later else None
    is_next = all(message.from_user for message in before[last.at + 1 :])
    is_same = bool(newest.key and later) and newest.key == later[0].user.key  # "" is a message without own words
    again = following if is_next and is_same else None
    branches_off = not again and any(turn.complete for turn in later)
    return Continuation(
        session_id=best.candidate.session_id,
        rule=Rule.EDITED if branches_off else Rule.ALIKE,
        again=again,
        following=following if again or branches_off else None,
        through=turns[last.turn].number,
        common=_common_counts(best),
    )


def _common_counts(alignment: Alignment) -> dict[str, int]:
    """Return the extent of an alignment for the run's trace."""
    matches = alignment.matches
    return {
        "turns": len({match.turn for match in matches}),
        "answers": sum(match.is_answer for match in matches),
        "characters": round(alignment.weight),
        "in_a_row": 1 + sum(later.at - earlier.at == 1 for earlier, later in pairwise(matches)),
    }
