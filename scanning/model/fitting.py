"""Logistic regression over sparse rows, in numpy: the same rows give the same weights."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scanning.model.features import SHRINK, SIZES, Occurrences, distinct

Floats = NDArray[np.float64]
BLOCK_WEIGHTS = (1.0, 0.7, 1.0)
OFFSETS = (0, SIZES[0], SIZES[0] + SIZES[1])
PENALTY = 3e-4
"""Factor of the squared weights (L2), for values that are multiplied by SCALE."""
SCALE = 6.0
_MAX_ITERATIONS = 80
_HISTORY = 8
_WHOLE_ROW = 1 << 20
"""A `step` for `distinct` that is longer than any row."""


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


def rows_of(texts: Sequence[tuple[Occurrences, ...]]) -> Rows:
    """Return the rows of texts. A block's values are divided by the root of their number, as in `scoring.averages`."""
    places: list[NDArray[np.int64]] = []
    values: list[Floats] = []
    begins, total = [0], 0
    for blocks in texts:
        for block, offset, weight, shrink in zip(blocks, OFFSETS, BLOCK_WEIGHTS, SHRINK, strict=True):
            block = distinct(block, _WHOLE_ROW)
            count = len(block.places)
            places.append(block.places + offset)
            values.append(np.full(count, SCALE * weight / np.sqrt(count + shrink)))
            total += count
        begins.append(total)
    return Rows(np.concatenate(places).astype(np.int32), np.concatenate(values).astype(np.float32), np.array(begins))


def fitted(rows: Rows, attacks: NDArray[np.bool_], row_weights: Floats) -> tuple[Floats, float]:
    """Return weights and bias that separate attacks from harmless rows; `row_weights` are the weights of the rows."""
    used, compact = np.unique(rows.places, return_inverse=True)
    rows = Rows(compact.astype(np.int32), rows.values, rows.begins)
    row_of = np.repeat(np.arange(len(rows)), np.diff(rows.begins))
    sign = np.where(attacks, 1.0, -1.0)
    row_weights = row_weights / row_weights.sum()

    def loss(point: Floats) -> tuple[float, Floats]:
        weights, bias = point[:-1], point[-1]
        margin = sign * (rows.times(weights) + bias)
        slope = -sign * row_weights * np.exp(-np.logaddexp(0, margin))
        gradient = (
            np.bincount(rows.places, weights=rows.values * slope[row_of], minlength=len(used)) + PENALTY * weights
        )
        value = float(row_weights @ np.logaddexp(0, -margin) + PENALTY / 2 * (weights @ weights))
        return value, np.append(gradient, slope.sum())

    point = minimize(loss, np.zeros(len(used) + 1))
    weights = np.zeros(sum(SIZES))
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
