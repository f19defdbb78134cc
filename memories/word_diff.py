"""What changed between two versions of a text, word by word, for people to read."""

import re
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

_PIECES = re.compile(r"\s+|\w+(?:[:.,/'’-]\w+)*|[^\w\s]")
_LONGEST = 4000


class Piece(NamedTuple):
    """A stretch of text that stayed, went or came."""

    kind: Literal["same", "del", "ins"]
    text: str


def word_diff(before: str, after: str) -> tuple[Piece, ...]:
    """Both texts as one row of pieces; joined without "ins" they give `before`, without "del" they give `after`."""
    if before == after:
        return (Piece("same", after),) if after else ()
    old, new = _PIECES.findall(before), _PIECES.findall(after)
    if max(len(old), len(new)) > _LONGEST:
        return Piece("del", before), Piece("ins", after)
    out: list[Piece] = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            out.append(Piece("same", "".join(old[a:b])))
            continue
        out += [Piece("del", text) for text in ["".join(old[a:b])] if text]
        out += [Piece("ins", text) for text in ["".join(new[c:d])] if text]
    return tuple(out)
