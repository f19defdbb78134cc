"""Reads the word classes of `vocabulary` and determines the classes of words and phrases.
Words, prefixes and phrases are looked up in dictionaries, so the cost does not grow with the size of the vocabulary."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from scanning.characters import folded
from scanning.vocabulary import actions, orders, roles, secrecy, sending, settings, showing, spreading, standing

_FAMILIES = (orders, standing, roles, secrecy, sending, showing, spreading, actions, settings)
SOURCES: dict[str, str] = {name: words for family in _FAMILIES for name, words in family.CLASSES.items()}
# Classes whose members are recognised by their format, not by a list.
SHAPES = ("URL", "EMAIL", "HOST")

BIT: dict[str, int] = {name: 1 << place for place, name in enumerate((*SOURCES, *SHAPES))}

# Scripts without spaces: their words are found inside a run of letters.
UNSPACED = re.compile("[\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7af]+")
_ARABIC_PREFIX = re.compile("^(?:[وفبكل]?ال|لل|[وفبلس])(?=.{3})")


def fold_word(word: str) -> str:
    """Return a word as it appears in a folded view."""
    return "".join(folded(char) for char in word)


def entries_of(source: str) -> list[str]:
    """Return the folded entries of a class. They follow "language:", separated by commas; indented lines continue the
    previous one."""
    lines = source.replace(",\n    ", ", ").strip().splitlines()
    entries = (entry.strip() for line in lines for entry in line.partition(":")[2].split(","))
    return [fold_word(entry) for entry in entries if entry]


class _Lexicon:
    """Tables of words, prefixes and phrases of all classes, with bit masks."""

    def __init__(self) -> None:
        self.exact: dict[str, int] = {}
        self.prefix: dict[str, int] = {}
        self.inside: dict[str, int] = {}
        # first word -> (the other words, mask)
        self.phrases: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        # The same by the first two words, or by the first if the second ends in `*`, so that a text which repeats the
        # first word of many phrases is not slower than others.
        self._by_pair: dict[tuple[str, str], list[tuple[tuple[str, ...], int]]] = {}
        self._open: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        for name, source in SOURCES.items():
            for entry in entries_of(source):
                self._add(entry, BIT[name])
        # first letter -> lengths of the words inside runs that begin with it
        self.lengths_inside: dict[str, list[int]] = {}
        for word in sorted(self.inside, key=len):
            lengths = self.lengths_inside.setdefault(word[0], [])
            if len(word) not in lengths:
                lengths.append(len(word))
        self.longest_prefix = max(map(len, self.prefix))

    def _add(self, entry: str, bit: int) -> None:
        if not entry:
            return
        if UNSPACED.search(entry):
            self.inside[entry] = self.inside.get(entry, 0) | bit
            return
        words = entry.split(" ")
        if len(words) > 1:
            phrase = (tuple(words[1:]), bit)
            self.phrases.setdefault(words[0], []).append(phrase)
            if words[1].endswith("*"):
                self._open.setdefault(words[0], []).append(phrase)
            else:
                self._by_pair.setdefault((words[0], words[1]), []).append(phrase)
        elif entry.endswith("*"):
            self.prefix[entry[:-1]] = self.prefix.get(entry[:-1], 0) | bit
        else:
            self.exact[entry] = self.exact.get(entry, 0) | bit

    def phrase_mask(self, words: list[str], at: int) -> int:
        """Return the classes of the phrases that begin with the word at index `at`."""
        mask = 0
        for rest, bit in self._open.get(words[at], ()):
            if phrase_matches(rest, words, at + 1):
                mask |= bit
        if at + 1 < len(words):
            for rest, bit in self._by_pair.get((words[at], words[at + 1]), ()):
                if phrase_matches(rest, words, at + 1):
                    mask |= bit
        return mask


LEXICON = _Lexicon()


@lru_cache(maxsize=16384)
def classes_of(word: str) -> int:
    """Return the bit mask of the classes of a folded word; 0 if it has none."""
    mask = LEXICON.exact.get(word, 0)
    for length in range(2, min(len(word), LEXICON.longest_prefix) + 1):
        mask |= LEXICON.prefix.get(word[:length], 0)
    if not mask:
        stripped = _ARABIC_PREFIX.sub("", word) if "\u0600" <= word[:1] <= "\u06ff" else word
        if stripped != word:
            return classes_of(stripped)
        if word.endswith(("'s", "’s")):
            return classes_of(word[:-2])
    return mask


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def any_of(words: Iterable[str]) -> str:
    """Return a pattern that matches any of the words, the longest first; shared prefixes are tried once (a trie)."""
    by_first: dict[str, set[str]] = {}
    for word in words:
        by_first.setdefault(word[:1], set()).add(word[1:])
    if set(by_first) == {""}:
        return ""
    branches = [re.escape(head) + any_of(tails) for head, tails in sorted(by_first.items()) if head]
    pattern = branches[0] if len(branches) == 1 and "" not in by_first else "(?:" + "|".join(branches) + ")"
    return pattern + "?" if "" in by_first else pattern


def phrase_matches(rest: tuple[str, ...], words: list[str], at: int) -> bool:
    """Return True if the words from index `at` on match `rest`; an item that ends in `*` matches any ending."""
    if at + len(rest) > len(words):
        return False
    for offset, expected in enumerate(rest):
        word = words[at + offset]
        if expected.endswith("*"):
            if not word.startswith(expected[:-1]):
                return False
        elif word != expected:
            return False
    return True
