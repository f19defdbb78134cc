"""The features of a message: for each sentence its words, form, position and neighbours.

Features are strings, which are hashed to indexes of one table; the text is not kept. All operations are linear in the
text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

from scanning.words import word_set

Span = tuple[int, int]

BITS = 18
"""The table has 2 ** BITS entries."""
MAX_SENTENCES = 1000
"""Sentences of a message that are examined."""
MAX_SENTENCE_CHARS = 600
"""Characters of a sentence that are examined. Limited since its words are features of its neighbours, too, and those of
the outer lines are features of every sentence."""

_CUT = re.compile(r"(?<=[.!?…:;])[\"”’)\]]*[ \t]+|(?<=[。！？：])|\n+")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
_FIRST_PERSON = word_set(
    "i i'm i've i'll i'd im ive me my mine myself ich mir mich mein meine meinen meinem meiner meins je j'ai mon ma mes"
    " moi yo mi mis mí eu meu minha meus minhas io mio mia miei mie ik mijn mij jag min mitt mina jeg mit mine ja mój"
    " moja moje mnie ben benim bana я мне меня мой моя мои моё"
)
_FIRST_PLURAL = word_set(
    "we us our ours we're we'll we've wir uns unser unsere unserem unseren nous notre nos nosotros nosotras nuestro"
    " nuestra nuestros noi nostro nostra nostri wij ons onze nós nossa nosso nasz nasza nam мы нам нас наш наша vi vår"
    " vores biz bizim"
)
_SECOND_PERSON = word_set(
    "you your yours you're you'll you've u ur du dir dich dein deine deinen sie ihr ihre ihren ihnen euch vous votre"
    " vos tu te ton ta tes usted ustedes su sus lei voi vostro vostra jij jou jouw uw você vocês seu sua ty państwo pan"
    " pani вы вам вас ваш ваша ты тебе sen siz size"
)
_PERSONS = (("I", _FIRST_PERSON), ("we", _FIRST_PLURAL), ("you", _SECOND_PERSON))
_SIGN_NAMES = {
    "?": "question",
    "’": "curly",
    "'": "straight",
    "!": "exclaims",
    "(": "paren",
    "/": "slash",
    "—": "em",
    "–": "en",
}
_SHAPES = {
    "address": re.compile(r"https?://|www\.|@\w"),
    "money": re.compile(r"[€$£¥]|\b(?:EUR|USD|GBP)\b"),
    "clock": re.compile(r"\d{1,2}[:.h]\d\d"),
    "emoji": re.compile("[\U0001f300-\U0001faff\u2600-\u27bf]"),
    "digit": re.compile(r"\d"),
}
_LENGTHS = (5, 15, 30, 60, 100, 150, 250)
_CAPITALS = (0.01, 0.15, 0.3, 0.6)
_SHARES = (0.01, 0.15, 0.3, 0.5, 0.8)
_NEIGHBOUR_FORMS = ("length", "last", "lower", "upper", "question", "I", "you", "we0", "first")
"""Prefixes of the forms of neighbours that are features of a sentence."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence or line: its position, form, and words in lower case. `line_gap` is the number of line breaks before
    it, at most 3."""

    start: int
    end: int
    form: tuple[str, ...]
    words: tuple[str, ...]
    line_gap: int

    @property
    def starts_lowercase(self) -> bool:
        """True if it begins with a lower-case letter."""
        return "lower" in self.form

    @property
    def ends_sentence(self) -> bool:
        """True if it ends with a full stop, exclamation mark or question mark."""
        return not {"last.", "last!", "last?"}.isdisjoint(self.form)

    @property
    def ends_with_colon(self) -> bool:
        """True if it ends with a colon."""
        return not {"last:", "last："}.isdisjoint(self.form)

    @property
    def uses_first_person(self) -> bool:
        """True if it contains a first-person singular word."""
        return "I0" not in self.form


def sentences_of(text: str) -> list[Sentence]:
    """Return the first MAX_SENTENCES non-blank sentences and lines of a message."""
    found: list[Sentence] = []
    at = end = 0
    for cut in _CUT.finditer(text):
        if text[at : cut.start()].strip():
            found.append(_sentence(text, at, cut.start(), end if found else -1))
            end = cut.start()
            if len(found) == MAX_SENTENCES:
                return found
        at = cut.end()
    if text[at:].strip():
        found.append(_sentence(text, at, len(text), end if found else -1))
    return found


def _sentence(text: str, start: int, end: int, before: int) -> Sentence:
    content = text[start:end].strip()[:MAX_SENTENCE_CHARS]
    original = _WORD.findall(content)
    words = [word.casefold().replace("’", "'") for word in original]
    runs = _UNSPACED.findall(content)
    line_gap = min(3, text.count("\n", before, start)) if before >= 0 else 2
    form = tuple(_form(content, original, words))
    return Sentence(start, end, form, (*words, *runs, *map("".join, pairwise(runs))), line_gap)


def _form(text: str, original: Sequence[str], words: Sequence[str]) -> Iterator[str]:
    capitals = sum(word[0].isupper() for word in original[1:]) / max(1, len(original) - 1)
    yield f"length{_step(len(text), _LENGTHS)}"
    yield "lower" if text[0].islower() else "upper" if text[0].isupper() else "neither"
    yield f"first{'d' if text[0].isdigit() else '' if text[0].isalnum() else text[0]}"
    yield f"last{'' if text[-1].isalnum() else text[-1]}"
    yield f"capitals{_step(capitals, _CAPITALS)}"
    for name, persons in _PERSONS:
        yield f"{name}{min(2, sum(word in persons for word in words))}"
    yield from (name for sign, name in _SIGN_NAMES.items() if sign in text)
    yield from (name for name, shape in _SHAPES.items() if shape.search(text))
    if len(original) > 1 and text.isupper():
        yield "shouted"
    if "i" in original:
        yield "small i"


def places_of(sentences: Sequence[Sentence]) -> list[set[int]]:
    """Return the table indexes of each sentence's features."""
    if not sentences:
        return []
    paragraphs = _paragraphs(sentences)
    message = _hashed(_of_message(sentences, paragraphs[-1] + 1))
    first_line, last_line = _outer_lines(sentences)
    lead = _hashed(f"lead:{feature}" for at in {0, first_line - 1} for feature in _shown(sentences[at]))
    last = {*sentences[last_line:][:1], sentences[-1]}
    tail = _hashed(f"tail:{feature}" for sentence in last for feature in _shown(sentence))
    found = []
    for at, sentence in enumerate(sentences):
        own = [*_shown(sentence), *(f"begins {word}" for word in sentence.words[:1])]
        around = [*_neighbours(sentences, at), *_place(sentences, at, paragraphs)]
        before = lead if at >= first_line else _hashed([f"lead {at > 0}"])
        after = tail if at < last_line else _hashed([f"tail {at < len(sentences) - 1}"])
        found.append(_hashed([*own, *around]) | message | before | after)
    return found


