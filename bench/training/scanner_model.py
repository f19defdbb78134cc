"""Trains the packaged model, or checks that it was made from the current rows and code.

    python -m bench.training.scanner_model            train, report and write weights.npz and made_from.json (minutes)
    python -m bench.training.scanner_model --check    compare hashes of rows, code and weights (no training)

The same rows give the same weights on the same machine. Other machines may round differently, so the check compares
hashes of inputs and outputs."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.training.fitting import BLOCK_WEIGHTS, OFFSETS, SCALE, SENTENCE_SHARE, Fitted
from bench.training.made_from import ROOT, TRAINING, Recipe
from bench.training.rows import Corpus, read_rows
from bench.training.validation import out_of_author, report
from scanning.model.features import Floats
from scanning.model.scoring import WEIGHTS

PACKAGE = ROOT / "scanning"
RECIPE = Recipe(
    code=(
        *(PACKAGE / "vocabulary").glob("*.py"),
        *(PACKAGE / f"{name}.py" for name in ("characters", "sentences", "views", "words")),
        *(PACKAGE / "model" / f"{name}.py" for name in ("features", "scoring")),
        *(TRAINING / f"{name}.py" for name in ("fitting", "rows", "scanner_model")),
    ),
    rows=ROOT / "bench" / "scanner_rows",
    weights=WEIGHTS,
    made_from=WEIGHTS.with_name("made_from.json"),
)
MAX_HELD_SHARE = 0.0225
"""Share of harmless rows, each scored by a model that was not trained on its author, that the score alone may hold.
These rows were written to be hard; far fewer ordinary texts reach the threshold."""
MAX_BLOCKED_SHARE = 0.005
"""Share of harmless rows that may be blocked because a rule finds an order."""


def main() -> None:
    """Train or check, according to the command line."""
    recipe = RECIPE.to_train(__doc__)
    if recipe is None:
        return
    corpus = read_rows(recipe.rows)
    fit = corpus.fitted()
    scores, orders = out_of_author(corpus)
    arrays = packed(fit, thresholds(corpus, scores, orders))
    np.savez_compressed(WEIGHTS, **arrays)  # type: ignore[arg-type]
    recipe.write()
    sys.stdout.write(report(corpus, scores) + "\n")


def thresholds(corpus: Corpus, scores: Floats, orders: Floats) -> tuple[float, float]:
    """Return the score from which a text is held, and the score from which an order found by a rule is certain."""
    harmless = ~corpus.attacks
    found = np.sort(orders[harmless & corpus.matched])[::-1]
    max_blocked = int(MAX_BLOCKED_SHARE * harmless.sum())
    certain = float(found[min(max_blocked, len(found) - 1)]) if len(found) else 0.0
    return float(np.quantile(scores[harmless], 1 - MAX_HELD_SHARE)), certain


def packed(fit: Fitted, levels: tuple[float, float]) -> dict[str, NDArray[Any]]:
    """Return the arrays of `weights.npz`: weights quantised to -127 … 127, and the scales."""
    arrays: dict[str, NDArray[Any]] = {"levels": np.array(levels)}
    for name, weights, bias, share in (
        ("text", fit.weights, fit.bias, 1.0),
        ("sentence", fit.sentence_weights, fit.sentence_bias, SENTENCE_SHARE),
    ):
        scales = []
        for block, (start, end) in enumerate(zip(OFFSETS, (*OFFSETS[1:], len(weights)), strict=True)):
            table = weights[start:end]
            step = float(np.abs(table).max()) / 127 or 1.0
            arrays[f"{name}{block}"] = np.round(table / step).astype(np.int8)
            scales.append(share * step * SCALE * BLOCK_WEIGHTS[block])
        arrays[f"{name}_scales"] = np.array([share * bias, *scales])
    return arrays


if __name__ == "__main__":
    main()
