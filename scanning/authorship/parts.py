"""Decides which of several parts of a message are pasted, if they are known to have different sources or languages."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from scanning.authorship.features import Span, places_of, sentences_of
from scanning.authorship.scoring import model

_PASTED_FROM = -2.6
"""Mean score of the sentences of a part from which it counts as pasted. Where a message changes its language, it
usually continues with a pasted text, so less is required than of a message in one language. Parts of people who write
in two languages have -2.8 and less, pasted ones -2.5 and more."""
_UNCLEAR = 1.0
"""A part whose score is this close to that of a pasted one counts as pasted, too."""


def pasted_parts(text: str, parts: Sequence[Sequence[Span]]) -> list[bool]:
    """Return for each part of a message, given as spans in order, whether it is pasted. The part that most resembles
    the sender's own words is not, unless another one resembles them nearly as much."""
    sentences = sentences_of(text)
    scores = model().scores(places_of(sentences)).tolist()
    means = []
    for spans in parts:
        ends = [end for _, end in spans]
        found = [
            score
            for score, sentence in zip(scores, sentences, strict=True)
            if (at := bisect_right(ends, sentence.start)) < len(spans) and spans[at][0] < sentence.end
        ]
        means.append(sum(found) / len(found) if found else 0.0)
    lowest = min(means)
    others = sorted(means)[1:]
    is_clear = bool(others) and others[0] - lowest >= _UNCLEAR
    return [mean >= _PASTED_FROM and not (is_clear and mean == lowest) for mean in means]
