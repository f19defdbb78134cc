"""Secrets with a fixed format: private key blocks, JWTs, URLs with passwords, card and account numbers, seed phrases.
Check digits are verified, so that order numbers pass."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from stdnum import iban, luhn, numdb
from stdnum.iso7064 import mod_97_10

from scanning.patterns import HintedPatterns, hinted_matches
from scanning.provider_keys import Span, is_filler
from scanning.words import word_set

_PEM = re.compile(
    r"-----BEGIN (?P<label>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----"
    r"(?P<body>[A-Za-z0-9+/=\s\\:,.\-()]{0,20000}?)(?:-----END (?P=label)-----|(?=-----BEGIN)|\Z)"
)
_PEM_HEAD = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:\s{0,4}[A-Za-z0-9+/=\\]{16,200}){0,400}"
)
_PUTTY = re.compile(
    r"PuTTY-User-Key-File-\d[^\n]{0,80}(?:\n[A-Za-z\-]{2,20}: [^\n]{0,200}|\n[A-Za-z0-9+/=]{2,200}){0,200}"
)
_JWT = re.compile(r"(?<![\w\-])eyJ[\w\-]{8,4000}={0,2}\.[\w\-]{8,8000}={0,2}(?:\.[\w\-]{0,2000}={0,2}){0,3}")
_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]{1,20})://(?P<user>[^\s:@/?#<>\"'`]{0,100}):(?P<password>[^\s@<>"
    r"\"'`]{1,200})@(?P<host>[^\s/?#<>\"'`]{1,200})"
)
_CONNECTION = re.compile(r"(?i)(?:^|[;\s\"'])(?:password|pwd)\s?=\s?(?P<password>[^;\s\"']{3,100});")
_BASIC = re.compile(r"(?i)\bbasic (?P<password>[A-Za-z0-9+/]{12,200}={0,2})(?![A-Za-z0-9])")
_BEARER = re.compile(r"(?i)\bbearer:? (?P<password>[A-Za-z0-9_\-.=+/]{20,500})")
_CURL_USER = re.compile(r"(?:-u|--user)[ =][\"']?(?P<user>[^\s:\"'$]{1,80}):(?P<password>[^\s\"'$<]{3,100})")
_QUERY = re.compile(
    r"(?i)[?&](?:access_token|token|api_?key|key|apikey|auth|secret|client_secret|sig|signature|password"
    r"|passwd|pwd|x-amz-signature|sas)=(?P<password>[^\s&#\"'<>]{6,300})"
)
_CARD = re.compile(r"\d(?<![\d.\-/]\d)[ \-]?(?:\d[ \-]?){11,17}\d(?!\d|[.\-/]\d)")
_CARD_GROUPS = re.compile(r"\d{4}([ \-])\d{4}\1\d{4}\1\d{1,7}|3\d{3}([ \-])\d{6}\2\d{4,5}|\d{13,19}")
_CARD_WORDS = re.compile(
    r"card|karte|carte|tarjeta|cartao|cartão|carta|карт|卡|カード|카드|کارت|kart|बैंक|visa|master|amex|cvv|cvc|exp",
    re.IGNORECASE,
)
_OTHER_NUMBER = re.compile(
    r"order|track|invoice|ticket|imei|isbn|ean|gtin|parcel|shipment|bestell|commande|pedido|заказ|serial"
    r"|part|sku|issn|barcode|fax|phone|tel",
    re.IGNORECASE,
)
_IBAN = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?:[ \-]?[A-Za-z0-9]{4}){2,7}(?:[ \-]?[A-Za-z0-9]{1,4})?(?![A-Za-z0-9])"
)
_IBAN_COUNTRIES = numdb.get("iban")
# python-stdnum knows the countries of the SWIFT registry; Iran uses the same format without being in it.
_IRAN, _IRAN_LENGTH = "IR", 26
_SEED_LABEL = re.compile(
    r"seed|mnemonic|recovery (?:phrase|words)|backup phrase|secret phrase|wallet|мнемоник|сид|seed-phrase"
    r"|metamask|ledger|trezor|(?:twelve|12|24|doce|douze|zwölf|dodici|doze) (?:secret )?(?:words|palabras|mots"
    r"|wörter|parole|palavras)"
    r"|двенадцать слов|12 слов|24 слова|phrase de récupération|助记词|ニーモニック|니모닉|wiederherstellung|semilla",
    re.IGNORECASE,
)
# After a label, the words may be a list; without one, they must be on one line with single spaces, in a valid number.
_SEED_PLAIN = re.compile(r"(?<![\w'’])(?<![a-z] )[a-z]{3,8}(?: [a-z]{3,8}){11,23}(?![\w'’]| [a-z])")
_SEED_RUN = re.compile(r"(?<![\w'’])[a-z]{3,8}(?:(?:[ \n,]|, )(?:\d{1,2}[.)] ?)?[a-z]{3,8}){11,23}(?![\w'’])")
_SEED_ANNOUNCED = re.compile(
    r"(?:words|phrase|seed|mnemonic|palabras|mots|wörter|parole|palavras|слова|слов|фраза)(?:,| are| is| son"
    r"| sont| sind| sono| são|:) (?P<v>[a-z]{3,8}(?:,? [a-z]{3,8}){11,23})(?![\w'’]| [a-z])"
)
_SEED_WORD = re.compile(r"[a-z]{3,8}")
_COMMON_WORDS = word_set("""
the and for not are was has had his her our from into with that this they them then than when what were
been have would could should which their there these those also some more most such each likes prefers
wants uses user who whose does did but its
""")
_FILLER_PASSWORD = re.compile(
    r"^(?:[<{\[$%(*.…]|\*+$|x+$|pass(?:word|wd)?$|pw$|pwd$|secret$|token$|your|example|changeme|redacted"
    r"|user(?:name)?$|\w+\($|[A-Z_]*(?:PASS|SECRET|TOKEN|KEY|PW|PWD)[A-Z_]*$)",
    re.IGNORECASE,
)


_KEYS: HintedPatterns = (
    ("private key", _PEM, "private_key"),
    ("private key", _PEM_HEAD, "private_key"),
    ("putty-user-key", _PUTTY, "private_key"),
    ("eyj", _JWT, "json_web_token"),
)
_ADDRESSES: HintedPatterns = (
    ("://", _URL, "url_password"),
    ("://", _QUERY, "url_password"),
    ("=", _CONNECTION, "url_password"),
    ("-u", _CURL_USER, "password"),
    ("basic ", _BASIC, "password"),
    ("bearer", _BEARER, "token"),
)
_MIN_PEM = 61  # characters; a shorter block is only a header


def format_spans(text: str) -> Iterator[Span]:
    """Yield secrets with a fixed format in a text with its original case."""
    low = text.lower()
    for match, rule in hinted_matches(text, low, _KEYS):
        if match.re not in (_PEM, _PEM_HEAD) or len(match.group()) >= _MIN_PEM:
            yield *match.span(), rule
    for match, rule in hinted_matches(text, low, _ADDRESSES):
        if _may_be_password(match.re, match.group("password")):
            yield *match.span("password"), rule
    yield from _card_spans(text)
    yield from _iban_spans(text)
    yield from _seed_spans(text)


def is_placeholder(value: str) -> bool:
    """Return True if a password is a placeholder: a variable, a template slot, the word "password" itself."""
    return bool(_FILLER_PASSWORD.match(value)) or "${" in value or "{{" in value or "$(" in value or is_filler(value)


def _may_be_password(pattern: re.Pattern[str], value: str) -> bool:
    digits = any(char.isdigit() for char in value)
    if pattern is _QUERY and not (digits and len(value) >= 8):
        return False
    if pattern in (_BASIC, _BEARER) and not (digits or "=" in value):
        return False
    return not is_placeholder(value)


def _card_spans(text: str) -> Iterator[Span]:
    for match in _CARD.finditer(text):
        # Accept digits of any script.
        digits = "".join(str(int(char)) for char in match.group() if char.isdecimal())
        if not _is_card(digits) or not luhn.is_valid(digits) or len(set(digits)) < 2:
            continue
        grouped = _CARD_GROUPS.fullmatch(match.group())
        around = text[max(0, match.start() - 40) : match.start()]
        named = bool(_CARD_WORDS.search(around) or _CARD_WORDS.search(text[match.end() : match.end() + 30]))
        if named or (grouped and not _OTHER_NUMBER.search(around)):
            yield match.start(), match.end(), "card_number"


def _is_card(digits: str) -> bool:
    """Return True if the length and the first digits are those of a card network."""
    length, two, four = len(digits), int(digits[:2]), int(digits[:4])
    return (
        (digits[0] == "4" and length in (16, 19))
        or ((51 <= two <= 55 or 2221 <= four <= 2720 or four == 2200 or 2201 <= four <= 2204) and length == 16)
        or (two in (34, 37) and length == 15)
        or ((two in (36, 38, 39) or 300 <= int(digits[:3]) <= 305) and length in (14, 16))
        or (
            (four == 6011 or two == 65 or 644 <= int(digits[:3]) <= 649 or two in (60, 62, 63, 67, 81, 50, 56, 57, 58))
            and 16 <= length <= 19
        )
        or (3528 <= four <= 3589 and 16 <= length <= 19)
        or (digits[0] == "9" and length == 16)
    )


def _iban_spans(text: str) -> Iterator[Span]:
    for match in _IBAN.finditer(text):
        compact = re.sub(r"[ \-]", "", match.group()).upper()
        length = _iban_length(compact[:2])
        # The pattern may have included a following word, so the length of the country's numbers decides.
        if length and len(compact) >= length and _is_iban(compact[:length]):
            end = match.start()
            for _ in range(length):
                while text[end] in " -":
                    end += 1
                end += 1
            yield match.start(), end, "bank_account"


@cache
def _iban_length(country: str) -> int:
    """Return the length of a country's IBANs, or 0 if it has none."""
    if country == _IRAN:
        return _IRAN_LENGTH
    form = _IBAN_COUNTRIES.info(country)[0][1].get("bban", "")
    return sum(map(int, re.findall(r"\d+", form)), start=4) if form else 0


def _is_iban(compact: str) -> bool:
    if compact.startswith(_IRAN):
        return mod_97_10.is_valid(compact[4:] + compact[:4])
    return iban.is_valid(compact, check_country=False)


def _seed_spans(text: str) -> Iterator[Span]:
    for match in _SEED_PLAIN.finditer(text):
        words = match.group().split(" ")
        if len(words) in (12, 15, 18, 21, 24) and not _COMMON_WORDS.intersection(words):
            yield match.start(), match.end(), "seed_phrase"
    for match in _SEED_ANNOUNCED.finditer(text):
        words = _SEED_WORD.findall(match.group("v"))
        if len(words) in (12, 15, 18, 21, 24) and not _COMMON_WORDS.intersection(words):
            yield *match.span("v"), "seed_phrase"
    for match in _SEED_RUN.finditer(text):
        before = text[max(0, match.start() - 80) : match.start()].rpartition("\n")[2]
        if _SEED_LABEL.search(before) and not _COMMON_WORDS.intersection(_SEED_WORD.findall(match.group())):
            yield match.start(), match.end(), "seed_phrase"
