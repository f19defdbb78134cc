"""The training rows: one JSON Lines file per author, with `text`, `label`, `kind` and `lang`."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.training.fitting import Fitted, Rows, RowsBuilder, fitted_with_sentences
from scanning.judging import orders_in
from scanning.model.features import Numbers, occurrences, sentence_begins, sentence_of
from scanning.sentences import Sentence, sentences_of
from scanning.views import folded_view, raw_view

_NAMES = re.compile(r"[^\W\d_]{5,}")
_MAX_ROWS_OF_NAME = 3
_MIN_SHARED_NAMES = 2


@dataclass(frozen=True, slots=True)
class Corpus:
    """All rows: texts, whether each is an attack, its author, language, scene and features. `matched` is True if a rule
    finds an order that is not quoted; `orders` has the features of that order's sentence. `sentences` has the features
    of every sentence, and `text_of` the number of its text."""

    texts: tuple[str, ...]
    attacks: NDArray[np.bool_]
    authors: NDArray[np.str_]
    languages: NDArray[np.str_]
    scenes: NDArray[np.int64]
    matched: NDArray[np.bool_]
    features: Rows
    orders: Rows
    sentences: Rows
    text_of: Numbers

    def only(self, chosen: NDArray[np.bool_]) -> Corpus:
        """Return the chosen texts with their sentences."""
        rows, sentences = np.flatnonzero(chosen), np.flatnonzero(chosen[self.text_of])
        return Corpus(
            texts=tuple(self.texts[row] for row in rows),
            attacks=self.attacks[rows],
            authors=self.authors[rows],
            languages=self.languages[rows],
            scenes=self.scenes[rows],
            matched=self.matched[rows],
            features=self.features.only(rows),
            orders=self.orders.only(rows),
            sentences=self.sentences.only(sentences),
            text_of=(np.cumsum(chosen) - 1)[self.text_of[sentences]],
        )

    def fitted(self) -> Fitted:
        """Return weights fitted to all texts and their sentences."""
        return fitted_with_sentences(self.features, self.sentences, self.text_of, self.attacks)


def read_rows(folder: Path) -> Corpus:
    """Read every *.jsonl of a folder; the file name is the author's name. Raises ValueError for an unknown label."""
    texts, labels, authors, languages, matched, counts = [], [], [], [], [], []
    features, orders, by_sentence = RowsBuilder(), RowsBuilder(), RowsBuilder()
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["label"] not in ("attack", "harmless"):
                raise ValueError(f"{path.name}: unknown label {row['label']!r}")
            view = folded_view(raw_view(row["text"]))
            sentences = sentences_of(view)
            texts.append(row["text"])
            labels.append(row["label"] == "attack")
            authors.append(path.stem)
            languages.append(row["lang"])
            found = [order.sentence for order in orders_in(view, sentences) if not order.quoted]
            matched.append(bool(found))
            _add_row(features, view.text, sentences)
            _add_row(orders, *(found[0].alone(view.text) if found else ("", [])))
            counts.append(_add_row(by_sentence, view.text, sentences, split=True))
    return Corpus(
        texts=tuple(texts),
        attacks=np.array(labels),
        authors=np.array(authors),
        languages=np.array(languages),
        scenes=_scenes(texts, authors),
        matched=np.array(matched),
        features=features.rows(),
        orders=orders.rows(),
        sentences=by_sentence.rows(),
        text_of=np.repeat(np.arange(len(texts)), counts),
    )


def _add_row(builder: RowsBuilder, text: str, sentences: Sequence[Sentence], *, split: bool = False) -> int:
    """Add the row of a folded text, or with `split` that of each of its sentences, and return their number."""
    blocks = occurrences(text, sentences)
    begins = sentence_begins(sentences) if split else np.zeros(1, dtype=np.int64)
    builder.add(blocks, [sentence_of(block.at, begins) for block in blocks], len(begins))
    return len(begins)


def _scenes(texts: Sequence[str], authors: Sequence[str]) -> NDArray[np.int64]:
    """Return a scene number for each row; rows of an author that share two rare words (mostly names) have the same."""
    rows_with: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, (text, author) in enumerate(zip(texts, authors, strict=True)):
        for word in set(_NAMES.findall(text.casefold())):
            rows_with[author, word].append(row)
    shared: dict[tuple[int, int], int] = defaultdict(int)
    for rows in rows_with.values():
        if len(rows) <= _MAX_ROWS_OF_NAME:
            for other in rows[1:]:
                shared[rows[0], other] += 1
    scenes = list(range(len(texts)))
    for (first, other), count in sorted(shared.items()):
        if count >= _MIN_SHARED_NAMES:
            scenes = [scenes[first] if scene == scenes[other] else scene for scene in scenes]
    return np.array(scenes)
