"""Computes scores: tables of weights, loaded once, and their sums over windows and sentences of a text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from scanning.model.features import (
    SHRINK,
    SIZES,
    Floats,
    Numbers,
    Occurrences,
    distinct,
    occurrences,
    sentence_begins,
    sentence_of,
)
from scanning.sentences import Sentence

WEIGHTS: Final = Path(__file__).with_name("weights.npz")
_OFFSETS: Final = np.cumsum((0, *SIZES[:-1]))
MAX_WHOLE: Final = 1200
"""Texts up to this length are scored as a whole; no training row is longer."""
STEP: Final = 400
"""Longer texts are scored in windows of two steps that overlap by one, and the highest score counts, since an order may
be a single sentence on a long page."""


@dataclass(frozen=True, slots=True)
class Score:
    """How much the text between `start` and `end` resembles an order, in log odds; 0 is even odds in training."""

    value: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of all blocks, one after the other, the scale of each block, and the score of an empty text."""

    table: NDArray[np.int8]
    scales: Floats
    bias: float

    def scores(self, block: Occurrences, part_of: Numbers, parts: int, *, overlap: bool = False) -> Floats:
        """Return the score of each part of a text, or with `overlap` of each two neighbouring parts. `part_of` has the
        part of each occurrence in the joined blocks."""
        places, where = distinct(block, part_of)
        slots = where * len(SIZES) + np.searchsorted(_OFFSETS[1:], places, side="right")
        size = parts * len(SIZES)
        sums = np.bincount(slots, weights=self.table[places], minlength=size).reshape(parts, -1)
        counts = np.bincount(slots, minlength=size).reshape(parts, -1)
        if overlap:
            sums, counts = sums[1:] + sums[:-1], counts[1:] + counts[:-1]
        words, letters, classes = (self.scales * sums / np.sqrt(counts + SHRINK)).T
        return np.asarray(self.bias + words + letters + classes)


@dataclass(frozen=True, slots=True)
class Model:
    """The weights of whole texts and of single sentences, and the two thresholds."""

    text: Weights
    sentence: Weights
    hold_from: float
    block_from: float
    version: str

    def score(self, text: str, sentences: Sequence[Sentence]) -> Score:
        """Return the score of a folded text: the highest of its windows. The score of a window is that of its words,
        plus that of its highest sentence."""
        step = STEP if len(text) > MAX_WHOLE else MAX_WHOLE
        steps = -(-len(text) // step) or 1
        block = _joined(occurrences(text, sentences))
        values = self.text.scores(block, block.at // step, steps, overlap=steps > 1)
        begins = sentence_begins(sentences)
        sentence_scores = self.sentence.scores(block, sentence_of(block.at, begins), len(begins))
        values += _highest_by_window(sentence_scores, begins // step, steps)
        best = int(values.argmax())
        return Score(float(values[best]), best * step, min((best + 2) * step, len(text)))


def _joined(blocks: Sequence[Occurrences]) -> Occurrences:
    """Return the blocks as one, whose indexes are those of `Weights.table`. Many calls of numpy on small arrays would
    take longer."""
    places = np.concatenate([block.places + offset for block, offset in zip(blocks, _OFFSETS, strict=True)])
    return Occurrences(places, np.concatenate([block.at for block in blocks]))


def _highest_by_window(scores: Floats, step_of: Numbers, steps: int) -> Floats:
    """Return the highest score of the sentences that begin in each window. Where none does, a sentence of an earlier
    window continues, which is scored there: return the lowest score."""
    highest = np.full(steps, scores.min())
    np.maximum.at(highest, step_of, scores)
    return np.asarray(np.maximum(highest[1:], highest[:-1]) if steps > 1 else highest)


@cache
def model() -> Model:
    """Return the packaged model, loaded on first use (20 ms)."""
    return model_of(arrays_of(WEIGHTS))


def model_of(arrays: dict[str, NDArray[Any]]) -> Model:
    """Return the model with these arrays, as the training packs them."""
    hold_from, block_from = map(float, arrays["levels"])
    return Model(_weights(arrays, "text"), _weights(arrays, "sentence"), hold_from, block_from, version_of(arrays))


def _weights(arrays: dict[str, NDArray[Any]], name: str) -> Weights:
    bias, *scales = map(float, arrays[f"{name}_scales"])
    table = np.concatenate([arrays[f"{name}{block}"] for block in range(len(SIZES))])
    return Weights(table, np.array(scales), bias)


def arrays_of(weights: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a model, by name."""
    with np.load(weights) as stored:
        return {name: stored[name] for name in stored.files}


def version_of(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of a model's arrays, in hex, independent of their compression."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode() + arrays[name].tobytes())
    return digest.hexdigest()
