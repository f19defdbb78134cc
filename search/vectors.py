"""Vectors of meaning: the static table that ships inside the wordllama package, read without network. With the products
of rows that the search needs."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np
import wordllama
from numpy.typing import NDArray
from wordllama import WordLlama

Floats = NDArray[np.float32]
DIMENSIONS: Final = 256
LONGEST_TEXT: Final = 4000
"""Characters of a text that are embedded."""
FULL_LENGTH: Final = 14.0
"""Length of a piece vector from which a word counts in full; the median over the table is 13.3."""
_MOST_KEPT: Final = 20_000
"""Words of which the pieces are kept."""
_LONGEST_KEPT: Final = 64
"""Characters of such a word."""
_NOT_BY_WORD: Final = re.compile("^ |  | $|[<▁]")
"""Where a text's pieces are not those of its words: no piece goes on after a space, but several spaces may be one, and
marks such as "<s>" change what follows them."""
_ONE_THREAD: Final = 250_000
"""Multiplications up to which OpenBLAS does not start threads (262,144)."""


class StaticVectors:
    """Mean of the word-piece vectors of a text.

    Thread-safe: the table never changes, and what is kept beside it may be lost.
    """

    def __init__(self) -> None:
        # The loader looks for its bundled files in the wrong folder when it may not download.
        folder = Path(wordllama.__file__).parent
        model = WordLlama.load(cache_dir=folder, dim=DIMENSIONS, disable_download=True)
        self._table: Floats = np.ascontiguousarray(model.embedding, dtype=np.float32)
        self._norms: Floats = np.sqrt(np.vecdot(self._table, self._table))
        self._kept: dict[str, list[int]] = {}
        self._tokenizer = model.tokenizer
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return one row of 256 per text, see `vector`."""
        return np.array([self.vector(text) for text in texts], dtype=np.float32).reshape(-1, DIMENSIONS)

    def vector(self, text: str) -> Floats:
        """Return the mean of a text's piece vectors (256), not normalised; zeros for no text. Case is folded first."""
        pieces = self._pieces(text)
        if not pieces:
            return np.zeros(DIMENSIONS, dtype=np.float32)
        return np.asarray(np.add.reduce(self._table.take(pieces, axis=0), axis=0) / len(pieces), dtype=np.float32)

    def _pieces(self, text: str) -> list[int]:
        if not text:
            return []
        text = text.casefold()[:LONGEST_TEXT]
        if _NOT_BY_WORD.search(text):
            return self._encoded(text)
        return list(chain.from_iterable(map(self._pieces_of_word, text.split(" "))))

    def _pieces_of_word(self, word: str) -> list[int]:
        known = self._kept.get(word)
        if known is None:
            known = self._encoded(word)
            if len(word) > _LONGEST_KEPT:
                return known
            if len(self._kept) >= _MOST_KEPT:
                self._kept = {}
            self._kept[word] = known
        return known

    def _encoded(self, text: str) -> list[int]:
        # One by one: a batch would start the tokenizer's thread pool, which must not meet a fork.
        text = text.encode("utf-8", "replace").decode("utf-8")
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def importance(self, words: Sequence[str]) -> Floats:
        """Return how much each word says, 0 to 1, whatever the book: the length its vector was trained to.

        Since texts are plain means, training made the vectors of "the" or "get" short and those of
        "penicillin" or "draft" long; the longest piece of a word decides, and the upper half counts as 1.
        """
        longest = [float(self._norms[pieces].max()) if pieces else 0.0 for pieces in map(self._pieces, words)]
        return np.array([min(length / FULL_LENGTH, 1.0) for length in longest], dtype=np.float32)

    def forget_words(self) -> None:
        """Drop the words that are kept here to save time."""
        self._kept = {}


_lock = threading.Lock()
_loaded: list[StaticVectors] = []


def static_vectors() -> StaticVectors:
    """Return the process's one table, loading it (about 0.15 s, 35 MB) on first use."""
    if not _loaded:
        with _lock:
            if not _loaded:
                _loaded.append(StaticVectors())
    return _loaded[0]


def forget_words() -> None:
    """Drop the words that the process's table keeps to save time."""
    for table in _loaded:
        table.forget_words()


def unit(rows: Floats) -> Floats:
    """Return the rows scaled to length one; rows of zeros stay zeros."""
    norms = np.sqrt(np.vecdot(rows, rows))
    return np.asarray(rows / np.maximum(norms, np.float32(1e-9))[..., None], dtype=np.float32)


def cosines(rows: Floats, table: Floats) -> Floats:
    """Return the products of every row with every table row: (R, D) and (T, D) give (R, T).

    Worked off in pieces so small that the linear algebra library keeps to one thread: on a busy
    machine waiting for its helper threads costs far more than they bring. For the same reason single
    rows are multiplied with `np.vecdot`, which never starts one.
    """
    found = np.empty((len(rows), len(table)), dtype=np.float32)
    if len(rows) == 1:
        np.vecdot(table, rows, out=found[0])
        return found
    step = max(_ONE_THREAD // max(rows.size, 1), 16)
    for start in range(0, len(table), step):
        found[:, start : start + step] = rows @ table[start : start + step].T
    return found
