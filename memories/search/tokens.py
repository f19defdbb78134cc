"""Cut a text into search terms: words by script, stems by language, character pairs where no spaces are."""

from __future__ import annotations

import functools
import re
import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

import Stemmer

from memories.search.languages import (
    CHINESE_FUNCTION_WORDS,
    FUNCTION_WORDS,
    SCRIPT_STEMMERS,
)

LONGEST_WORD = 64
"""Characters of a word that count; the rest of a longer one is cut off."""

_WORD = re.compile(r"[^\W_]+(?:[._\-/@:'’\u200c][^\W_]+)*")
_SPOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_PART = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+")
_CHINESE_BREAKS = re.compile("|".join(sorted(CHINESE_FUNCTION_WORDS, key=len, reverse=True)))
_JOINT = re.compile(r"[._\-/@:'’\u200c]")
_APOSTROPHE = {"'", "’"}
_CODE_JOINTS = {".", "_", "/", "@", ":"}
_SENTENCE_END = re.compile(r"[.!?:\n。！？]")
_APOSTROPHES = str.maketrans("", "", "'’")
_ONE_LETTER_FORM = str.maketrans(
    {"ي": "ی", "ك": "ک", "ة": "ه", "ـ": None, "\u200c": None, "ё": "е", "ß": "ss", "ø": "o", "ł": "l", "đ": "d"}
)
_OTHER_LANGUAGES = tuple(name for name in FUNCTION_WORDS if name not in ("english", "russian", "persian"))
_LETTERS_OF = {"ä": "german", "ö": "german", "ü": "german", "ß": "german", "ñ": "spanish", "ã": "portuguese",
               "õ": "portuguese", "œ": "french", "ù": "french", "ê": "french"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Token:
    """One search term: `term` is compared, `surface` is what a person wrote."""

    term: str
    surface: str
    is_name: bool = False
    """Written with a capital inside a sentence, or holding a digit: likely a name or a number."""


class _Stemmers(threading.local):
    """Stemmers of the running thread; PyStemmer's objects must not be shared."""

    def __init__(self) -> None:
        self.by_language: dict[str, Stemmer.Stemmer] = {}

    def stem(self, language: str, word: str) -> str:
        stemmer = self.by_language.get(language)
        if stemmer is None:
            stemmer = self.by_language[language] = Stemmer.Stemmer(language)
        return str(stemmer.stemWord(word))


_stemmers = _Stemmers()


def guess_language(text: str) -> str:
    """Return the language of Latin-script `text` by its function words; English when nothing speaks against it."""
    words = [word.casefold().replace("’", "'") for word in _SPOKEN.findall(text)]
    scores = dict.fromkeys(("english", *_OTHER_LANGUAGES), 0.0)
    for language in scores:
        scores[language] += sum(word in FUNCTION_WORDS[language] for word in words)
    for letter in text.casefold():
        if letter in _LETTERS_OF:
            scores[_LETTERS_OF[letter]] += 0.6
    best = max(scores, key=lambda language: scores[language])
    return best if scores[best] > scores["english"] else "english"


def tokens_of(text: str, *, keep_function_words: bool = False) -> list[Token]:
    """Return the search terms of `text` in order, with repeats.

    Words are stemmed by their script's or the text's language. A compound such as `parcel.events.v2`
    or `TestGeocodeRetry` gives itself and its parts. Scripts without spaces give character pairs.
    """
    text = unicodedata.normalize("NFKC", text)
    language = guess_language(text)
    stop = frozenset() if keep_function_words else FUNCTION_WORDS[language] | _always_stopped()
    found: list[Token] = []
    end = 0
    for match in _WORD.finditer(text):
        word = match.group()
        between = text[end : match.start()]
        named = word[0].isupper() and bool(end) and not _SENTENCE_END.search(between)
        end = match.end()
        found.extend(_tokens_of_word(word, language, stop, named))
    return found


@functools.cache
def _always_stopped() -> frozenset[str]:
    return FUNCTION_WORDS["russian"] | FUNCTION_WORDS["persian"]


def _tokens_of_word(word: str, language: str, stop: frozenset[str], named: bool) -> Iterator[Token]:
    if not word.isascii() and _UNSPACED.search(word):
        yield from _unspaced_tokens(word, language, stop)
        return
    folded = word.casefold()
    if folded in stop or folded.translate(_APOSTROPHES) in stop:
        return
    whole, _, ending = folded.replace("’", "'").rpartition("'")
    if whole and ending in ("s", "ll", "re", "ve", "d", "m", "t"):
        folded, word = whole, word[: len(whole)]
        if folded in stop:
            return
    if folded == word and word.isalpha():
        yield from _stemmed(word, language, named)
        return
    parts = [piece for part in _PART.findall(word) for piece in _CAMEL.split(part) if piece]
    if len(parts) == 1:
        yield from _stemmed(word, language, named)
        return
    joints = set(_JOINT.findall(word))
    if not joints or joints - _APOSTROPHE:
        # Joined by more than an elision: the whole is a term of its own, and a name if it looks like a code.
        is_code = has_digit(word) or not joints or bool(joints & _CODE_JOINTS)
        yield Token(_plain(folded)[:LONGEST_WORD], word, is_name=is_code)
    for part in parts:
        if part.casefold() not in stop and (len(part) > 1 or not joints & _APOSTROPHE):
            yield from _stemmed(part, language, named)


def _stemmed(word: str, language: str, named: bool) -> Iterator[Token]:
    """Yield the word's stem, and for other languages the English one too: names and loans meet across languages."""
    folded = word.casefold()
    stem = _stem(folded, language)
    named = named or has_digit(word)
    yield Token(stem, word, named)
    if language != "english" and (english := _stem(folded, "english")) != stem:
        yield Token(english, word, named)


def _unspaced_tokens(word: str, language: str, stop: frozenset[str]) -> Iterator[Token]:
    position = 0
    for run in _UNSPACED.finditer(word):
        yield from _spaced_rest(word[position : run.start()], language, stop)
        position = run.end()
        for piece in _CHINESE_BREAKS.split(run.group()):
            if len(piece) == 1:
                yield Token(piece, piece)
            yield from (Token(piece[at : at + 2], piece[at : at + 2]) for at in range(len(piece) - 1))
    yield from _spaced_rest(word[position:], language, stop)


def _spaced_rest(rest: str, language: str, stop: frozenset[str]) -> Iterator[Token]:
    rest = rest.strip("._-/@:'’\u200c")
    if rest:
        yield from _tokens_of_word(rest, language, stop, False)


def has_digit(word: str) -> bool:
    """Say whether the word holds a digit of any script."""
    return not word.isalpha() and any(letter.isdigit() for letter in word)


def _script(letter: str) -> str:
    return unicodedata.name(letter, "LATIN").split(" ", 1)[0].casefold()


def _plain(word: str) -> str:
    """Return the word without accents and with one form for letters that have several."""
    if word.isascii():
        return word
    word = word.translate(_ONE_LETTER_FORM)
    decomposed = unicodedata.normalize("NFD", word)
    kept = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return unicodedata.normalize("NFC", kept) or word


@functools.lru_cache(maxsize=65536)
def _stem(word: str, language: str) -> str:
    word = word[:LONGEST_WORD]
    if has_digit(word):
        return _plain(word)
    language = language if word.isascii() else SCRIPT_STEMMERS.get(_script(word[0]), language)
    return _plain(_stemmers.stem(language, word.translate(_ONE_LETTER_FORM) if language == "persian" else word))
