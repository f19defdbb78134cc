"""Logistic regression over sparse rows, in numpy: the same rows give the same weights."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scanning.model.features import SHRINK, SIZES, Floats, Numbers, Occurrences, distinct

BLOCK_WEIGHTS = (1.0, 0.7, 1.0)
OFFSETS = (0, SIZES[0], SIZES[0] + SIZES[1])
PENALTY = 3e-5
"""Factor of half the squared weights (L2), for values that are multiplied by SCALE."""
SCALE = 6.0
_MAX_ITERATIONS = 120
_HISTORY = 8
ATTACK_SENTENCE_WEIGHT = 3.0
"""Weight of an attack's sentence in the training of the sentence weights; there are about three times as many harmless
sentences."""
SENTENCE_SHARE = 0.5
"""Factor of the highest sentence score, which is added to the score of the text."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Sparse rows: the concatenated column indexes and values of all rows, and the start of each row."""

    places: NDArray[np.int32]
    values: NDArray[np.float32]
    begins: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.begins) - 1

    def only(self, chosen: NDArray[np.int64]) -> Rows:
        """Return the chosen rows in the given order."""
        slices = [slice(self.begins[row], self.begins[row + 1]) for row in chosen]
        lengths = [span.stop - span.start for span in slices]
        return Rows(
            np.concatenate([self.places[span] for span in slices]),
            np.concatenate([self.values[span] for span in slices]),
            np.concatenate(([0], np.cumsum(lengths))),
        )

    def times(self, weights: Floats) -> Floats:
        """Return the product of every row with the weights."""
        sums = np.concatenate(([0.0], np.cumsum(weights[self.places] * self.values)))
        return np.asarray(sums[self.begins[1:]] - sums[self.begins[:-1]])


class RowsBuilder:
    """Collects the rows of texts, each split into parts (one: the whole text)."""

    def __init__(self) -> None:
        self._places: list[NDArray[np.int32]] = []
        self._values: list[NDArray[np.float32]] = []
        self._lengths: list[Numbers] = []

    def add(self, blocks: Sequence[Occurrences], parts_of: Sequence[Numbers], parts: int) -> None:
        """Add a row for each part of a text. `parts_of` has, for each block, the part of each occurrence. A block's
        values are divided by the root of their number, as in `scoring.Weights.scores`."""
        places, values, part_of = [], [], []
        for block, block_parts, offset, weight, shrink in zip(
            blocks, parts_of, OFFSETS, BLOCK_WEIGHTS, SHRINK, strict=True
        ):
            found, where = distinct(block, block_parts)
            counts = np.bincount(where, minlength=parts)
            places.append(found + offset)
            values.append(SCALE * weight / np.sqrt(counts + shrink)[where])
            part_of.append(where)
        all_parts = np.concatenate(part_of)
        order = np.argsort(all_parts, kind="stable")
        self._places.append(np.concatenate(places)[order].astype(np.int32))
        self._values.append(np.concatenate(values)[order].astype(np.float32))
        self._lengths.append(np.bincount(all_parts, minlength=parts))

    def rows(self) -> Rows:
        """Return the rows in the order in which they were added."""
        begins = np.concatenate(([0], np.cumsum(np.concatenate(self._lengths))))
        return Rows(np.concatenate(self._places), np.concatenate(self._values), begins)


@dataclass(frozen=True, slots=True)
class Fitted:
    """Weights and bias of whole texts and of single sentences."""

    weights: Floats
    bias: float
    sentence_weights: Floats
    sentence_bias: float

    def scores(self, texts: Rows, sentences: Rows, text_of: Numbers) -> Floats:
        """Return the score of each text: its own, and a share of that of its highest sentence. `text_of` has the number
        of each sentence's text; each text has a sentence."""
        highest = highest_of(sentences.times(self.sentence_weights) + self.sentence_bias, text_of, len(texts))
        return np.asarray(texts.times(self.weights) + self.bias + SENTENCE_SHARE * highest)