def _hashed(features: Iterable[str]) -> set[int]:
    return {crc32(feature.encode("utf-8", "surrogatepass")) & ((1 << BITS) - 1) for feature in features}


def _outer_lines(sentences: Sequence[Sentence]) -> tuple[int, int]:
    """Return the number of sentences in the first line, and the index of the first sentence of the last line (or the
    number of sentences if there is one line). A colon ends the first line, too. Comments on a pasted text are usually
    in these lines."""
    breaks = [at for at in range(1, len(sentences)) if sentences[at].line_gap]
    first = breaks[0] if breaks else len(sentences)
    colon = next((at + 1 for at in range(first) if sentences[at].ends_with_colon), first)
    return min(first, colon), breaks[-1] if breaks else len(sentences)


def _shown(sentence: Sentence) -> list[str]:
    return [*sentence.form, *(f"={word}" for word in sentence.words)]


def _paragraphs(sentences: Sequence[Sentence]) -> list[int]:
    """Return the paragraph number of each sentence; blank lines separate paragraphs."""
    number, found = -1, []
    for sentence in sentences:
        number += sentence.line_gap >= 2
        found.append(number)
    return found


def _of_message(sentences: Sequence[Sentence], paragraphs: int) -> list[str]:
    count = max(1, len(sentences))
    shares = {
        "small": sum(sentence.starts_lowercase for sentence in sentences) / count,
        "ended": sum(sentence.ends_sentence for sentence in sentences) / count,
        "selves": sum(sentence.uses_first_person for sentence in sentences) / count,
    }
    sizes = [f"paragraphs{_step(paragraphs, (2, 3, 4, 6, 10))}", f"sentences{_step(count, (2, 3, 4, 6, 10, 20, 40))}"]
    return sizes + [f"{name}{_step(share, _SHARES)}" for name, share in shares.items()]


def _neighbours(sentences: Sequence[Sentence], at: int) -> Iterator[str]:
    for offset in (-2, -1, 1, 2):
        if not 0 <= at + offset < len(sentences):
            yield f"{offset}:none"
            continue
        other = sentences[at + offset]
        yield from (f"{offset}:{form}" for form in other.form if form.startswith(_NEIGHBOUR_FORMS))
        if abs(offset) == 1:
            yield from (f"{offset}={word}" for word in other.words)


def _place(sentences: Sequence[Sentence], at: int, paragraphs: Sequence[int]) -> Iterator[str]:
    sentence, first, last = sentences[at], sentences[0], len(sentences) - 1
    yield f"below{sentence.line_gap}"
    if at:
        if sentences[at - 1].ends_with_colon:
            yield f"colon{sentence.line_gap}"
        yield f"small{sentence.starts_lowercase}{first.starts_lowercase}"
        yield f"ends{sentence.ends_sentence}{first.ends_sentence}"
    yield f"from start {min(at, 4)}"
    yield f"from end {min(last - at, 4)}"
    yield f"paragraph {min(paragraphs[at], 3)}"
    yield f"paragraph from end {min(paragraphs[-1] - paragraphs[at], 3)}"


def _step(value: float, steps: Sequence[float]) -> int:
    return sum(value >= step for step in steps)
