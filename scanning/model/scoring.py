"""Computes scores: tables of weights, loaded once, and their sums over windows of a text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from scanning.model.features import SHRINK, SIZES, Occurrences, distinct, occurrences
from scanning.sentences import Sentence

WEIGHTS: Final = Path(__file__).with_name("weights.npz")
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
class Model:
    """Weights by block, the score of an empty text (`bias`), and the two thresholds."""

    tables: tuple[NDArray[np.int8], ...]
    scales: tuple[float, ...]
    bias: float
    hold_from: float
    block_from: float
    version: str

    def score(self, text: str, sentences: Sequence[Sentence]) -> Score:
        """Return the score of a folded text: the highest of its windows."""
        step = STEP if len(text) > MAX_WHOLE else MAX_WHOLE
        steps = -(-len(text) // step) or 1
        values = np.full(max(steps - 1, 1), self.bias)
        for block, table, scale, shrink in zip(
            occurrences(text, sentences), self.tables, self.scales, SHRINK, strict=True
        ):
            values += scale * averages(distinct(block, step), table, step, steps, shrink)
        best = int(values.argmax())
        return Score(float(values[best]), best * step, min((best + 2) * step, len(text)))


def averages(block: Occurrences, table: NDArray[np.int8], step: int, steps: int, shrink: float) -> NDArray[np.float64]:
    """Return the sum of a block's weights in each window, divided by the root of the number of occurrences."""
    step_of = block.at // step
    sums = np.bincount(step_of, weights=table[block.places], minlength=steps)
    counts = np.bincount(step_of, minlength=steps)
    if steps > 1:
        sums, counts = sums[1:] + sums[:-1], counts[1:] + counts[:-1]
    return np.asarray(sums / np.sqrt(counts + shrink), dtype=np.float64)


@cache
def model() -> Model:
    """Return the packaged model, loaded on first use (a few milliseconds)."""
    with np.load(WEIGHTS) as stored:
        return model_of({name: stored[name] for name in stored.files})


def model_of(arrays: dict[str, NDArray[Any]]) -> Model:
    """Return the model with these arrays: `table0` to `table2`, and `numbers` (bias, thresholds, scales)."""
    tables = tuple(arrays[f"table{block}"] for block in range(len(SIZES)))
    bias, hold_from, block_from, *scales = map(float, arrays["numbers"])
    return Model(tables, tuple(scales), bias, hold_from, block_from, version_of(arrays))


def version_of(arrays: dict[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of a model's arrays, in hex, independent of their compression."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode() + arrays[name].tobytes())
    return digest.hexdigest()
