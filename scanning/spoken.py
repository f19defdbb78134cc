"""Secrets announced by words: "my password is …", "PIN: …", "API key …", in many languages.
A label announces the secret; the value is the first word after it (or before "as my password") that looks like one.
Policies, places and placeholders are ignored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from scanning import secret_words
from scanning.formats import is_placeholder
from scanning.provider_keys import Span
from scanning.secret_values import (
    is_plain_password,
    is_quoted_password,
    is_strong_password,
    looks_like_key,
    looks_like_password,
)
from scanning.views import View
from scanning.words import UNSPACED, any_of, entries_of, fold_word, word_set

_MAX_CHARS_APART = 70  # between a label and its value
_MAX_WORDS_APART = 9


def _labels(source: str) -> re.Pattern[str]:
    """Return a pattern of all labels, longest first; in scripts with spaces only whole words, including parts of
    NAMES_LIKE_THIS."""
    words = set(entries_of(source))
    unspaced = any_of(word for word in words if UNSPACED.match(word))
    spaced = any_of(word for word in words if not UNSPACED.match(word))
    return re.compile(rf"(?:(?<![^\W_])(?:{spaced})(?![^\W_]|[_\-][^\W_])|{unspaced})")


_PASSWORD = _labels(secret_words.PASSWORDS)
_PIN = _labels(secret_words.PINS)
_KEY = _labels(secret_words.KEYS)
_PLACES = word_set(secret_words.PLACES)
_POLICIES = word_set(secret_words.POLICIES)

_CONNECTOR = re.compile(
    r"""[\s"'`*)\]]{0,3}(?P<sign>:=|=>|->|[:=：＝→–—]|(?<![\w])(?:is|are|was|it's|its|ist|lautet|sind|heisst|est|es|e|son|sono|sera|equals|
    set\ to|remains|becomes|is\ now|changed\ to|reads|jest|to|je|ar|olarak
    |είναι|ειναι|это|is\ currently|це|είναι|هو|هي|است|ہے|है|adalah|la|on|er|var|zni|ir|yra|ni|ialah
    |da|eshte|է|არის)(?![\w])
    |是|为|為|就是|设为|改为|は|が|을|를|는|은|가|이)[\s"'`*:]{0,4}""",
    re.VERBOSE,
)
# Passwords in the middle of sentences, without a label directly before them.
_LABEL = (
    r"(?:passwor[dt]|passcode|passphrase|kennwort|mot de passe|mdp|contrasena|senha|palavra-passe|wachtwoord"
    r"|haslo|heslo|losenord|adgangskode|passord|salasana|jelszo|parola|lozinka|sifre|парол\w{0,3})"
)
_IN_SENTENCE = r"[\"'`]?(?P<v>[^\s\"'`,;<>(){}]{8,64}[^\s\"'`,;<>(){}.!?:])"
_SENTENCES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?:logs?|logged|logging|signs?|signed|signing) (?:in|on) (?:with|using|by) {_IN_SENTENCE}",
        r"\b(?:set|sets|changed?|changes|reset|switched|updated|renamed) (?:[\w\-']{1,20} ){1,4}?(?:to|as) "
        rf"{_IN_SENTENCE}(?=[^\n]{{0,60}}{_LABEL})",
        rf"{_LABEL}[^\n.]{{0,50}}? (?:auf|in|to|en|a|por|op|til|na|на) {_IN_SENTENCE}"
        r" (?:geandert|gesetzt|gestellt|changed|set|cambiad\w|gewijzigd|gezet|zmienion\w|изменен\w?)",
        rf"\b(?:type|enter|user(?:name)? is|user) (?:[\w.\-]{{1,30}} ){{1,2}}(?:and|,) (?:then )?{_IN_SENTENCE}",
        rf"\bparole(?: ir|:) {_IN_SENTENCE}",
    )
)
_DIGIT = re.compile(r"\d")
_WORD = re.compile(r"[^\s\"'`“”„«»「」『』<>，。、；,;()\[\]{}]+")
_QUOTED = re.compile(r"[\"'`“„«「『](?P<value>[^\"'`“”„«»「」『』\n]{3,60})[\"'`”“»」』]")
_STOP = re.compile(r"[.!。]\s|\n|; ")
_ASCII = re.compile(r"[!-~]{4,}")
# The repetitions are possessive (`}+`): what follows them cannot be one of their characters, so backtracking would only
# cost time, at every position of a long run of letters.
_AS_LABEL = re.compile(
    r"(?P<value>[^\s\"'`]{5,64}+)[\"'`]? (?:as|als|como|come|comme|jako|как|як|ως)(?: (?:the|a|my|their|his"
    r"|her|our|das|mein|meine|le|mon|ma|la|mi|il|mia|minha|a|het|mijn|свой|мой))? "
)
_IS_MY = re.compile(
    r"(?P<value>[^\s\"'`]{5,64}+)[\"'`]? (?:is|ist|est|es|e|is|jest|—|-) (?:the|my|our|their|his|her|das"
    r"|mein|unser|le|mon|ma|la|mi|il|mia|minha|mijn|мой|твой|наш)? ?(?:[\w\-]{2,12} ){0,2}"
)
# The two patterns above can only match texts with one of these words.
_LINK_WORDS = re.compile(r" (?:as|als|como|come|comme|jako|как|як|ως|is|ist|est|es|e|jest|—|-) ")
_USER_PASS = re.compile(
    r"(?:login|user(?:name)?|creds|credentials|account|logins?"
    r"|admin)\b[^\n]{0,40}?(?:[\s:=])(?P<user>[\w.+\-]{1,40}+(?:@[\w.\-]{3,60}+)?)(?:[:|]"
    r"|\s?/\s?)(?P<value>[^\s/:|,;]{5,64})"
)

