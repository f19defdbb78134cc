"""Which of several recorded conversations a request goes on with, and where in it. Pure functions;
gateway.runs.candidates reads the conversations, gateway.runs.alignment says what each has in common with the request.
Where two fit equally well, none does."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from uuid import UUID

from gateway.runs.alignment import Alignment, Proof, Recorded, align, has_pieces, shares
from gateway.runs.comparing import Said

_CLEARLY = 8  # characters
_CLOSE_CONVERSATIONS = 8  # of those that have no message as it stands in the request


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Where a request goes on: in a session, as a turn `again`, after a turn of another (`parent`), or nowhere."""

    session_id: UUID | None = None
    again: UUID | None = None
    parent: UUID | None = None
    following: UUID | None = None  # the turn there that comes after what the request holds
    through: int = 0  # the number of the last turn that the request holds
    common: dict[str, int] = field(default_factory=dict)
    rivals: int = 0  # conversations that fitted equally well
    by_summary: bool = False  # it begins with a summary of the session
    message_seq: int = 0  # how far that session had come when it was looked at, before the transaction


def judge(before: Sequence[Said], asked: Said, recorded: Sequence[Recorded]) -> Verdict:
    """Return where a request goes on that says `asked` after what was said `before`. Takes n log n steps at most in the
    size of what is compared, which is bounded."""
    aligned = [align(before, one) for one in recorded if shares(before, one)]
    others = [one for one in recorded if not shares(before, one) and has_pieces(before, one)]
    aligned += [align(before, one) for one in others[:_CLOSE_CONVERSATIONS]]
    found = sorted((one for one in aligned if one and one.proof), key=_rank, reverse=True)
    if not found:
        return Verdict()
    best, rivals = found[0], [one for one in found[1:] if not _is_clearly_better(found[0], one)]
    if rivals:
        unnamed = [one for one in (best, *rivals) if not one.recorded.named]
        if len(unnamed) != 1:
            return Verdict(parent=best.recorded.session_id, common=_common(best), rivals=len(rivals))
        best = unnamed[0]
    return _placed(before, asked, best)


def _rank(one: Alignment) -> tuple[int, int, int, bool, int, float]:
    return one.last.at, one.suffix, one.proof, one.whole, -one.longer, one.weight


def _is_clearly_better(one: Alignment, other: Alignment) -> bool:
    """Return True if a conversation has more in common with the request than one of lower rank: later messages, a
    longer end, the beginning, too, all that the person said there, or many more words. What is common to both decides
    nothing."""
    if _rank(one)[:5] != _rank(other)[:5]:
        return True
    return one.proof == Proof.STRONG and one.weight - other.weight >= _CLEARLY


def _placed(before: Sequence[Said], asked: Said, best: Alignment) -> Verdict:
    """Return whether the request goes on at the end of the conversation, repeats a turn, or leaves it earlier."""
    turns, last = best.recorded.turns, best.last
    later = turns[last.turn + 1 :]
    following = later[0].run_id if later else None
    is_next = all(message.of_person for message in before[last.at + 1 :])
    again = following if is_next and later and asked.key == later[0].user.key else None
    left = not again and any(turn.complete for turn in later)
    return Verdict(
        session_id=None if left else best.recorded.session_id,
        parent=best.recorded.session_id if left else None,
        again=again,
        following=following if again or left else None,
        through=turns[last.turn].number,
        common=_common(best),
    )


def _common(one: Alignment) -> dict[str, int]:
    """Return how much is common, as a run's trace says it."""
    return {
        "turns": len({found.turn for found in one.common}),
        "answers": sum(found.is_answer for found in one.common),
        "characters": round(one.weight),
        "in_a_row": 1 + sum(later.at - earlier.at == 1 for earlier, later in pairwise(one.common)),
    }
