"""Splits a text into search terms: words by script, stems by language, character pairs in scripts without spaces."""

from __future__ import annotations

import functools
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import Stemmer

from search.languages import CHINESE_FUNCTION_WORDS, FUNCTION_WORDS, SCRIPT_STEMMERS
from search.normal_form import normalized

MAX_WORD_CHARS = 64
"""Longer words are truncated."""

_SCRIPT_SAMPLE = 200
"""Number of leading characters that determine the script of a text."""

_WORD = re.compile(r"[^\W_]+(?:[._\-/@:'’\u200c][^\W_]+)*")
_LETTER_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_PART = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+")
_CHINESE_BREAKS = re.compile("|".join(sorted(CHINESE_FUNCTION_WORDS, key=len, reverse=True)))
_JOINT = re.compile(r"[._\-/@:'’\u200c]")
_APOSTROPHE = {"'", "’"}
_CODE_JOINTS = {".", "_", "/", "@", ":"}
_SENTENCE_END = re.compile(r"[.!?:\n。！？]")
_APOSTROPHES = str.maketrans("", "", "'’")
_NORMAL_LETTERS = str.maketrans(
    {"ي": "ی", "ك": "ک", "ة": "ه", "ـ": None, "\u200c": None, "ё": "е", "ß": "ss", "ø": "o", "ł": "l", "đ": "d"}
)
_LATIN_LANGUAGES = tuple(name for name in FUNCTION_WORDS if name not in ("russian", "persian"))
_STOP_WORDS = {
    language: FUNCTION_WORDS[language] | FUNCTION_WORDS["russian"] | FUNCTION_WORDS["persian"]
    for language in _LATIN_LANGUAGES
}
_LANGUAGES_OF = {
    word: tuple(language for language in _LATIN_LANGUAGES if word in FUNCTION_WORDS[language])
    for language in _LATIN_LANGUAGES
    for word in FUNCTION_WORDS[language]
}
_LETTERS_OF = {"ä": "german", "ö": "german", "ü": "german", "ß": "german", "ñ": "spanish", "ã": "portuguese",
               "õ": "portuguese", "œ": "french", "ù": "french", "ê": "french"}  # fmt: skip


class Token(NamedTuple):
    """A search term: `term` is compared, `surface` is the original spelling."""

    term: str
    surface: str
    is_name: bool = False
    """Capitalised inside a sentence, or with a digit: probably a name or a number."""


class _Stemmers(threading.local):
    """Stemmers of the current thread; PyStemmer's objects are not thread-safe."""

    def __init__(self) -> None:
        self.by_language: dict[str, Stemmer.Stemmer] = {}

    def stem(self, language: str, word: str) -> str:
        stemmer = self.by_language.get(language)
        if stemmer is None:
            # Without PyStemmer's own cache (0), which could not be cleared when words are forgotten.
            stemmer = self.by_language[language] = Stemmer.Stemmer(language, 0)
        return str(stemmer.stemWord(word))


_stemmers = _Stemmers()


def guess_language(text: str) -> str:
    """Return the language of Latin-script `text` by its function words and letters; English by default."""
    scores: dict[str, float] = {}
    if text.isascii():
        words = _LETTER_WORD.findall(text.lower())
    else:
        words = [word.casefold().replace("’", "'") for word in _LETTER_WORD.findall(text)]
    for word in words:
        for language in _LANGUAGES_OF.get(word, ()):
            scores[language] = scores.get(language, 0.0) + 1.0
    for letter in () if text.isascii() else text.casefold():
        if letter in _LETTERS_OF:
            scores[_LETTERS_OF[letter]] = scores.get(_LETTERS_OF[letter], 0.0) + 0.6
    if scores.keys() <= {"english"}:
        return "english"
    best = max(_LATIN_LANGUAGES, key=lambda language: scores.get(language, 0.0))
    return best if scores[best] > scores.get("english", 0.0) else "english"


def language_of(text: str) -> str:
    """Return the language of a text in Latin script (see `guess_language`), or else the name of its script."""
    if text.isascii():
        return guess_language(text)
    scripts = Counter(script_of(letter) for letter in text[:_SCRIPT_SAMPLE] if letter.isalpha())
    script = max(scripts, key=scripts.__getitem__, default="latin")
    return guess_language(text) if script == "latin" else script