_ABBREVIATIONS = frozenset({"pass", "psk", "pw", "logins"})
_STRONG = re.compile(r"\s[\"'“]|\s(?=\S{0,40}[!@#$%^&*])(?=\S{0,40}\d)\S{6,}")
_EMAIL_PASS = re.compile(
    r"[\w.+\-]{1,40}+@[\w\-]{1,40}(?:\.[\w\-]{1,20}){1,4}(?:\s?[/|]\s?|:)(?P<value>[^\s/:|,;]{5,64})"
)
_DEVICE_CODE = re.compile(
    r"(?:alarm|door|gate|safe|lock|garage|vault|keypad|locker|suitcase|card|phone)\b[^\n.]{0,40}?\b(?:code"
    r"|combination)\b(?:\s|is|:|=|with|to){0,4}"
)
_NETWORK = re.compile(r"wi-?fi|ssid|wlan|wpa|network|hotspot|router|netzwerk|reseau|red\b|rete\b")


def spoken_spans(view: View, original: str) -> Iterator[Span]:
    """Yield values announced by a label, as spans of a folded view; `original` is the text it was made from."""
    text = view.text
    if _DIGIT.search(text):  # passwords without digits are not found in the middle of sentences
        for match in chain.from_iterable(pattern.finditer(text) for pattern in _SENTENCES):
            if is_strong_password(_cased(view, original, *match.span("v"))):
                yield *match.span("v"), "password"
    for match in _PASSWORD.finditer(text):
        yield from _values_after(view, original, match, "password")
    for match in (*_PIN.finditer(text), *_DEVICE_CODE.finditer(text)):
        yield from _digits_after(text, match)
    for match in _KEY.finditer(text):
        network = _NETWORK.search(text, max(0, match.start() - 50), match.start())
        yield from _values_after(view, original, match, "password" if network else "token")
    for match in _values_before(text):
        if looks_like_password(_cased(view, original, *match.span("value"))):
            yield *match.span("value"), "password"


def _values_before(text: str) -> Iterator[re.Match[str]]:
    """Yield possible passwords by their context: "… as my password", "user/…"."""
    yield from _USER_PASS.finditer(text)
    if "@" in text:
        yield from _EMAIL_PASS.finditer(text)
    if _LINK_WORDS.search(text):
        for match in chain(_AS_LABEL.finditer(text), _IS_MY.finditer(text)):
            if _PASSWORD.match(text, match.end()) or _PIN.match(text, match.end()):
                yield match


def _cased(view: View, original: str, start: int, end: int) -> str:
    """Return the value in its original case if the view still corresponds to it letter by letter."""
    if view.decoded:
        return view.text[start:end]
    first, last = view.located(start, end)
    piece = original[first:last]
    return piece if fold_word(piece) == view.text[start:end] else view.text[start:end]


def _values_after(view: View, original: str, label: re.Match[str], rule: str) -> Iterator[Span]:
    text = view.text
    limit = min(len(text), label.end() + _MAX_CHARS_APART)
    stop = _STOP.search(text, label.end(), limit)
    limit = stop.start() if stop else limit
    connector = _CONNECTOR.match(text, label.end(), limit)
    if connector is None and not _may_do_without_connector(text, label, limit):
        return
    whole = _whole_value(view, original, label, connector, limit) if rule == "password" else None
    if whole is not None:
        yield *whole, rule
        return
    before = ""
    first = connector.end() if connector else label.end()
    for count, match in enumerate(_WORD.finditer(text, first, limit + 60)):
        if match.start() >= limit or count > _MAX_WORDS_APART:
            return
        start, end = _without_punctuation(text, *match.span())
        value = _cased(view, original, start, end)
        if is_placeholder(value) or text[end : end + 1] == "(" or value.startswith("[redacted"):
            return
        direct = connector is not None and count == 0
        plain = direct and rule == "password" and is_plain_password(text, start, end)
        if plain or _accepts(rule, value, direct=direct, before=before):
            yield start, end, rule
            return
        if text[start:end] in _POLICIES:
            return
        before = text[start:end]


