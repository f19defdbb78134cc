"""What the model reads of a message: its sentences, and for each of them words, form, place and neighbours.

Features are strings, which are hashed to places of one table; nothing of the text is kept. All work is linear in the
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
"""Of the size of the table."""
MOST_SENTENCES = 1000
"""Sentences of a message that are looked at."""
LONGEST = 600
"""Characters of a sentence that are looked at: its neighbours are told its words, and all are told the outer lines."""

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
_SIGNS = {
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
_AROUND = ("length", "last", "lower", "upper", "question", "I", "you", "we0", "first")
"""Forms of a neighbour that are told to a sentence."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, or a line: where it stands, its form, its words in lower case, and how many lines it is below the one
    before it (3 at most)."""

    start: int
    end: int
    form: tuple[str, ...]
    words: tuple[str, ...]
    below: int

    @property
    def begins_small(self) -> bool:
        """Whether it begins with a lower-case letter."""
        return "lower" in self.form

    @property
    def ends(self) -> bool:
        """Whether it ends as sentences do."""
        return not {"last.", "last!", "last?"}.isdisjoint(self.form)

    @property
    def announces(self) -> bool:
        """Whether it ends with a colon."""
        return not {"last:", "last："}.isdisjoint(self.form)

    @property
    def is_of_itself(self) -> bool:
        """Whether its writer speaks of themselves."""
        return "I0" not in self.form


def sentences_of(text: str) -> list[Sentence]:
    """Return the first MOST_SENTENCES sentences and lines of a message that are not blank."""
    found: list[Sentence] = []
    at = end = 0
    for cut in _CUT.finditer(text):
        if text[at : cut.start()].strip():
            found.append(_sentence(text, at, cut.start(), end if found else -1))
            end = cut.start()
            if len(found) == MOST_SENTENCES:
                return found
        at = cut.end()
    if text[at:].strip():
        found.append(_sentence(text, at, len(text), end if found else -1))
    return found


def _sentence(text: str, start: int, end: int, before: int) -> Sentence:
    said = text[start:end].strip()[:LONGEST]
    written = _WORD.findall(said)
    words = [word.casefold().replace("’", "'") for word in written]
    runs = _UNSPACED.findall(said)
    below = min(3, text.count("\n", before, start)) if before >= 0 else 2
    return Sentence(
        start, end, tuple(_form(said, written, words)), (*words, *runs, *map("".join, pairwise(runs))), below
    )


def _form(said: str, written: Sequence[str], words: Sequence[str]) -> Iterator[str]:
    capitals = sum(word[0].isupper() for word in written[1:]) / max(1, len(written) - 1)
    yield f"length{_step(len(said), _LENGTHS)}"
    yield "lower" if said[0].islower() else "upper" if said[0].isupper() else "neither"
    yield f"first{'d' if said[0].isdigit() else '' if said[0].isalnum() else said[0]}"
    yield f"last{'' if said[-1].isalnum() else said[-1]}"
    yield f"capitals{_step(capitals, _CAPITALS)}"
    for name, persons in _PERSONS:
        yield f"{name}{min(2, sum(word in persons for word in words))}"
    yield from (name for sign, name in _SIGNS.items() if sign in said)
    yield from (name for name, shape in _SHAPES.items() if shape.search(said))
    if len(written) > 1 and said.isupper():
        yield "shouted"
    if "i" in written:
        yield "small i"


def places_of(sentences: Sequence[Sentence]) -> list[set[int]]:
    """Return the places of each sentence's features in the table."""
    if not sentences:
        return []
    paragraphs = _paragraphs(sentences)
    message = _hashed(_of_message(sentences, paragraphs[-1] + 1))
    first_line, last_line = _outer_lines(sentences)
    lead = _hashed(f"lead:{feature}" for at in {0, first_line - 1} for feature in _shown(sentences[at]))
    tail = _hashed(f"tail:{feature}" for one in {*sentences[last_line:][:1], sentences[-1]} for feature in _shown(one))
    found = []
    for at, sentence in enumerate(sentences):
        own = [*_shown(sentence), *(f"begins {word}" for word in sentence.words[:1])]
        around = [*_neighbours(sentences, at), *_place(sentences, at, paragraphs)]
        before = lead if at >= first_line else _hashed([f"lead {at > 0}"])
        behind = tail if at < last_line else _hashed([f"tail {at < len(sentences) - 1}"])
        found.append(_hashed([*own, *around]) | message | before | behind)
    return found


def _hashed(features: Iterable[str]) -> set[int]:
    return {crc32(feature.encode("utf-8", "surrogatepass")) & ((1 << BITS) - 1) for feature in features}


def _outer_lines(sentences: Sequence[Sentence]) -> tuple[int, int]:
    """Return how many sentences the first line has, and before how many the last line begins: all, where there is one
    line only. A colon ends a first line, too. What is said of a pasted text mostly stands there, next to it."""
    breaks = [at for at in range(1, len(sentences)) if sentences[at].below]
    first = breaks[0] if breaks else len(sentences)
    colon = next((at + 1 for at in range(first) if sentences[at].announces), first)
    return min(first, colon), breaks[-1] if breaks else len(sentences)


def _shown(sentence: Sentence) -> list[str]:
    return [*sentence.form, *(f"={word}" for word in sentence.words)]


def _paragraphs(sentences: Sequence[Sentence]) -> list[int]:
    """Return the number of each sentence's paragraph: a blank line begins one."""
    number, found = -1, []
    for sentence in sentences:
        number += sentence.below >= 2
        found.append(number)
    return found


def _of_message(sentences: Sequence[Sentence], paragraphs: int) -> list[str]:
    count = max(1, len(sentences))
    shares = {
        "small": sum(one.begins_small for one in sentences) / count,
        "ended": sum(one.ends for one in sentences) / count,
        "selves": sum(one.is_of_itself for one in sentences) / count,
    }
    sizes = [f"paragraphs{_step(paragraphs, (2, 3, 4, 6, 10))}", f"sentences{_step(count, (2, 3, 4, 6, 10, 20, 40))}"]
    return sizes + [f"{name}{_step(share, _SHARES)}" for name, share in shares.items()]


def _neighbours(sentences: Sequence[Sentence], at: int) -> Iterator[str]:
    for apart in (-2, -1, 1, 2):
        if not 0 <= at + apart < len(sentences):
            yield f"{apart}:none"
            continue
        other = sentences[at + apart]
        yield from (f"{apart}:{form}" for form in other.form if form.startswith(_AROUND))
        if abs(apart) == 1:
            yield from (f"{apart}={word}" for word in other.words)


def _place(sentences: Sequence[Sentence], at: int, paragraphs: Sequence[int]) -> Iterator[str]:
    sentence, first, last = sentences[at], sentences[0], len(sentences) - 1
    yield f"below{sentence.below}"
    if at:
        if sentences[at - 1].announces:
            yield f"colon{sentence.below}"
        yield f"small{sentence.begins_small}{first.begins_small}"
        yield f"ends{sentence.ends}{first.ends}"
    yield f"from start {min(at, 4)}"
    yield f"from end {min(last - at, 4)}"
    yield f"paragraph {min(paragraphs[at], 3)}"
    yield f"paragraph from end {min(paragraphs[-1] - paragraphs[at], 3)}"


def _step(value: float, steps: Sequence[float]) -> int:
    return sum(value >= step for step in steps)
