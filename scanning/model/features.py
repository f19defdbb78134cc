"""The features of a text: words, runs of letters, word classes, and pairs of words and of classes.

Links, addresses and numbers are masked, so that the model cannot learn domains or amounts from the training rows. Words
and letters are hashed, with the same result in every process and without keeping the text. All operations work on whole
arrays and are linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scanning.sentences import ADDRESS, LETTERS, PLAIN, Sentence
from scanning.words import BIT, UNSPACED

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Hashes = NDArray[np.uint64]

WORDS_BITS: Final = 20
LETTERS_BITS: Final = 19
CLASSES: Final = len(BIT)
SIZES: Final = (1 << WORDS_BITS, 1 << LETTERS_BITS, CLASSES + CLASSES * CLASSES)
"""Size of the table of each block: words, letters, classes."""
_PLACE_BITS: Final = sum(SIZES).bit_length()
SHRINK: Final = (300.0, 900.0, 300.0)
"""Added to the number of a block's occurrences when it is averaged, since a text of five words means little."""
_MAX_DISTANCE: Final = 4
"""Maximum distance of the words in a pair."""
_MAX_CLASS_DISTANCE: Final = 8
_RUN_LENGTHS: Final = (3, 4, 5)
"""Lengths of runs of letters. A run may begin or end with the gap between two words, but not cross it."""

_TOKEN: Final = re.compile(
    rf"{PLAIN}|{ADDRESS}"
    r"|(?P<host>(?<![\w.])(?:[a-z0-9\-]{1,40}\.){1,4}[a-z]{2,12}(?:/[^\s<>\"'`)\]，。]{0,200})?)"
    rf"|(?P<run>{UNSPACED.pattern})"
    rf"|(?P<word>{LETTERS}(?:['’]{LETTERS})*)"
    r"|(?P<sign>[!?:{}<>*#\"“”„«»`=/])"
)
_MASKS: Final = {"url": "\ue000", "host": "\ue000", "email": "\ue001"}
_DIGITS: Final = re.compile(r"\d+")

_FACTOR: Final = 0x9E3779B97F4A7C15 | 1
_INVERSE: Final = pow(_FACTOR, -1, 1 << 64)


@dataclass(frozen=True, slots=True)
class Occurrences:
    """One block: the index of every occurrence in the block's table, and its position in the text."""

    places: Numbers
    at: Numbers


def occurrences(text: str, sentences: Sequence[Sentence]) -> tuple[Occurrences, Occurrences, Occurrences]:
    """Return the three blocks of a folded text and its sentences."""
    tokens, starts = _tokens(text)
    words, letters = _hashed(tokens, np.array(starts, dtype=np.int64))
    return words, letters, _classes(sentences)


def distinct(block: Occurrences, part_of: Numbers) -> tuple[Numbers, Numbers]:
    """Return each index of a block once per part of the text, so that repetitions do not count more, and its part.
    `part_of` has the part of each occurrence. The result is sorted by part."""
    pairs = np.sort(part_of << _PLACE_BITS | block.places)
    first = np.ones(len(pairs), dtype=np.bool_)
    first[1:] = pairs[1:] != pairs[:-1]
    pairs = pairs[first]
    return pairs & ((1 << _PLACE_BITS) - 1), pairs >> _PLACE_BITS


def sentence_begins(sentences: Sequence[Sentence]) -> Numbers:
    """Return the position of the first word of each sentence; 0 for a text without sentences."""
    return np.array([sentence.starts[0] for sentence in sentences] or [0], dtype=np.int64)


def sentence_of(at: Numbers, begins: Numbers) -> Numbers:
    """Return the number of the sentence at each position. What precedes the first sentence belongs to it."""
    return np.maximum(np.searchsorted(begins, at, side="right") - 1, 0)


def _tokens(text: str) -> tuple[list[str], list[int]]:
    """Return the masked words of a text and their positions; in scripts without spaces, each letter is a word."""
    tokens: list[str] = []
    starts: list[int] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind == "plain":
            tokens.append(match.group())
            starts.append(match.start())
        elif kind == "run":
            tokens.extend(match.group())
            starts.extend(range(match.start(), match.end()))
        else:
            tokens.append(_MASKS.get(kind) or _DIGITS.sub("0", match.group()))
            starts.append(match.start())
    return tokens, starts


