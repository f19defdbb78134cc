"""What the score reads of a text, as numbers: words, runs of letters, word classes, and pairs of them.

Links, addresses and numbers are masked, so that no domain or amount of the training rows is remembered. Words and
letters are hashed, which is the same in every process and keeps nothing of the text. All work is done on whole arrays
and is linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scanning.sentences import LETTERS, Sentence
from scanning.words import BIT, UNSPACED

Numbers = NDArray[np.int64]
Hashes = NDArray[np.uint64]

WORDS_BITS: Final = 19
LETTERS_BITS: Final = 19
CLASSES: Final = len(BIT)
SIZES: Final = (1 << WORDS_BITS, 1 << LETTERS_BITS, CLASSES + CLASSES * CLASSES)
"""Places in the table of each block: words, letters, classes."""
SHRINK: Final = (300.0, 900.0, 300.0)
"""Occurrences that are added to a block's own when it is averaged: a text of five words says little."""
_APART: Final = 4
"""Words between which a pair is looked at."""
_CLASSES_APART: Final = 8
_RUNS: Final = (3, 4, 5)
"""Lengths of runs of letters; a run may begin or end with the gap between two words, but not cross it."""

_TOKEN: Final = re.compile(
    r"(?P<url>(?:[a-z][a-z0-9+.\-]{1,10}://|www\.)[^\s<>\"'`)\]，。]{2,})"
    r"|(?P<email>[\w.+\-]{1,64}@[\w\-]{1,63}(?:\.[\w\-]{1,63}){0,5})"
    r"|(?P<host>(?<![\w.])(?:[a-z0-9\-]{1,40}\.){1,4}[a-z]{2,12}(?:/[^\s<>\"'`)\]，。]{0,200})?)"
    rf"|(?P<run>{UNSPACED.pattern})"
    rf"|(?P<word>(?:{LETTERS})+(?:['’](?:{LETTERS})+)*)"
    r"|(?P<sign>[!?:{}<>*#\"“”„«»`=/])"
)
_MASKS: Final = {"url": "\ue000", "host": "\ue000", "email": "\ue001"}
_DIGITS: Final = re.compile(r"\d+")

_FACTOR: Final = 0x9E3779B97F4A7C15 | 1
_INVERSE: Final = pow(_FACTOR, -1, 1 << 64)


@dataclass(frozen=True, slots=True)
class Occurrences:
    """One block: the place of every occurrence in the block's table, and the character of the text where it begins."""

    places: Numbers
    at: Numbers


def occurrences(text: str, sentences: Sequence[Sentence]) -> tuple[Occurrences, Occurrences, Occurrences]:
    """Return the three blocks of a folded text and its sentences."""
    tokens, starts = _tokens(text)
    words, letters = _hashed(tokens, np.array(starts, dtype=np.int64))
    return words, letters, _classes(sentences)


def distinct(block: Occurrences, step: int) -> Occurrences:
    """Return each place of a block once for every `step` characters: who repeats a sentence says no more."""
    order = np.lexsort((block.at, block.places, steps := block.at // step))
    places, steps = block.places[order], steps[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (places[1:] != places[:-1]) | (steps[1:] != steps[:-1])
    return Occurrences(places[first], block.at[order][first])


def _tokens(text: str) -> tuple[list[str], list[int]]:
    """Return the masked words of a text and where they begin; scripts without spaces letter by letter."""
    tokens: list[str] = []
    starts: list[int] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind == "run":
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
    # The sum over a span, shifted back to its start, is a hash of the span alone: every span costs one subtraction.
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
    places, where = [], []
    for length in _RUNS:
        first = np.arange(max(size - length + 1, 0))
        first = first[gaps[first + length - 1] == gaps[first + 1]]
        runs = (sums[first + length] - sums[first]) * back[first]
        places.append(_places(runs, length, LETTERS_BITS))
        where.append(at[first])
    return words, Occurrences(np.concatenate(places), np.concatenate(where))


def _word_pairs(hashes: Hashes, starts: Numbers) -> Occurrences:
    """Words, and pairs of words: neighbours by their order and place, those further apart by their order."""
    places = [_places(hashes, 1, WORDS_BITS)]
    at = [starts]
    for apart in range(1, _APART + 1):
        pairs = _mixed(hashes[:-apart] * np.uint64(3)) + hashes[apart:]
        places.append(_places(pairs, 2 if apart == 1 else 3, WORDS_BITS))
        at.append(starts[: len(pairs)])
    return Occurrences(np.concatenate(places), np.concatenate(at))


def _classes(sentences: Sequence[Sentence]) -> Occurrences:
    """Word classes, and ordered pairs of classes near each other in one sentence."""
    found = [_classes_of(mask) for sentence in sentences for mask in sentence.masks]
    counts = np.fromiter(map(len, found), dtype=np.int64, count=len(found))
    classes = np.fromiter(chain.from_iterable(found), dtype=np.int64, count=int(counts.sum()))
    starts = np.fromiter((start for sentence in sentences for start in sentence.starts), dtype=np.int64)
    # Sentences stand so far apart that no pair reaches from one into the next.
    numbers = np.fromiter(_spaced(sentences), dtype=np.int64, count=len(found))
    word, at = np.repeat(numbers, counts), np.repeat(starts, counts)
    places, where = [classes], [at]
    for shift in range(1, len(classes)):
        apart = word[shift:] - word[:-shift]
        near = (apart > 0) & (apart <= _CLASSES_APART)
        if apart.min() > _CLASSES_APART:
            break
        places.append(CLASSES + classes[:-shift][near] * CLASSES + classes[shift:][near])
        where.append(at[:-shift][near])
    return Occurrences(np.concatenate(places), np.concatenate(where))


def _spaced(sentences: Sequence[Sentence]) -> Iterator[int]:
    number = 0
    for sentence in sentences:
        yield from range(number, number + len(sentence.masks))
        number += len(sentence.masks) + _CLASSES_APART


@lru_cache(maxsize=4096)
def _classes_of(mask: int) -> tuple[int, ...]:
    return tuple(place for place in range(CLASSES) if mask >> place & 1)


def _mixed(hashes: Hashes) -> Hashes:
    hashes = (hashes ^ (hashes >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    return hashes ^ (hashes >> np.uint64(29))


def _places(hashes: Hashes, kind: int, bits: int) -> Numbers:
    salted = _mixed(hashes + np.uint64(kind * 0x632BE59BD9B4E019 & (1 << 64) - 1))
    return (salted >> np.uint64(64 - bits)).astype(np.int64)
