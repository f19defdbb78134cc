"""Restores words whose letters are spaced out or that are cut in two. Only words of the vocabulary are restored, and a
text is only blocked if a rule then matches, so ordinary typos do no harm."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scanning.views import View
from scanning.words import LEXICON, word_set

# Spaced-out letters: single characters with one to three separators between them, at least five.
_SPACED = re.compile(r"(?<![^\W_])[^\W_](?:[ .\-_*·•|/,~+]{1,3}[^\W_](?![^\W_])){4,}")
_SEPARATORS = re.compile(r"[ .\-_*·•|/,~+]+")
_CUT = re.compile(
    # No cut begins with a letter; this is tried first, since most characters are letters.
    r"(?=[\s\-\"'+*_~`\\|])(?:(?<=[^\W\d_])(?:- |-\n|[\"']?\s?\+\s?[\"']|[\"'];?\s{1,2}[a-z]\w?\s?=\s?[\"']|\*\*|__|~~"
    r"|``|\\|\s?\|\s?)(?=[^\W\d_])|(?<=\s)[\"'];?\s{1,2}[a-z]\w?\s?=\s?[\"'])"
)
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
_MAX_WORD = max(map(len, WORDS))
_UNKNOWN_COST = 3


def word_cuts(letters: str) -> set[int]:
    """Return the positions where words begin in letters without spaces, for the split with the fewest words and unknown
    letters."""
    best: list[tuple[int, int]] = [(0, 0)]  # cost up to here, start of the last word
    for end in range(1, len(letters) + 1):
        options = [(best[end - 1][0] + _UNKNOWN_COST, end - 1)]
        for start in range(max(0, end - _MAX_WORD), end):
            if letters[start:end] in WORDS:
                options.append((best[start][0] + 1, start))
        best.append(min(options))
    cuts: set[int] = set()
    end = len(letters)
    if best[end][0] > len(letters):  # more than a third is unknown, so these are not words
        return cuts
    while end > 0:
        end = best[end][1]
        cuts.add(end)
    return cuts - {0}


def joined_view(view: View) -> View | None:
    """Return the view with spaced-out letters joined to words, or None if there are none. Wider gaps, or else the
    vocabulary, determine the word boundaries."""
    edits = [edit for run in _SPACED.finditer(view.text) for edit in _gap_edits(run)]
    return view.edited(edits) if edits else None


def _gap_edits(run: re.Match[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the edits that close the gaps in a run of letters, keeping a space at word boundaries."""
    gaps = [(gap.start() + run.start(), len(gap.group())) for gap in _SEPARATORS.finditer(run.group())]
    narrow = min(length for _, length in gaps)
    wide = {at for at, length in gaps if length > narrow}
    cuts = set() if wide else word_cuts(_SEPARATORS.sub("", run.group()))
    letters = 0
    for at in range(*run.span()):
        if at in wide:
            yield at, at + 1, " "
        elif _SEPARATORS.match(run.string[at]):
            yield at, at + 1, ""
        else:
            if letters in cuts:
                yield at, at, " "
            letters += 1


def rejoined_view(view: View) -> View | None:
    """Return the view with cut words joined ("re- veal", "ig" + "nore"), or None if there are none."""
    cuts = [(*cut.span(), "") for cut in _CUT.finditer(view.text)]
    return view.edited(cuts) if cuts else None
