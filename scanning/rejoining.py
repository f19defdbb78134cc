"""Rejoins words of a text: letters that were set apart, words cut in two, letters in the wrong order. Only words of the
vocabulary are rejoined, and only a rule that then matches blocks, so ordinary typos do no harm."""

from __future__ import annotations

import re

from scanning.views import View
from scanning.words import LEXICON, word_set

# One character, then one to three separators, at least five times: letters set apart.
_SPACED = re.compile(r"(?<![^\W_])[^\W_](?:[ .\-_*·•|/,~+]{1,3}[^\W_](?![^\W_])){4,}")
_SEPARATORS = re.compile(r"[ .\-_*·•|/,~+]+")
_CUT = re.compile(
    r"(?<=[^\W\d_])(?:- |-\n|[\"']?\s?\+\s?[\"']|[\"'];?\s{1,2}[a-z]\w?\s?=\s?[\"']|\*\*|__|~~|``"
    r"|\\|\s?\|\s?)(?=[^\W\d_])|(?<=\s)[\"'];?\s{1,2}[a-z]\w?\s?=\s?[\"']"
)
_SCRAMBLED = re.compile(r"[a-z]{5,14}")
_FUNCTION_WORDS = word_set("""
a an the i is are be to of in on at by for from with and or not no do does it its this that these those
you your me my we he she they them his her him our us as but if so up out now then than will would can
could should must may who what which how about into like likes prefers uses works lives hello world name
""")


def _known_words() -> frozenset[str]:
    words = {word for word in LEXICON.exact if word.isascii() and word.isalpha()}
    for first, rests in LEXICON.phrases.items():
        words.add(first)
        for rest, _ in rests:
            words.update(word.rstrip("*") for word in rest)
    return frozenset(word for word in words if len(word) > 2 and word.isascii() and word.isalpha()) | _FUNCTION_WORDS


WORDS = _known_words()
_LONGEST = max(map(len, WORDS))
_UNKNOWN_COST = 3
# first letter, last letter, letters between in order -> the word
_BY_LETTERS = {(word[0], word[-1], "".join(sorted(word[1:-1]))): word for word in sorted(WORDS) if 5 <= len(word) <= 14}


def word_cuts(letters: str) -> set[int]:
    """Positions where words begin in letters without spaces: the cut with the fewest words and unknown letters."""
    best: list[tuple[int, int]] = [(0, 0)]  # cost up to here, start of the last word
    for end in range(1, len(letters) + 1):
        options = [(best[end - 1][0] + _UNKNOWN_COST, end - 1)]
        for start in range(max(0, end - _LONGEST), end):
            if letters[start:end] in WORDS:
                options.append((best[start][0] + 1, start))
        best.append(min(options))
    cuts: set[int] = set()
    end = len(letters)
    if best[end][0] > len(letters):  # more than a third is unknown: these are not words
        return cuts
    while end > 0:
        end = best[end][1]
        cuts.add(end)
    return cuts - {0}


def joined_view(view: View) -> View | None:
    """Letters that were set apart joined to words; where no wider gap tells them apart, the vocabulary does."""
    letters: list[str] = []
    origin: list[int] = []
    at = 0
    for run in _SPACED.finditer(view.text):
        letters.append(view.text[at : run.start()])
        origin.extend(view.origin[at : run.start()])
        gaps = [(m.start() + run.start(), m.group()) for m in _SEPARATORS.finditer(run.group())]
        narrow = min(len(gap) for _, gap in gaps)
        wide = {where for where, gap in gaps if len(gap) > narrow}
        places = [p for p in range(run.start(), run.end()) if p in wide or not _SEPARATORS.match(view.text[p])]
        cuts = set() if wide else word_cuts("".join(view.text[p] for p in places))
        for count, place in enumerate(places):
            if count in cuts:
                letters.append(" ")
                origin.append(view.origin[place])
            letters.append(" " if place in wide else view.text[place])
            origin.append(view.origin[place])
        at = run.end()
    if not at:
        return None
    letters.append(view.text[at:])
    origin.extend(view.origin[at : len(view.text)])
    origin.append(view.origin[len(view.text)])
    return View("joined", "".join(letters), origin, view.decoded)


def rejoined_view(view: View) -> View | None:
    """Words cut in two ("re- veal", "ig" + "nore") put together; None if none is."""
    cuts = [match.span() for match in _CUT.finditer(view.text)]
    if not cuts:
        return None
    letters: list[str] = []
    origin: list[int] = []
    at = 0
    for start, end in [*cuts, (len(view.text), len(view.text))]:
        letters.append(view.text[at:start])
        origin.extend(view.origin[at:start])
        at = end
    origin.append(view.origin[len(view.text)])
    return View("mended", "".join(letters), origin, view.decoded)


def unscrambled_view(view: View) -> View | None:
    """Vocabulary words whose inner letters changed places, put right; same length. None if there are none."""
    found = False

    def right(match: re.Match[str]) -> str:
        nonlocal found
        word = match.group()
        if word in WORDS:
            return word
        known = _BY_LETTERS.get((word[0], word[-1], "".join(sorted(word[1:-1]))))
        found = found or known is not None
        return known or word

    text = _SCRAMBLED.sub(right, view.text)
    return View("unscrambled", text, view.origin, view.decoded) if found else None