def tokens_of(text: str, language: str | None = None) -> list[Token]:
    """Return the search terms of `text` in order, with repeats. `language` is that of its Latin words, if known.

    Words are stemmed by their script's or the text's language. A compound such as `parcel.events.v2` or
    `TestGeocodeRetry` yields itself and its parts. Scripts without spaces yield character pairs.
    """
    text = normalized(text)
    language = language or guess_language(text)
    found: list[Token] = []
    end = 0
    for match in _WORD.finditer(text):
        word = match.group()
        named = word[0].isupper() and bool(end) and not _SENTENCE_END.search(text, end, match.start())
        end = match.end()
        tokenize = _cached_tokens_of_word if len(word) <= MAX_WORD_CHARS else _tokens_of_word
        found.extend(tokenize(word, language, named))
    return found


@functools.lru_cache(maxsize=4096)
def tokens_of_keyword(word: str) -> tuple[Token, ...]:
    """Return the search terms of one keyword of a message."""
    return tuple(tokens_of(word))


@functools.lru_cache(maxsize=32768)
def _cached_tokens_of_word(word: str, language: str, named: bool) -> tuple[Token, ...]:
    return tuple(_tokens_of_word(word, language, named))


def forget_words() -> None:
    """Clear the caches of tokenised words."""
    tokens_of_keyword.cache_clear()
    _cached_tokens_of_word.cache_clear()


def _tokens_of_word(word: str, language: str, named: bool) -> Iterator[Token]:
    if not word.isascii() and _UNSPACED.search(word):
        yield from _unspaced_tokens(word, language)
        return
    stop = _STOP_WORDS[language]
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
        # Not just an elision: the whole compound is a term, too, and a name if it looks like a code.
        is_code = has_digit(word) or not joints or bool(joints & _CODE_JOINTS)
        yield Token(_plain(folded)[:MAX_WORD_CHARS], word, is_name=is_code)
    for part in parts:
        if part.casefold() not in stop and (len(part) > 1 or not joints & _APOSTROPHE):
            yield from _stemmed(part, language, named)


def _stemmed(word: str, language: str, named: bool) -> Iterator[Token]:
    """Yield the word's stem, and in other languages the English stem, too, so that names and loan words match."""
    folded = word.casefold()
    stem = _stem(folded, language)
    if not stem:
        return  # only marks that lengthen Arabic letters
    named = named or has_digit(word)
    yield Token(stem, word, named)
    if language != "english" and (english := _stem(folded, "english")) != stem:
        yield Token(english, word, named)


def _unspaced_tokens(word: str, language: str) -> Iterator[Token]:
    position = 0
    for run in _UNSPACED.finditer(word):
        yield from _spaced_rest(word[position : run.start()], language)
        position = run.end()
        for piece in _CHINESE_BREAKS.split(run.group()):
            if len(piece) == 1:
                yield Token(piece, piece)
            yield from (Token(piece[at : at + 2], piece[at : at + 2]) for at in range(len(piece) - 1))
    yield from _spaced_rest(word[position:], language)


def _spaced_rest(rest: str, language: str) -> Iterator[Token]:
    rest = rest.strip("._-/@:'’\u200c")
    if rest:
        yield from _tokens_of_word(rest, language, False)


def has_digit(word: str) -> bool:
    """Return True if the word has a digit of any script."""
    return not word.isalpha() and any(letter.isdigit() for letter in word)


def script_of(letter: str) -> str:
    """Return the name of a letter's script in lower case: `latin`, `cyrillic`, `cjk`."""
    return unicodedata.name(letter, "LATIN").split(" ", 1)[0].casefold()


def _plain(word: str) -> str:
    """Return the word without accents and with variants of letters unified."""
    if word.isascii():
        return word
    word = word.translate(_NORMAL_LETTERS)
    decomposed = unicodedata.normalize("NFD", word)
    kept = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return unicodedata.normalize("NFC", kept) or word


def _stem(word: str, language: str) -> str:
    word = word[:MAX_WORD_CHARS]
    if has_digit(word):
        return _plain(word)
    language = language if word.isascii() else SCRIPT_STEMMERS.get(script_of(word[0]), language)
    return _plain(_stemmers.stem(language, word.translate(_NORMAL_LETTERS) if language == "persian" else word))
