"""How well the model does on rows of authors and scenes that it has not seen; never on rows alone, since many come in
pairs of one scene."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scanning.model.fitting import Floats, fitted
from scanning.model.rows import Corpus

FALSE_ALARMS = 0.02
_FOLDS = 5
_CURVE = (0.125, 0.25, 0.5, 1.0)


def out_of_author(corpus: Corpus, share: float = 1.0) -> tuple[Floats, Floats]:
    """Return the score of each row, and of the order that a rule found in it, by a model of the rows of all other
    authors, or of a share of their scenes."""
    return _scored(corpus, np.unique(corpus.authors, return_inverse=True)[1], share)


def out_of_scene(corpus: Corpus) -> Floats:
    """Return each row's score by a model that knows its author, but not its scene."""
    return _scored(corpus, _spread(corpus.scenes) % _FOLDS, 1.0)[0]


def _spread(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers shuffled, equal ones alike, the same on every machine."""
    order = np.random.default_rng(16).permutation(int(numbers.max()) + 1)
    return np.asarray(order[numbers])


def _scored(corpus: Corpus, fold_of: NDArray[np.int64], share: float) -> tuple[Floats, Floats]:
    scores, orders = np.zeros(len(corpus.texts)), np.zeros(len(corpus.texts))
    kept = _spread(corpus.scenes) < share * (corpus.scenes.max() + 1)
    for fold in np.unique(fold_of):
        known, asked = np.flatnonzero((fold_of != fold) & kept), np.flatnonzero(fold_of == fold)
        weights, bias = fitted(corpus.features.only(known), corpus.attacks[known], np.ones(len(known)))
        scores[asked] = corpus.features.only(asked).times(weights) + bias
        orders[asked] = corpus.orders.only(asked).times(weights) + bias
    return scores, orders


def area(scores: Floats, attacks: NDArray[np.bool_]) -> float:
    """Return the area under the curve: how often an attack scores higher than a harmless row."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores)] = np.arange(1, len(scores) + 1)
    positive = int(attacks.sum())
    pairs = positive * (len(scores) - positive)
    return float((ranks[attacks].sum() - positive * (positive + 1) / 2) / pairs) if pairs else float("nan")


def caught(scores: Floats, attacks: NDArray[np.bool_]) -> float:
    """Return the share of attacks above the score that so many harmless rows exceed."""
    harmless = np.sort(scores[~attacks])[::-1]
    return float((scores[attacks] > harmless[int(FALSE_ALARMS * len(harmless))]).mean())


def report(corpus: Corpus, scores: Floats) -> str:
    """Return the tables of the model card."""
    lines = [f"{len(corpus.texts)} rows, {len(np.unique(corpus.scenes))} scenes", "author left out"]
    for author in np.unique(corpus.authors):
        mine = corpus.authors == author
        english = mine & (corpus.languages == "en")
        lines.append(
            f"  {author:<10} AUC {area(scores[mine], corpus.attacks[mine]):.3f}"
            f" (English {area(scores[english], corpus.attacks[english]):.3f})"
            f"  caught at 2 % {caught(scores[mine], corpus.attacks[mine]):.3f}"
        )
    inner = out_of_scene(corpus)
    lines.append(f"scene left out: AUC {area(inner, corpus.attacks):.3f}, caught {caught(inner, corpus.attacks):.3f}")
    lines.append("share of the other authors' scenes: AUC, caught at 2 %")
    for share in _CURVE:
        part = scores if share == 1 else out_of_author(corpus, share)[0]
        lines.append(f"  {share:<6} {area(part, corpus.attacks):.3f} {caught(part, corpus.attacks):.3f}")
    lengths = np.array([len(text) for text in corpus.texts], dtype=np.float64)
    lines.append(f"giveaways: AUC of the length alone {area(lengths, corpus.attacks):.3f}")
    return "\n".join(lines)
