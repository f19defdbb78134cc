"""Splits a view into sentences and tags every word with its classes.
Rules then only check whether words of certain classes are near each other in a sentence, which takes linear time and
works for every language in the vocabulary."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from scanning.views import View
from scanning.words import BIT, LEXICON, UNSPACED, classes_of, word_set

# Vowel signs of Indic scripts are not letters for `re`, but belong to words.
LETTERS = (
    "(?:[^\\W_\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7af]++"
    "|[\u0900-\u0963\u0971-\u0dff])++"
)
PLAIN = r"(?P<plain>[a-z]++(?=[ ,\n]))"
"""Most words: these are no part of an address, so that its patterns need not be tried."""
ADDRESS = (
    r"(?P<url>(?:[a-z][a-z0-9+.\-]{1,10}://|www\.)[^\s<>\"'`)\]，。]{2,})"
    r"|(?P<email>[\w.+\-]{1,64}@[\w\-]{1,63}(?:\.[\w\-]{1,63}){0,5})"
)
_TOKEN = re.compile(
    rf"{PLAIN}|{ADDRESS}"
    r"|(?P<address>(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?![\d.]))"
    r"|(?P<host>(?:[a-z0-9\-]{1,40}\.){1,4}(?:com|net|org|io|ru|cn|biz|info|example|test|invalid|xyz|top"
    r"|site|dev|app|co|ai|me|cc|tk|onion)(?![\w.]{0,40}\())"
    rf"|(?P<word>\.?{LETTERS}(?:['’.\-]{LETTERS}){{0,4}})"
    f"|(?P<run>{UNSPACED.pattern})"
    r"|(?P<stop>[!?;。！？；؛؟।…]+|(?<!\.)\.++(?=\s|$)|\n+|[\"”»)]\.)"
)
_SHAPES = {"url": BIT["URL"], "email": BIT["EMAIL"], "host": BIT["HOST"], "address": BIT["HOST"]}


@dataclass(slots=True)
class Sentence:
    """The words of a sentence: their positions in the view, their texts, and the bit masks of their classes."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    masks: list[int] = field(default_factory=list)
    union: int = 0

    def add(self, start: int, end: int, word: str, mask: int) -> None:
        self.starts.append(start)
        self.ends.append(end)
        self.words.append(word)
        self.masks.append(mask)

    def alone(self, text: str) -> tuple[str, list[Sentence]]:
        """Return the text of the sentence, and the sentence with positions in that text."""
        begin, end = self.starts[0], self.ends[-1]
        starts, ends = [start - begin for start in self.starts], [end - begin for end in self.ends]
        return text[begin:end], [Sentence(starts, ends, self.words, self.masks, self.union)]


def sentences_of(view: View) -> list[Sentence]:
    """Return the sentences of a folded view, with the classes of words and phrases."""
    sentences: list[Sentence] = []
    current = Sentence()
    for match in _TOKEN.finditer(view.text):
        kind = match.lastgroup or ""
        if kind == "stop":
            if current.words:
                sentences.append(current)
                current = Sentence()
        elif kind == "run":
            _add_run(current, match.group(), match.start())
        elif kind == "plain":
            word = match.group()
            current.add(match.start(), match.end(), word, classes_of(word))
        elif kind == "word":
            word = match.group().replace("’", "'")
            current.add(match.start(), match.end(), word, _word_mask(word))
        else:
            current.add(match.start(), match.end(), match.group(), _SHAPES[kind])
    if current.words:
        sentences.append(current)
    for sentence in sentences:
        _mark_phrases(sentence)
    return sentences


def _word_mask(word: str) -> int:
    mask = classes_of(word)
    if not mask and ("-" in word or "." in word or "'" in word):
        for part in re.split(r"[-.']", word):
            mask |= classes_of(part)
    return mask


def _add_run(sentence: Sentence, run: str, start: int) -> None:
    """Add the words of a run in a script without spaces: all known words at each position; they may overlap."""
    for at, first in enumerate(run):
        mask = longest = 0
        for length in LEXICON.lengths_inside.get(first, ()):
            known = LEXICON.inside.get(run[at : at + length], 0)
            if known and at + length <= len(run):
                mask, longest = mask | known, length
        if mask:
            sentence.add(start + at, start + at + longest, run[at : at + longest], mask)


# "User" before these words denotes a thing, not a person.
_USER_NOUNS = word_set("""
interface menu id ids manual guide story stories research base experience agent table name names group groups
input flow
""")
_PERSON = BIT["USER"] | BIT["ONE_USER"]


def _mark_phrases(sentence: Sentence) -> None:
    union = 0
    words, masks = sentence.words, sentence.masks
    for at, word in enumerate(words):
        if word in LEXICON.phrases:
            masks[at] |= LEXICON.phrase_mask(words, at)
        if masks[at] & _PERSON and words[at + 1 : at + 2] and words[at + 1] in _USER_NOUNS:
            masks[at] &= ~_PERSON
        union |= masks[at]
    sentence.union = union
