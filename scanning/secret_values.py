"""Decides whether a word looks like a password or a key. Dates, versions, units, paths, placeholders, and names of
files, products and variables do not."""

from __future__ import annotations

import re

from scanning import secret_words
from scanning.formats import is_placeholder
from scanning.provider_keys import entropy, looks_random
from scanning.words import UNSPACED, word_set

_NOT_VALUES = word_set(secret_words.NOT_VALUES)
_STATES = word_set(secret_words.STATES)
_OTHER_FORMATS = re.compile(
    r"^(?:\d{1,4}-?(?:[a-z]{1,3}|char\w*|bit\w*|byte\w*|day\w*|digit\w*|letter\w*|month\w*|word\w*|week\w*"
    r"|hour\w*|min\w*|symbol\w*|time\w*|tage?\w*|zeichen\w*|jours?|caract\w+|dias?)"
    r"|\d{1,4}[./\-]\d{1,2}[./\-]\d{1,4}|v?\d+(?:\.\d+)+[a-z]?\d*|\d{1,2}:\d{2}(?:am|pm)?|[a-z]{2,12}://.*"
    r"|.*/.*|~.*|\.[\w.]+|[\w\-]+\.(?:txt|md|py|js|ts|json|ya?ml|env|toml|ini|cfg|conf|html?|pdf|docx?"
    r"|xlsx?|kdbx|pem|key|com|org|net|io|example|dev|app|local|internal|de|fr|ru)\W?"
    r"|[\w.+\-]+@[\w.\-]+\.\w+|[a-z]+(?:_[a-z]+)*\(.*|\d+(?:st|nd|rd|th|%|€|\$)|#\d+|[a-z]+[’'][a-z]{1,2}"
    r"|\W+|[a-z]{1,12}s?/[a-z]+|\(.*|--?[a-z][a-z\-=]*|[a-z]+-\d{1,4}|[a-z]\d{1,2}|q[1-4]|[a-z]{1,3}-?\d{1,2})$"
)
_UUID = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
_ENV_NAME = re.compile(r"^\$?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$")


def looks_like_password(value: str) -> bool:
    """Return True for letters mixed with digits or symbols, unless they are a date, version, unit or name."""
    low = value.lower()
    stripped = low.rstrip("!.,")
    if (
        not 5 <= len(value) <= 100
        or stripped in _NOT_VALUES
        or _OTHER_FORMATS.match(low)
        or _UUID.match(low)
        or _ENV_NAME.match(value)
        or low.startswith(("$", "<"))
        or is_placeholder(value)
        or UNSPACED.search(value)
        or not any(map(str.isalpha, value))
    ):
        return False
    symbols = any(c in "!@#$%^&*?+~=_" for c in value[:-1]) or value[-1] in "@#$%^&*+~=_" or value.endswith("!!")
    return symbols or any(map(str.isdigit, value))


def is_strong_password(value: str) -> bool:
    """Return True if a word can hardly be anything but a password: mixed case with several digits."""
    mixed = any(map(str.islower, value)) and any(map(str.isupper, value)) and sum(map(str.isdigit, value)) >= 2
    return mixed and len(value) >= 8 and looks_like_password(value) and not re.fullmatch(r"[A-Z][a-z]+\d+", value)


def is_quoted_password(value: str) -> bool:
    """Return True if a quoted text after a label can be a password; this includes plain words."""
    low = value.lower().strip()
    if is_placeholder(value) or low in _STATES or low in _NOT_VALUES or _ENV_NAME.match(value):
        return False
    if low.startswith(("new-", "current-", "http")) or "password" in low.replace("_", "").replace("-", ""):
        return bool(re.search(r"\d", low)) and not _ENV_NAME.match(value)
    return len(low) >= 4 and "." not in low[:1]


def is_plain_password(text: str, start: int, end: int) -> bool:
    """Return True for a single plain word with nothing after it: "password: swordfish"."""
    value = text[start:end]
    if not value.isascii() or not 4 <= len(value) <= 40 or not re.fullmatch(r"[a-z\-]+", value):
        return False
    rest = text[end : end + 2].strip()
    if value in _STATES or value in _NOT_VALUES or value.endswith(("ed", "ing", "ly", "able", "ible", "ful")):
        return False
    return not rest or rest[0] in ".,;!)\n"


def is_plain_value(value: str) -> bool:
    """Return True if the value of a setting called "password" can be one; this includes a plain word."""
    low = value.lower().rstrip(",;.")
    if low in _STATES or low in _NOT_VALUES or is_placeholder(low) or _ENV_NAME.match(value):
        return False
    if low.isalpha() and low.endswith(("ed", "ing", "ly", "able", "ible", "ful")):
        return False
    return (
        len(low) >= 4
        and low.isascii()
        and "(" not in low
        and not low.startswith(("!", "[", "/", "./", "~", "env:", "file:"))
    )


def looks_like_key(value: str, *, direct: bool) -> bool:
    """Return True for a long value that looks random; if `direct`, directly after "key:", also for a UUID or hex."""
    low = value.lower()
    if (
        is_placeholder(value)
        or _ENV_NAME.match(value)
        or not value.isascii()
        or "://" in value
        or value.startswith(("/", "~", "./", "$"))
    ):
        return len(value) == 40 and bool(re.fullmatch(r"[A-Za-z0-9/+]{40}", value)) and entropy(value) > 4
    if _UUID.match(low):
        return direct
    if low in _NOT_VALUES or not re.fullmatch(r"[\w\-+/=.~!@#$%^&*]{12,300}", value) or "(" in value:
        return False
    digits = sum(c.isdigit() for c in value)
    letters = sum(c.isalpha() for c in value)
    if (
        digits < 2
        or letters < 2
        or low.startswith(("sha256", "aaaa", "0x"))
        or re.search(r"\.(?:py|js|ts|md|json|com|env|ya?ml)$", low)
    ):
        return False
    if re.fullmatch(r"[a-z]+(?:[-_.][a-z0-9]{1,8}){1,6}", low) and not looks_random(re.sub(r"[-_.]", "", value)):
        return direct and digits >= 4
    return entropy(value) >= 3.0
