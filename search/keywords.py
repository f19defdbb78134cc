"""The strict search: the `local` rule, which extracts keywords from a message without a model, and the entries that
contain every keyword, as SQL `LIKE '%keyword%'` would find them.

SQLite's LIKE ignores case for ASCII letters only, PostgreSQL's ILIKE according to its locale. So that both databases
and this module agree, texts are folded by one function, `fold`, and then compared as plain substrings.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from search.normal_form import normalized

_STOP_WORD_LIST = "the a an and or but in on at to for of as by is was are were be been"
STOP_WORDS = frozenset(_STOP_WORD_LIST.split())
"""Words that are never keywords."""

_PUNCTUATION = ".,!?;:()[]{}\"'\n\t"
# Clause marks of other scripts. Their Unicode category does not identify them, since it also contains marks that occur
# inside words (the Hebrew gershayim, the Catalan middle dot, the Tibetan tsheg).
_CLAUSE_MARKS = (
    "\u3001\u3002\uff0c\uff0e\uff01\uff1f\uff1b\uff1a\uff61\uff64\u2025\u2026"  # East Asian, ellipses
    "\u060c\u061b\u061f\u06d4\u0964\u0965\u104a\u104b\u1362\u17d4"  # Arabic, Indic, Burmese, Ethiopic, Khmer
)
_BRACKETS_AND_QUOTES = frozenset({"Ps", "Pe", "Pi", "Pf"})
_SYMBOL_CATEGORIES = frozenset({"Sk", "Sm"})
_MIN_BYTES = 3
_MAX_SHORT = 24
_SEPARATOR: Final = "\0"
_CACHE_SIZE: Final = 512
"""Words for which a book caches whether any content contains them."""


class _Separators(dict[int, str]):
    """A table for `str.translate` that maps separators to spaces and classifies characters on first use."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        is_separator = char in _PUNCTUATION or char in _CLAUSE_MARKS
        # ASCII brackets are in _PUNCTUATION.
        if not is_separator and not char.isascii():
            is_separator = unicodedata.category(char) in _BRACKETS_AND_QUOTES
        self[code] = " " if is_separator else char
        return self[code]


_SEPARATORS = _Separators()


def extract_keywords(text: str) -> list[str]:
    """Return the keywords of `text` in order of first occurrence, without duplicates.

    Lower-cases, replaces punctuation by spaces, splits on white space, strips remaining punctuation of any script from
    the ends of words, keeps tokens longer than two bytes of UTF-8 (so Cyrillic "ты" is kept and "my" is not), and drops
    the stop words.
    """
    return [word for word in _words(text) if _is_long_enough(word)]


def query_keywords(query: str) -> list[str]:
    """Return the keywords of a query that somebody wrote in order to search: its short words if it has no others, such
    as "U2" and "42". In a message they would say nothing."""
    return extract_keywords(query) or _words(query)[:_MAX_SHORT]


def _words(text: str) -> list[str]:
    words = dict.fromkeys(map(_strip_punctuation, text.lower().translate(_SEPARATORS).split()))
    return [word for word in words if word and word not in STOP_WORDS]


def _is_long_enough(word: str) -> bool:
    return len(word) >= _MIN_BYTES or len(word.encode("utf-8", "surrogatepass")) >= _MIN_BYTES


def _strip_punctuation(token: str) -> str:
    """Strip punctuation from the ends of a token, except the last character of "c++" and "asp#"."""
    if token.isalnum():
        return token
    first, end = 0, len(token)
    while first < end and _is_edge_punctuation(token[first]):
        first += 1
    while end > first and token[end - 1] != "#" and _is_edge_punctuation(token[end - 1]):
        end -= 1
    return token[first:end]


def _is_edge_punctuation(char: str) -> bool:
    category = unicodedata.category(char)
    return category[0] == "P" or (category in _SYMBOL_CATEGORIES and char != "+")


def fold(text: str) -> str:
    """Return `text` as it is compared: without differences of case, width and composition.

    Apart from letters composed with what follows them, a substring folds to a substring of the folded text (unlike with
    `str.lower`, because of the Greek final sigma).
    """
    if text.isascii():
        return text.casefold()
    return normalized(normalized(text).casefold())


class FoldedContents:
    """The folded contents of a book."""

    def __init__(self, contents: Sequence[str]) -> None:
        self._texts = tuple(fold(content) for content in contents)
        self._joined = _SEPARATOR.join(self._texts)
        # Messages repeat words, and searching a whole book is slow.
        self._occurs = lru_cache(_CACHE_SIZE)(self._joined.__contains__)
        self.nbytes = 2 * len(self._joined)

    def holding(self, keywords: Sequence[str]) -> list[int]:
        """Return the indexes of the contents that contain every keyword, ascending; all without keywords."""
        folded = sorted((fold(keyword) for keyword in keywords if keyword), key=len, reverse=True)
        # Most messages have a word that does not occur in the book, most likely a long one.
        if not all(map(self._occurs, folded)):
            return []
        found = list(range(len(self._texts)))
        for keyword in folded:
            found = [at for at in found if keyword in self._texts[at]]
        return found
