"""Views of words in which letters are replaced: look-alikes of other scripts, digits for letters, scrambled letters.

Rules match where such a word becomes one that they know, or where a word mixes scripts, so a view has only the
sentences around these words. Most texts have none: "three" has the letters of "there", and "3pm" has a digit for a
letter, but neither is a disguise."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scanning import secret_words
from scanning.characters import LOOKALIKES, script_of
from scanning.rejoining import WORDS
from scanning.views import View
from scanning.words import classes_of, entries_of

_LOOKALIKES = str.maketrans({char: letters[0] for char, letters in LOOKALIKES.items()})
_FOREIGN = re.compile(f"[{''.join(char for char in LOOKALIKES if script_of(char) != 'LATIN')}]")
_LATIN = re.compile("[a-z]")
_SMALL_CAPITALS = re.compile("[ʟɴʀʏʜʙɢꜱᴀ-ᴢ]")  # of phonetic scripts; hardly any language writes words with them
# "three" is an ordinary word, and far more often so than a scrambled "there".
_SCRAMBLED = re.compile(r"(?!three\b)[a-z]{5,14}")
# (first letter, last letter, sorted inner letters) -> word
_BY_LETTERS = {(word[0], word[-1], "".join(sorted(word[1:-1]))): word for word in sorted(WORDS) if 5 <= len(word) <= 14}
_LEET = (str.maketrans("0134578@$!|", "oleastbasil"), str.maketrans("0134578@$!|", "oieastbasil"))
_LEET_PAIR = re.compile(r"[a-z][013457@$!]|[013457@$!][a-z]")
_MIN_LEET_PAIRS = 3
# Words that announce a secret, with digits or symbols for some letters. One such word is enough to disguise a label.
_LEET_LABEL = re.compile(
    r"(?<![^\W_])(?:p[a4@][s5$]{2}(?:[_-]?(?:w[o0]rd|c[o0]d[e3]|phr[a4@][s5$][e3])|wd)|[a4@]p[i1!][_ -]?k[e3]y"
    r"|s[e3]cr[e3]t|t[o0]k[e3]n|p[i1!]n)(?![^\W_])"
)
_LEET_LABEL_TABLE = str.maketrans("01345@$!", "oieasasi")
_LABEL_WORDS = frozenset(
    word
    for source in (secret_words.PASSWORDS, secret_words.PINS, secret_words.KEYS)
    for entry in entries_of(source)
    for word in entry.split()
)
_WORD = re.compile("[a-z]{2,}")
_AROUND = 600
"""Minimum number of characters before and after a word that a view has. No pattern is longer, except for that of a
persona's prompt."""
_MAX_SENTENCE = 2000


def respelled_views(plain: View) -> Iterator[View]:
    """Yield the views of a folded view's disguised words, each with the sentences around them."""
    text = plain.text
    if not text.isascii():
        yield from _passages(plain, text.translate(_LOOKALIKES))
    yield from _passages(plain, _SCRAMBLED.sub(_unscrambled, text))
    yield from _passages(plain, _LEET_LABEL.sub(lambda label: label[0].translate(_LEET_LABEL_TABLE), text))
    if len(_LEET_PAIR.findall(text)) >= _MIN_LEET_PAIRS:
        for table in _LEET:
            yield from _passages(plain, text.translate(table))


def _unscrambled(match: re.Match[str]) -> str:
    word = match.group()
    return word if word in WORDS else _BY_LETTERS.get((word[0], word[-1], "".join(sorted(word[1:-1]))), word)


def _passages(plain: View, text: str) -> Iterator[View]:
    """Yield a view of each passage of `text`, a respelling of the same length, that has a word in disguise."""
    if text == plain.text:
        return
    start = end = 0
    for word in _WORD.finditer(text):
        old = plain.text[word.start() : word.end()]
        if old == word.group() or not _is_disguised(old, word.group()):
            continue
        if word.start() - _AROUND >= end:
            if end:
                yield View(text[start:end], plain.origin[start : end + 1], plain.decoded)
            start = _sentence_start(text, word.start() - _AROUND)
        end = _sentence_end(text, word.end() + _AROUND)
    if end:
        yield View(text[start:end], plain.origin[start : end + 1], plain.decoded)


def _is_disguised(old: str, new: str) -> bool:
    """Return True if a respelled word means something to the rules that it did not before, or mixes scripts."""
    if _SMALL_CAPITALS.search(old) or (_FOREIGN.search(old) and _LATIN.search(old)):
        return True
    if len(new) < 4:
        return len(new) == 3 and new in _LABEL_WORDS
    return new in WORDS or new in _LABEL_WORDS or bool(classes_of(new) & ~classes_of(old))


def _sentence_start(text: str, at: int) -> int:
    """Return the position of the stop before `at`, or of `at` itself if there is none near."""
    first = max(0, at - _MAX_SENTENCE)
    stop = max(text.rfind("\n", first, max(at, 0)), text.rfind(". ", first, max(at, 0)))
    return stop if stop >= 0 else first and at


def _sentence_end(text: str, at: int) -> int:
    """Return the position after the stop behind `at`, or `at` itself if there is none near."""
    last = min(len(text), at + _MAX_SENTENCE)
    stops = [stop for mark in ("\n", ". ") if (stop := text.find(mark, at, last)) >= 0]
    return min(stops) + 1 if stops else last if last == len(text) else at
