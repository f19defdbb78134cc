"""Decides which sentences of a message are pasted, by the most likely path through the sentences' scores (Viterbi)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from scanning.authorship.features import MAX_SENTENCES, Sentence, Span, places_of, sentences_of
from scanning.model.features import Floats
from scanning.model.scoring import arrays_of

WEIGHTS: Final = Path(__file__).with_name("weights.npz")
_CHANGE_COSTS: Final = (4.0, 1.0, 0.5)
"""Cost of a change between own and pasted text: within a line, after a colon or line break, after a blank line."""


@dataclass(frozen=True, slots=True)
class Model:
    """The weight of each feature in units of `scale`, the score of a sentence without features (`bias`), and the
    clarity (`threshold`) above which a message counts as having pasted sentences."""

    table: NDArray[np.int8]
    scale: float
    bias: float
    threshold: float

    def scores(self, places: Sequence[set[int]]) -> Floats:
        """Return the score of each sentence on its own: log odds of being pasted."""
        sums = [int(self.table[list(found)].sum(dtype=np.int64)) for found in places]
        return self.bias + self.scale * np.array(sums, dtype=np.float64)


def pasted_spans(text: str) -> list[Span]:
    """Return the parts of a message that its sender did not write, in order and without overlap.

    Text after MAX_SENTENCES sentences counts as pasted, since nobody types that much."""
    sentences = sentences_of(text)
    if not sentences:
        return []
    packaged = model()
    pasted, clarity = best_path(packaged.scores(places_of(sentences)), sentences)
    if clarity <= packaged.threshold:
        pasted = [False] * len(sentences)
    spans = [(sentence.start, sentence.end) for sentence, is_pasted in zip(sentences, pasted, strict=True) if is_pasted]
    if len(sentences) == MAX_SENTENCES:
        spans.append((sentences[-1].end, len(text)))
    return joined(text, spans)


def joined(text: str, spans: Sequence[Span]) -> list[Span]:
    """Merge spans that are separated only by white space and quotation marks."""
    found: list[Span] = []
    for start, end in spans:
        if found and not text[found[-1][1] : start].strip('"”’)] \t\n'):
            found[-1] = found[-1][0], end
        elif start < end:
            found.append((start, end))
    return found


def best_path(scores: Floats, sentences: Sequence[Sentence]) -> tuple[list[bool], float]:
    """Return whether each sentence is pasted, and the clarity: the path's score (0 if nothing is pasted) divided by the
    root of the number of pasted sentences, since sentences of one text are not independent evidence."""
    own, pasted = 0.0, float(scores[0])
    came_from: list[tuple[bool, bool]] = []
    for score, (before, sentence) in zip(scores[1:], pairwise(sentences), strict=True):
        cost = _CHANGE_COSTS[min(2, sentence.line_gap or before.ends_with_colon)]
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
    """Return the packaged model, loaded on first use."""
    return model_of(arrays_of(WEIGHTS))


def model_of(arrays: dict[str, NDArray[Any]]) -> Model:
    """Return the model with these arrays: `table`, and `numbers` (scale, bias, threshold)."""
    scale, bias, threshold = map(float, arrays["numbers"])
    return Model(arrays["table"], scale, bias, threshold)