def _may_do_without_connector(text: str, label: re.Match[str], limit: int) -> bool:
    """Return True for labels as in "password hunter22", False as in `"password"` and "boarding pass LH1234"."""
    if label.end() < limit and text[label.end()] not in " ,)]*":
        return bool(UNSPACED.match(label.group()))
    if label.group() not in _ABBREVIATIONS:
        return True
    return bool(_STRONG.match(text, label.end()))


def _whole_value(
    view: View, original: str, label: re.Match[str], connector: re.Match[str] | None, limit: int
) -> tuple[int, int] | None:
    """Return a quoted value, or a passphrase of several words."""
    text = view.text
    if connector is None:
        quoted = _QUOTED.match(text, label.end() + 1) if text[label.end() : label.end() + 1] in (" ", ",") else None
    else:
        quoted = _QUOTED.match(text, connector.end() - 1) or _QUOTED.match(text, connector.end())
    if quoted and is_quoted_password(_cased(view, original, *quoted.span("value"))):
        return quoted.span("value")
    if connector and "phrase" in label.group() and (rest := _PHRASE.match(text, connector.end(), limit)):
        return rest.span()
    return None


# A passphrase of plain words: at least four to the end of the sentence.
_PHRASE = re.compile(
    r"(?!(?:in|on|at|for|is|not|never|required|stored|kept|must|dans|im|en|na|nel|the|a|an|with|by"
    r"|to) )[^\W\d_]{1,14}(?:[ \-][^\W\d_]{1,14}){3,11}(?=[.!]?\s{0,3}$|[.\n])"
)


def _accepts(rule: str, value: str, *, direct: bool, before: str) -> bool:
    if before in _PLACES:
        return False
    if rule == "token":
        return looks_like_key(value, direct=direct)
    # Words of other scripts must directly follow a connector: "пароль: кошка77".
    return looks_like_password(value) and (direct or value.isascii())


def _without_punctuation(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span without the sentence's punctuation (except "!", which is often part of a password) and without
    following letters of a script without spaces: "natsu2024です"."""
    while end > start + 1 and text[end - 1] in ".:?…":
        end -= 1
    while start < end - 1 and text[start] in ":=→":
        start += 1
    plain = _ASCII.match(text, start, end)
    if plain and UNSPACED.match(text, plain.end()):
        end = plain.end()
    return start, end


_PIN_VALUE = re.compile(
    r"(?<![a-z0-9_.,:/\-+$€£])(?:\d{4,8}|\d{3}(?=\D|$)|\d{2}(?:[ \-]\d{2}){1,3}|\d{3}[ \-]\d{2}[ \-]\d{4}"
    r"|\d{3}[ \-]\d{3}|\d{2,5}[a-z]\d{0,5})(?![a-z0-9_%]|[./:\-]\d)"
)
_PLACE_CODE = re.compile(r"(?:door|gate|entry|building) code")
_PIN_NOT = re.compile(
    r"^\s?(?:digits?|characters?|times?|attempts?|minutes?|hours?|days?|seconds?|years?|stell|ziffern"
    r"|zeichen|chiffres|digitos|cifre|cijfers|знак|цифр|位|桁|자리|رقم|people|users|tries|hz|km|kg|€|usd|eur)"
)


def _digits_after(text: str, label: re.Match[str]) -> Iterator[Span]:
    limit = min(len(text), label.end() + 45)
    stop = _STOP.search(text, label.end(), limit)
    match = _PIN_VALUE.search(text, label.end(), stop.start() + 1 if stop else limit)
    if match is None:
        return
    value = match.group()
    between = text[label.end() : match.start()]
    if _PIN_NOT.match(text[match.end() : match.end() + 14]) or set(re.findall(r"[^\W\d_]+", between)) & _POLICIES:
        return
    if (
        _PLACE_CODE.match(label.group())
        and label.start()
        and re.fullmatch(r"\W*", between)
        and not re.search(r"[:=]", between)
    ):
        return  # "door code 90412" describes the way; "door code: …" and "door code is …" announce a secret
    if len(value) == 3 and not label.group().startswith(("cv", "pin", "security")):
        return
    yield match.start(), match.end(), "pin"
