"""Decides which sentences of a message are pasted: the path of least surprise through the sentences' scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from scanning.authorship.features import MOST_SENTENCES, Sentence, Span, places_of, sentences_of

WEIGHTS: Final = Path(__file__).with_name("weights.npz")
_CHANGES: Final = (4.0, 1.0, 0.5)
"""What it costs that own words end and pasted ones begin, or the other way round: within a line, behind a colon or at
the next line, behind a blank line."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Model:
    """The weight of each feature, in units of `scale`, the score of a sentence without any, and `least`: how clear it
    must be for a message that it has pasted sentences."""

    table: NDArray[np.int8]
    scale: float
    bias: float
    least: float

    def scores(self, places: Sequence[set[int]]) -> Floats:
        """Return the score of each sentence: log odds of being pasted, as far as it goes alone."""
        sums = [int(self.table[list(found)].sum(dtype=np.int64)) for found in places]
        return self.bias + self.scale * np.array(sums, dtype=np.float64)


def pasted_spans(text: str) -> list[Span]:
    """Return the parts of a message that its sender did not write, in order and without overlap.

    Of a message of more than MOST_SENTENCES sentences the rest counts as pasted: nobody types that much."""
    sentences = sentences_of(text)
    if not sentences:
        return []
    used = model()
    pasted, clear = best_path(used.scores(places_of(sentences)), sentences)
    if clear <= used.least:
        pasted = [False] * len(sentences)
    spans = [(one.start, one.end) for one, is_pasted in zip(sentences, pasted, strict=True) if is_pasted]
    if len(sentences) == MOST_SENTENCES:
        spans.append((sentences[-1].end, len(text)))
    return joined(text, spans)


def joined(text: str, spans: Sequence[Span]) -> list[Span]:
    """Return the spans in order; those with nothing but white space and quotation marks between them are one."""
    found: list[Span] = []
    for start, end in spans:
        if found and not text[found[-1][1] : start].strip('"”’)] \t\n'):
            found[-1] = found[-1][0], end
        elif start < end:
            found.append((start, end))
    return found


def best_path(scores: Floats, sentences: Sequence[Sentence]) -> tuple[list[bool], float]:
    """Return for each sentence whether it is pasted (Viterbi), and how clear that is: how much likelier than that none
    is, over the root of how many are, since sentences of one text say the same of it."""
    own, pasted = 0.0, float(scores[0])
    came_from: list[tuple[bool, bool]] = []
    for score, (before, sentence) in zip(scores[1:], pairwise(sentences), strict=True):
        cost = _CHANGES[min(2, sentence.below or before.announces)]
        to_own, to_pasted = pasted - cost > own, own - cost > pasted
        own, pasted = (pasted - cost if to_own else own), float(score) + (own - cost if to_pasted else pasted)
        came_from.append((to_own, to_pasted))
    is_pasted = pasted > own
    path = [is_pasted]
    for to_own, to_pasted in reversed(came_from):
        is_pasted ^= to_pasted if is_pasted else to_own
        path.append(is_pasted)
    return path[::-1], max(own, pasted) / max(1, sum(path)) ** 0.5


@cache
def model() -> Model:
    """Return the packaged model, read on first use."""
    with np.load(WEIGHTS) as stored:
        return model_of({name: stored[name] for name in stored.files})


def model_of(arrays: dict[str, NDArray[Any]]) -> Model:
    """Return the model with these arrays: `table`, and `numbers` (scale, bias, least)."""
    scale, bias, least = map(float, arrays["numbers"])
    return Model(arrays["table"], scale, bias, least)
