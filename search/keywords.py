"""The strict search: the `local` rule that takes keywords out of a message without a model, and the entries that hold
every keyword, as SQL `LIKE '%keyword%'` would find them.

SQLite's LIKE ignores case for ASCII letters only, PostgreSQL's ILIKE for what its locale knows. So
that both databases and this module agree, case is taken away before the comparison and by one
function, `fold`; what is then compared are plain substrings.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

_TWENTY = "the a an and or but in on at to for of as by is was are were be been"
STOP_WORDS = frozenset(_TWENTY.split())
"""The twenty words that are never keywords."""

_PUNCTUATION = ".,!?;:()[]{}\"'\n\t"
# The clause marks of other scripts; unlike brackets and quotation marks they share a category with marks that belong
# inside words (the Hebrew gershayim, the Catalan middle dot, the Tibetan tsheg).
_CLAUSE_MARKS = (
    "\u3001\u3002\uff0c\uff0e\uff01\uff1f\uff1b\uff1a\uff61\uff64\u2025\u2026"  # East Asian, ellipses
    "\u060c\u061b\u061f\u06d4\u0964\u0965\u104a\u104b\u1362\u17d4"  # Arabic, Indic, Burmese, Ethiopic, Khmer
)
_BRACKETS_AND_QUOTES = frozenset({"Ps", "Pe", "Pi", "Pf"})
_AROUND_WORDS = frozenset({"Sk", "Sm"})
_FEWEST_BYTES = 3
_BETWEEN: Final = "\0"
_MOST_KEPT: Final = 512
"""Words of messages of which a book keeps whether any content holds them."""


class _Separators(dict[int, str]):
    """A table for `str.translate` that turns separators into spaces; characters are classified when first seen."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        apart = char in _PUNCTUATION or char in _CLAUSE_MARKS
        # The brackets of ASCII are among _PUNCTUATION already.
        if not apart and not char.isascii():
            apart = unicodedata.category(char) in _BRACKETS_AND_QUOTES
        self[code] = " " if apart else char
        return self[code]


_SEPARATORS = _Separators()


def extract_keywords(text: str) -> list[str]:
    """Return the keywords of `text` in order of first occurrence, without duplicates.

    Lower-cases, turns punctuation into spaces, splits on white space, strips the punctuation of any
    script that is left around a word, keeps tokens longer than two bytes of UTF-8 (so Cyrillic "ты"
    stays and "my" goes) and drops the stop words.
    """
    tokens = dict.fromkeys(map(_strip_punctuation, text.lower().translate(_SEPARATORS).split()))
    return [token for token in tokens if token not in STOP_WORDS and _is_long_enough(token)]


def _is_long_enough(token: str) -> bool:
    return len(token) >= _FEWEST_BYTES or len(token.encode("utf-8", "surrogatepass")) >= _FEWEST_BYTES


def _strip_punctuation(token: str) -> str:
    """Return a token without the punctuation at its ends. "c++" and "asp#" keep their last character."""
    if token.isalnum():
        return token
    first, end = 0, len(token)
    while first < end and _is_around_words(token[first]):
        first += 1
    while end > first and token[end - 1] != "#" and _is_around_words(token[end - 1]):
        end -= 1
    return token[first:end]


def _is_around_words(char: str) -> bool:
    category = unicodedata.category(char)
    return category[0] == "P" or (category in _AROUND_WORDS and char != "+")


def fold(text: str) -> str:
    """Return `text` as it is compared: Unicode case folding, nothing else.

    Folding works character by character, so a part of a text folds to a part of the folded text
    (`str.lower` does not keep that promise for the Greek final sigma).
    """
    return text.casefold()


def holds_all(folded_content: str, folded_keywords: Sequence[str]) -> bool:
    """Say whether every folded keyword is a part of the folded content."""
    return all(keyword in folded_content for keyword in folded_keywords)


class FoldedContents:
    """The folded contents of a book, kept in one piece so that a word is looked for in all at once."""

    def __init__(self, contents: Sequence[str]) -> None:
        self._texts = tuple(fold(content) for content in contents)
        self._joined = _BETWEEN.join(self._texts)
        self._ends = list(accumulate(len(text) + 1 for text in self._texts))
        self._held: dict[str, bool] = {}
        self.nbytes = 2 * len(self._joined) + 8 * len(self._ends)

    def holding(self, keywords: Sequence[str]) -> list[int]:
        """Return the places of the contents that hold every keyword, ascending; all without keywords."""
        wanted = sorted((fold(keyword) for keyword in keywords if keyword), key=len, reverse=True)
        if not wanted:
            return list(range(len(self._texts)))
        # Most messages hold a word that is nowhere in the book, most likely a long one.
        if not all(map(self._holds, wanted)):
            return []
        if _BETWEEN in wanted[0]:
            return [at for at, text in enumerate(self._texts) if holds_all(text, wanted)]
        return list(self._holding(wanted[0], wanted[1:]))

    def _holds(self, keyword: str) -> bool:
        """Say whether any content holds the keyword. Messages repeat their words, and looking through a whole book
        takes long."""
        held = self._held.get(keyword)
        if held is None:
            held = keyword in self._joined
            if len(self._held) >= _MOST_KEPT:
                self._held = {}
            self._held[keyword] = held
        return held

    def _holding(self, first: str, others: Sequence[str]) -> Iterator[int]:
        found = self._joined.find(first)
        while found >= 0:
            place = bisect_right(self._ends, found)
            text = self._texts[place]
            for other in others:
                if other not in text:
                    break
            else:
                yield place
            found = self._joined.find(first, self._ends[place])
