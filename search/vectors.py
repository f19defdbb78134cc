"""Static word embeddings: the table that ships with the wordllama package, loaded without network access; and products
of rows."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np
import wordllama
from numpy.typing import NDArray
from wordllama import WordLlama

from search.languages import ENGLISH_ONLY
from search.tokens import language_of

Floats = NDArray[np.float32]
DIMENSIONS: Final = 256
MAX_TEXT_CHARS: Final = 4000
"""Characters of a text that are embedded; the rest is ignored."""
FULL_LENGTH: Final = 14.0
"""Norm of a piece vector from which a word has full importance; the median over the table is 13.3."""
_CACHE_SIZE: Final = 20_000
"""Words whose pieces are cached."""
_MAX_CACHED_WORD: Final = 64
"""Characters of a cached word."""
MAX_ENGLISH_PIECES: Final = 1.4
"""Pieces per word up to which a text counts as English. German and Romance sentences have 1.5 and more."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NEEDS_WHOLE_TEXT: Final = re.compile("^ |  | $|[<▁]")
"""Matches texts whose pieces are not simply those of their words: no piece continues across a space, but several spaces
may form one, and marks such as "<s>" change what follows them."""
_ONE_THREAD_SIZE: Final = 250_000
"""Multiplications up to which OpenBLAS does not start threads (262,144)."""


class StaticVectors:
    """Embeds a text as the mean of its word-piece vectors. Thread-safe: the table never changes, and the loss of cache
    entries does no harm."""

    def __init__(self) -> None:
        # With downloads disabled, the loader looks for its bundled files in the wrong folder.
        folder = Path(wordllama.__file__).parent
        model = WordLlama.load(cache_dir=folder, dim=DIMENSIONS, disable_download=True)
        self._table: Floats = np.ascontiguousarray(model.embedding, dtype=np.float32)
        self._norms: Floats = np.sqrt(np.vecdot(self._table, self._table))
        self._tokenizer = model.tokenizer
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._pieces_of_word = lru_cache(_CACHE_SIZE)(self._encode)

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return one row of 256 numbers per text, see `vector`."""
        return np.array([self.vector(text) for text in texts], dtype=np.float32).reshape(-1, DIMENSIONS)

    def vector(self, text: str) -> Floats:
        """Return the mean of a text's piece vectors (256), not normalised; zeros for "". Case is folded first."""
        pieces = self._pieces(text)
        if not pieces:
            return np.zeros(DIMENSIONS, dtype=np.float32)
        return np.asarray(np.add.reduce(self._table.take(pieces, axis=0), axis=0) / len(pieces), dtype=np.float32)

    def _pieces(self, text: str) -> list[int]:
        if not text:
            return []
        text = text.casefold()[:MAX_TEXT_CHARS]
        if _NEEDS_WHOLE_TEXT.search(text):
            return self._encode(text)
        words = text.split(" ")
        pieces = (self._pieces_of_word(word) if len(word) <= _MAX_CACHED_WORD else self._encode(word) for word in words)
        return list(chain.from_iterable(pieces))

    def _encode(self, text: str) -> list[int]:
        # One by one: a batch would start the tokenizer's thread pool, which does not survive a fork.
        text = text.encode("utf-8", "replace").decode("utf-8")
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def importance(self, words: Sequence[str]) -> Floats:
        """Return the importance of each word, 0 to 1, independent of the book: the norm of its trained vector.

        Since texts are plain means, training made the vectors of "the" or "get" short and those of "penicillin" or
        "draft" long. The longest piece of a word decides; the upper half counts as 1.
        """
        longest = [float(self._norms[pieces].max()) if pieces else 0.0 for pieces in map(self._pieces, words)]
        return np.array([min(length / FULL_LENGTH, 1.0) for length in longest], dtype=np.float32)

    def is_english(self, text: str) -> bool:
        """Return True if a text is certainly in English: it has a frequent word that only English has, not as part of a
        name, and most words are one piece in the table. Those of other languages consist of several, but not in all
        short sentences. Many texts in English have no such word."""
        words = _WORD.findall(text)
        if not words or ENGLISH_ONLY.isdisjoint([words[0].casefold(), *words[1:]]) or language_of(text) != "english":
            return False
        return sum(len(self._pieces(word)) for word in words) <= MAX_ENGLISH_PIECES * len(words)

    def forget_words(self) -> None:
        """Clear the cache of words."""
        self._pieces_of_word.cache_clear()


_loading = threading.Lock()  # `cache` alone would let several threads load a table each


@cache
def _table() -> StaticVectors:
    return StaticVectors()


def static_vectors() -> StaticVectors:
    """Return the process's table, which is loaded on first use (about 0.15 s, 35 MB)."""
    with _loading:
        return _table()


def forget_words() -> None:
    """Clear the word cache of the process's table."""
    if _table.cache_info().currsize:
        static_vectors().forget_words()


@dataclass(frozen=True, slots=True, eq=False)
class Sized:
    """Base class of dataclasses with arrays."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(getattr(getattr(self, field.name), "nbytes", 0) for field in fields(self))


def unit(rows: Floats) -> Floats:
    """Return the rows, or a single vector, scaled to length one; rows of zeros stay zeros."""
    norms = np.sqrt(np.vecdot(rows, rows))
    return np.asarray(rows / np.maximum(norms, np.float32(1e-9))[..., None], dtype=np.float32)


def cosines(rows: Floats, table: Floats) -> Floats:
    """Return the products of every row with every table row: (R, D) and (T, D) give (R, T).

    Computed in blocks small enough that the linear algebra library uses a single thread: on a busy machine, waiting for
    its worker threads costs far more than they save. For the same reason single rows are multiplied with `np.vecdot`,
    which never starts threads.
    """
    found = np.empty((len(rows), len(table)), dtype=np.float32)
    if len(rows) == 1:
        np.vecdot(table, rows, out=found[0])
        return found
    step = max(_ONE_THREAD_SIZE // max(rows.size, 1), 16)
    for start in range(0, len(table), step):
        found[:, start : start + step] = rows @ table[start : start + step].T
    return found