def _hashed(tokens: list[str], starts: Numbers) -> tuple[Occurrences, Occurrences]:
    joined = " " + " ".join(tokens) + " "
    chars = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    lengths = np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens))
    ends = np.cumsum(lengths + 1)
    # A rolling hash: the sum over a span, shifted back to its start, depends only on the span: one subtraction each.
    size = len(chars)
    powers = np.cumprod(np.full(size, _FACTOR, dtype=np.uint64))
    back = np.cumprod(np.full(size, _INVERSE, dtype=np.uint64))
    sums = np.zeros(size + 1, dtype=np.uint64)
    np.cumsum(chars * powers, out=sums[1:])
    hashes = _mixed((sums[ends] - sums[ends - lengths]) * back[ends - lengths])
    words = _word_pairs(hashes, starts)
    if not len(tokens):
        return words, Occurrences(starts, starts)
    token_of = np.zeros(size, dtype=np.int64)
    token_of[ends[:-1] + 1] = 1
    at = starts[np.cumsum(token_of)]
    gaps = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(chars == ord(" "), out=gaps[1:])
    places, positions = [], []
    for length in _RUN_LENGTHS:
        first = np.arange(max(size - length + 1, 0))
        first = first[gaps[first + length - 1] == gaps[first + 1]]
        runs = (sums[first + length] - sums[first]) * back[first]
        places.append(_places(runs, length, LETTERS_BITS))
        positions.append(at[first])
    return words, Occurrences(np.concatenate(places), np.concatenate(positions))


def _word_pairs(hashes: Hashes, starts: Numbers) -> Occurrences:
    """Return words and ordered pairs of words; adjacent pairs differ from pairs further apart."""
    places = [_places(hashes, 1, WORDS_BITS)]
    at = [starts]
    for distance in range(1, _MAX_DISTANCE + 1):
        pairs = _mixed(hashes[:-distance] * np.uint64(3)) + hashes[distance:]
        places.append(_places(pairs, 2 if distance == 1 else 3, WORDS_BITS))
        at.append(starts[: len(pairs)])
    return Occurrences(np.concatenate(places), np.concatenate(at))


def _classes(sentences: Sequence[Sentence]) -> Occurrences:
    """Return word classes, and ordered pairs of classes near each other in a sentence."""
    found = [_classes_of(mask) for sentence in sentences for mask in sentence.masks]
    counts = np.fromiter(map(len, found), dtype=np.int64, count=len(found))
    classes = np.fromiter(chain.from_iterable(found), dtype=np.int64, count=int(counts.sum()))
    starts = np.fromiter((start for sentence in sentences for start in sentence.starts), dtype=np.int64)
    # The numbers leave gaps between sentences, so that no pair extends into the next sentence.
    numbers = np.fromiter(_word_numbers(sentences), dtype=np.int64, count=len(found))
    word, at = np.repeat(numbers, counts), np.repeat(starts, counts)
    begins = np.searchsorted(word, word, side="right")
    near = np.searchsorted(word, word + _MAX_CLASS_DISTANCE, side="right") - begins
    first = np.repeat(np.arange(len(word)), near)
    second = np.arange(len(first)) + np.repeat(begins - np.cumsum(near) + near, near)
    pairs = CLASSES + classes[first] * CLASSES + classes[second]
    return Occurrences(np.concatenate([classes, pairs]), np.concatenate([at, at[first]]))


def _word_numbers(sentences: Sequence[Sentence]) -> Iterator[int]:
    number = 0
    for sentence in sentences:
        yield from range(number, number + len(sentence.masks))
        number += len(sentence.masks) + _MAX_CLASS_DISTANCE


@lru_cache(maxsize=4096)
def _classes_of(mask: int) -> tuple[int, ...]:
    return tuple(place for place in range(CLASSES) if mask >> place & 1)


def _mixed(hashes: Hashes) -> Hashes:
    hashes = (hashes ^ (hashes >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    return hashes ^ (hashes >> np.uint64(29))


def _places(hashes: Hashes, kind: int, bits: int) -> Numbers:
    salted = _mixed(hashes + np.uint64(kind * 0x632BE59BD9B4E019 & (1 << 64) - 1))
    return (salted >> np.uint64(64 - bits)).astype(np.int64)
