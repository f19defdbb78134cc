"""Measures the model on authors and scenes that it was not trained on. Rows are never split individually, since many
share a scene. Authors are left out in groups, since a training for each of them would take most of an hour."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench.training.rows import Corpus
from scanning.model.features import Floats

FALSE_ALARMS = 0.02
_AUTHOR_GROUPS = 8
_FOLDS = 4
_SHARES = (0.25, 0.5, 1.0)


def out_of_author(corpus: Corpus, share: float = 1.0) -> tuple[Floats, Floats]:
    """Return the score of each row, and of the order that a rule found in it, by a model that was trained on the
    authors of other groups, or on a share of their scenes."""
    return _scored(corpus, np.unique(corpus.authors, return_inverse=True)[1] % _AUTHOR_GROUPS, share)


def out_of_scene(corpus: Corpus) -> Floats:
    """Return each row's score by a model that was trained on its author, but not on its scene."""
    return _scored(corpus, _spread(corpus.scenes) % _FOLDS, 1.0)[0]


def _spread(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a random but reproducible permutation of the numbers; equal numbers stay equal."""
    order = np.random.default_rng(16).permutation(int(numbers.max()) + 1)
    return np.asarray(order[numbers])


def _scored(corpus: Corpus, fold_of: NDArray[np.int64], share: float) -> tuple[Floats, Floats]:
    scores, orders = np.zeros(len(corpus.texts)), np.zeros(len(corpus.texts))
    included = _spread(corpus.scenes) < share * (corpus.scenes.max() + 1)
    for fold in np.unique(fold_of):
        fit = corpus.only((fold_of != fold) & included).fitted()
        held_out = fold_of == fold
        part = corpus.only(held_out)
        scores[held_out] = fit.scores(part.features, part.sentences, part.text_of)
        orders[held_out] = fit.scores(part.orders, part.orders, np.arange(len(part.texts)))
    return scores, orders


def area(scores: Floats, attacks: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve: how often an attack scores higher than a harmless row."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores)] = np.arange(1, len(scores) + 1)
    positive = int(attacks.sum())
    pairs = positive * (len(scores) - positive)
    return float((ranks[attacks].sum() - positive * (positive + 1) / 2) / pairs) if pairs else float("nan")


def detected(scores: Floats, attacks: NDArray[np.bool_]) -> float:
    """Return the share of attacks above the score that FALSE_ALARMS of the harmless rows exceed."""
    harmless = np.sort(scores[~attacks])[::-1]
    return float((scores[attacks] > harmless[int(FALSE_ALARMS * len(harmless))]).mean())


def report(corpus: Corpus, scores: Floats) -> str:
    """Return the tables of the model card."""
    lines = [f"{len(corpus.texts)} rows, {len(np.unique(corpus.scenes))} scenes", "author left out"]
    for author in np.unique(corpus.authors):
        of_author = corpus.authors == author
        english = of_author & (corpus.languages == "en")
        lines.append(
            f"  {author:<10} AUC {area(scores[of_author], corpus.attacks[of_author]):.3f}"
            f" (English {area(scores[english], corpus.attacks[english]):.3f})"
            f"  caught at 2 % {detected(scores[of_author], corpus.attacks[of_author]):.3f}"
        )
    inner = out_of_scene(corpus)
    lines.append(f"scene left out: AUC {area(inner, corpus.attacks):.3f}, caught {detected(inner, corpus.attacks):.3f}")
    lines.append("share of the other authors' scenes: AUC, caught at 2 %")
    for share in _SHARES:
        part = scores if share == 1 else out_of_author(corpus, share)[0]
        lines.append(f"  {share:<6} {area(part, corpus.attacks):.3f} {detected(part, corpus.attacks):.3f}")
    lengths = np.array([len(text) for text in corpus.texts], dtype=np.float64)
    lines.append(f"giveaways: AUC of the length alone {area(lengths, corpus.attacks):.3f}")
    return "\n".join(lines)