def highest_of(scores: Floats, text_of: Numbers, texts: int) -> Floats:
    """Return the highest of the scores of each text's sentences."""
    highest = np.full(texts, -np.inf)
    np.maximum.at(highest, text_of, scores)
    return highest


def fitted_with_sentences(texts: Rows, sentences: Rows, text_of: Numbers, attacks: NDArray[np.bool_]) -> Fitted:
    """Fit the weights of texts, then those of sentences: of an attack, the sentence with the highest score by the first
    weights is the order; all sentences of harmless texts are none (multiple instance learning)."""
    weights, bias = fitted(texts, attacks, np.full(len(texts), 1 / len(texts)), size=sum(SIZES), penalty=PENALTY)
    scores = sentences.times(weights)
    of_attack = attacks[text_of]
    used = np.flatnonzero(~of_attack | (scores == highest_of(scores, text_of, len(texts))[text_of]))
    row_weights = np.where(of_attack[used], ATTACK_SENTENCE_WEIGHT, 1.0)
    row_weights /= row_weights.sum()
    of_sentences = fitted(sentences.only(used), of_attack[used], row_weights, size=sum(SIZES), penalty=PENALTY)
    return Fitted(weights, bias, *of_sentences)


def fitted(
    rows: Rows, positive: NDArray[np.bool_], row_weights: Floats, *, size: int, penalty: float
) -> tuple[Floats, float]:
    """Return the weights of `size` columns, and the bias, that separate the positive rows from the others, by logistic
    regression. `row_weights` are factors of the rows' losses, `penalty` is that of half the squared weights (L2)."""
    used, compact = np.unique(rows.places, return_inverse=True)
    rows = Rows(compact.astype(np.int32), rows.values, rows.begins)
    row_of = np.repeat(np.arange(len(rows)), np.diff(rows.begins))
    sign = np.where(positive, 1.0, -1.0)

    def loss(point: Floats) -> tuple[float, Floats]:
        weights, bias = point[:-1], point[-1]
        margin = sign * (rows.times(weights) + bias)
        slope = -sign * row_weights * np.exp(-np.logaddexp(0, margin))
        gradient = (
            np.bincount(rows.places, weights=rows.values * slope[row_of], minlength=len(used)) + penalty * weights
        )
        value = float(row_weights @ np.logaddexp(0, -margin) + penalty / 2 * (weights @ weights))
        return value, np.append(gradient, slope.sum())

    point = minimize(loss, np.zeros(len(used) + 1))
    weights = np.zeros(size)
    weights[used] = point[:-1]
    return weights, float(point[-1])


def minimize(loss: Callable[[Floats], tuple[float, Floats]], point: Floats) -> Floats:
    """Return the minimum of a smooth convex function, by L-BFGS with backtracking line search."""
    value, gradient = loss(point)
    steps: deque[tuple[Floats, Floats, float]] = deque(maxlen=_HISTORY)
    for _ in range(_MAX_ITERATIONS):
        direction = _direction(gradient, steps)
        length, slope = 1.0, float(direction @ gradient)
        while True:
            new_value, new_gradient = loss(point + length * direction)
            if new_value <= value + 1e-4 * length * slope or length < 1e-6:
                break
            length /= 2
        step, change = length * direction, new_gradient - gradient
        if (product := float(step @ change)) > 1e-12:
            steps.append((step, change, product))
        done = abs(value - new_value) < 1e-6 * abs(value)
        point, value, gradient = point + step, new_value, new_gradient
        if done:
            break
    return point


def _direction(gradient: Floats, steps: deque[tuple[Floats, Floats, float]]) -> Floats:
    direction = -gradient
    if not steps:
        return np.asarray(direction / max(1.0, float(np.linalg.norm(gradient))))
    parts = []
    for step, change, product in reversed(steps):
        part = float(step @ direction) / product
        parts.append(part)
        direction = direction - part * change
    _, change, product = steps[-1]
    direction = direction * (product / float(change @ change))
    for (step, change, product), part in zip(steps, reversed(parts), strict=True):
        direction = direction + step * (part - float(change @ direction) / product)
    return np.asarray(direction)
