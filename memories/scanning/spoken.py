"""Secrets told in words: "my password is …", "PIN: …", "API key …", in many languages.
A label announces the secret; the value is the first word behind it (or before "as my password") that looks like
one. What looks like a policy, a place or a placeholder is passed over."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memories.scanning.formats import is_placeholder
from memories.scanning.provider_keys import Span, entropy, looks_random
from memories.scanning.views import View
from memories.scanning.vocabulary import secret_words
from memories.scanning.words import UNSPACED, any_of, fold_word

_FAR = 70  # characters between a label and its value


def _labels(source: str) -> re.Pattern[str]:
    """A pattern of all labels, longest first; in spaced scripts only whole words, also as part of NAME_LIKE_THIS."""
    words = {fold_word(w.strip()) for line in source.strip().splitlines() for w in line.partition(":")[2].split(",")}
    unspaced = any_of(word for word in words if UNSPACED.match(word))
    spaced = any_of(word for word in words if not UNSPACED.match(word))
    return re.compile(rf"(?:(?<![^\W_])(?:{spaced})(?![^\W_]|[_\-][^\W_])|{unspaced})")


_PASSWORD = _labels(secret_words.PASSWORD)
_PIN = _labels(secret_words.PIN)
_KEY = _labels(secret_words.KEY)

_CONNECTOR = re.compile(
    r"""[\s"'`*)\]]{0,3}(?P<sign>:=|=>|->|[:=：＝→–—]|(?<![\w])(?:is|are|was|it's|its|ist|lautet|sind|heisst|est|es|e|son|sono|sera|equals|
    set\ to|remains|becomes|is\ now|changed\ to|reads|jest|to|je|ar|olarak|είναι|ειναι|это|is\ currently|це|είναι|هو|هي|است|ہے|है|adalah|la|on|er|var|zni)(?![\w])
    |是|为|為|就是|设为|改为|は|が|을|를|는|은|가|이)[\s"'`*:]{0,4}""",
    re.VERBOSE,
)
_WORD = re.compile(r"[^\s\"'`“”„«»「」『』<>，。、；,;()\[\]{}]+")
_QUOTED = re.compile(r"[\"'`“„«「『](?P<value>[^\"'`“”„«»「」『』\n]{3,60})[\"'`”“»」』]")
_STOP = re.compile(r"[.!。]\s|\n|; ")
_ASCII = re.compile(r"[!-~]{4,}")
_AS_LABEL = re.compile(
    r"(?P<value>[^\s\"'`]{5,64})[\"'`]? (?:as|als|como|come|comme|jako|как|як|ως)(?: (?:the|a|my|their|his|her|our|das|mein|meine|le|mon|ma|la|mi|il|mia|minha|a|het|mijn|свой|мой))? "
)
_IS_MY = re.compile(
    r"(?P<value>[^\s\"'`]{5,64})[\"'`]? (?:is|ist|est|es|e|is|jest|—|-) (?:the|my|our|their|his|her|das|mein|unser|le|mon|ma|la|mi|il|mia|minha|mijn|мой|твой|наш)? ?(?:[\w\-]{2,12} ){0,2}"
)
_USER_PASS = re.compile(
    r"(?:login|user(?:name)?|creds|credentials|account|logins?|admin)\b[^\n]{0,40}?(?:[\s:=])(?P<user>[\w.+\-]{1,40}(?:@[\w.\-]{3,60})?)(?:[:|]|\s?/\s?)(?P<value>[^\s/:|,;]{5,64})"
)

_NEEDS_CONNECTOR = frozenset({"pass", "psk", "pw", "logins"})
_EMAIL_PASS = re.compile(
    r"[\w.+\-]{1,40}@[\w\-]{1,40}(?:\.[\w\-]{1,20}){1,4}(?:\s?[/|]\s?|:)(?P<value>[^\s/:|,;]{5,64})"
)
_DEVICE_CODE = re.compile(
    r"(?:alarm|door|gate|safe|lock|garage|vault|keypad|locker|suitcase|card|phone)\b[^\n.]{0,40}?\b(?:code|combination)\b(?:\s|is|:|=|with|to){0,4}"
)
_NETWORK = re.compile(r"wi-?fi|ssid|wlan|wpa|network|hotspot|router|netzwerk|reseau|red\b|rete\b")

_NOT_A_VALUE = frozenset(
    [
        "1password",
        "lastpass",
        "keepass",
        "keepassxc",
        "bitwarden",
        "dashlane",
        "nordpass",
        "vault",
        "yubikey",
        "base64",
        "sha256",
        "sha-256",
        "sha512",
        "sha-512",
        "md5",
        "argon2",
        "argon2id",
        "bcrypt",
        "pbkdf2",
        "scrypt",
        "hs256",
        "rs256",
        "es256",
        "ed25519",
        "aes-256",
        "aes256",
        "rsa4096",
        "rsa-4096",
        "oauth2",
        "oauth2.0",
        "ipv4",
        "ipv6",
        "utf-8",
        "utf8",
        "win10",
        "win11",
        "k8s",
        "s3",
        "http2",
        "http/2",
        "tls1.2",
        "tls1.3",
        "wpa2",
        "wpa3",
        "wpa2-psk",
        "2fa",
        "mfa",
        "totp",
        "u2f",
        "fido2",
        "web3",
        "e-mail",
        "wi-fi",
        "wifi",
        "e2e",
        "i18n",
        "l10n",
        "x509",
        "p12",
        "pkcs12",
        "pkcs8",
        "pkcs#8",
        "iso-8859-1",
        "c++",
        "c#",
        "f#",
        "python3",
        "node.js",
        "next.js",
        "vue.js",
        "log4j",
        "g-suite",
        "office365",
        "microsoft365",
        "o365",
        "ms365",
        "auth0",
        "oauth-2",
        "n/a",
        "read-only",
        "sign-in",
        "log-in",
        "log-out",
        "add-on",
        "case-sensitive",
        "alphanumeric",
        "24/7",
        "co-worker",
        "built-in",
        "self-hosted",
        "passwordless",
        "one-time",
        "two-factor",
        "multi-factor",
        "openid",
        "saml2",
        "sso",
        "ldap",
    ]
)
_PLAIN_WORD_STOP = frozenset(
    [
        "stored",
        "saved",
        "kept",
        "required",
        "expired",
        "weak",
        "strong",
        "wrong",
        "correct",
        "not",
        "never",
        "reset",
        "changed",
        "managed",
        "missing",
        "empty",
        "long",
        "short",
        "unknown",
        "same",
        "different",
        "secret",
        "hidden",
        "safe",
        "private",
        "public",
        "shared",
        "encrypted",
        "hashed",
        "salted",
        "protected",
        "rotated",
        "optional",
        "invalid",
        "valid",
        "incorrect",
        "needed",
        "written",
        "here",
        "there",
        "always",
        "only",
        "too",
        "very",
        "in",
        "on",
        "at",
        "by",
        "for",
        "from",
        "the",
        "a",
        "an",
        "this",
        "that",
        "what",
        "which",
        "where",
        "when",
        "how",
        "who",
        "why",
        "again",
        "still",
        "also",
        "now",
        "then",
        "just",
        "used",
        "set",
        "disabled",
        "enabled",
        "available",
        "lost",
        "forgotten",
        "stolen",
        "leaked",
        "compromised",
        "secure",
        "insecure",
        "old",
        "new",
        "unique",
        "random",
        "generated",
        "default",
        "blank",
        "null",
        "none",
        "true",
        "false",
        "string",
        "str",
        "int",
        "text",
        "field",
        "input",
        "type",
        "form",
        "page",
        "manager",
        "reset",
        "policy",
        "protected",
        "important",
        "confidential",
        "sensitive",
        "case",
        "complicated",
        "hard",
        "easy",
        "simple",
        "difficult",
        "something",
        "anything",
        "nothing",
        "everything",
        "someone",
        "somewhere",
        "elsewhere",
        "yes",
        "no",
        "tbd",
        "todo",
        "pending",
        "updated",
        "unchanged",
        "gone",
        "hot",
        "cold",
        "open",
        "closed",
        "locked",
        "about",
        "after",
        "before",
        "because",
        "between",
        "during",
        "with",
        "without",
        "within",
        "under",
        "over",
        "per",
        "via",
        "up",
        "down",
        "out",
        "off",
        "your",
        "my",
        "his",
        "her",
        "our",
        "their",
        "its",
        "it",
        "he",
        "she",
        "they",
        "we",
        "you",
        "i",
        "me",
        "him",
        "them",
        "us",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "stark",
        "schwach",
        "falsch",
        "richtig",
        "abgelaufen",
        "geheim",
        "sicher",
        "lang",
        "kurz",
        "neu",
        "alt",
        "im",
        "in",
        "der",
        "die",
        "das",
        "ein",
        "eine",
        "nicht",
        "bei",
        "auf",
        "von",
        "zu",
        "fur",
        "und",
        "oder",
        "muss",
        "soll",
        "dans",
        "le",
        "la",
        "les",
        "un",
        "une",
        "est",
        "pas",
        "sur",
        "chez",
        "trop",
        "court",
        "long",
        "expire",
        "faible",
        "fort",
        "perdu",
        "change",
        "stocke",
        "obligatoire",
        "et",
        "ou",
        "doit",
        "en",
        "de",
        "du",
        "des",
        "en",
        "el",
        "los",
        "las",
        "una",
        "no",
        "es",
        "esta",
        "guardada",
        "caducada",
        "fuerte",
        "debil",
        "larga",
        "corta",
        "segura",
        "perdida",
        "y",
        "o",
        "debe",
        "muy",
        "de",
        "del",
        "por",
        "para",
        "con",
        "na",
        "no",
        "nos",
        "nas",
        "os",
        "as",
        "um",
        "uma",
        "nao",
        "esta",
        "guardada",
        "fraca",
        "forte",
        "curta",
        "longa",
        "segura",
        "e",
        "ou",
        "deve",
        "muito",
        "do",
        "da",
        "dos",
        "das",
        "nella",
        "nel",
        "della",
        "scaduta",
        "debole",
        "forte",
        "lunga",
        "corta",
        "sicura",
        "salvata",
        "non",
        "deve",
        "e",
        "o",
        "di",
        "del",
        "in",
        "het",
        "een",
        "niet",
        "staat",
        "verlopen",
        "sterk",
        "zwak",
        "lang",
        "kort",
        "veilig",
        "moet",
        "en",
        "of",
        "van",
        "хранится",
        "лежит",
        "записан",
        "истек",
        "слабый",
        "сильный",
        "новый",
        "старый",
        "должен",
        "в",
        "на",
        "у",
        "не",
        "это",
        "нужно",
        "надо",
        "длинный",
        "короткий",
        "изменен",
        "сменить",
    ]
)
_SHAPE_NOT = re.compile(
    r"^(?:\d{1,4}-?(?:[a-z]{1,3}|char\w*|bit\w*|byte\w*|day\w*|digit\w*|letter\w*|month\w*|word\w*|week\w*|hour\w*|min\w*|symbol\w*|time\w*|tage?\w*|zeichen\w*|jours?|caract\w+|dias?)"
    r"|\d{1,4}[./\-]\d{1,2}[./\-]\d{1,4}|v?\d+(?:\.\d+)+[a-z]?\d*|\d{1,2}:\d{2}(?:am|pm)?|[a-z]{2,12}://.*|.*/.*|~.*|\.[\w.]+|[\w\-]+\.(?:txt|md|py|js|ts|json|ya?ml|env|toml|ini|cfg|conf|html?|pdf|docx?|xlsx?|kdbx|pem|key|com|org|net|io|example|dev|app|local|internal|de|fr|ru)\W?"
    r"|[\w.+\-]+@[\w.\-]+\.\w+|[a-z]+(?:_[a-z]+)*\(.*|\d+(?:st|nd|rd|th|%|€|\$)|#\d+|[a-z]+[’'][a-z]{1,2}|\W+|[a-z]{1,12}s?/[a-z]+|\(.*|--?[a-z][a-z\-=]*|[a-z]+-\d{1,4}|[a-z]\d{1,2}|q[1-4]|[a-z]{1,3}-?\d{1,2})$"
)
_UUID = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
_ENV_NAME = re.compile(r"^\$?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$")
_PLACES = frozenset(
    [
        "in",
        "with",
        "via",
        "by",
        "using",
        "through",
        "under",
        "inside",
        "within",
        "per",
        "at",
        "on",
        "from",
        "mit",
        "bei",
        "im",
        "auf",
        "dans",
        "avec",
        "en",
        "con",
        "sur",
        "chez",
        "em",
        "com",
        "nel",
        "in",
        "met",
        "в",
        "на",
        "через",
        "с",
    ]
)
_NEGATED = frozenset(
    [
        "no",
        "not",
        "never",
        "without",
        "must",
        "should",
        "cannot",
        "can't",
        "don't",
        "isn't",
        "aren't",
        "kein",
        "keine",
        "nicht",
        "sans",
        "pas",
        "ne",
        "sin",
        "no",
        "sem",
        "nao",
        "senza",
        "non",
        "geen",
        "niet",
        "без",
        "не",
        "нет",
        "muss",
        "soll",
        "doit",
        "debe",
        "deve",
        "moet",
        "должен",
        "может",
        "必须",
        "needs",
        "need",
        "requires",
        "require",
        "has",
    ]
)


def spoken_spans(view: View, original: str) -> Iterator[Span]:
    """Values announced by a label in a folded view, as spans of the view; `original` is the text it was made from."""
    text = view.text
    for match in _PASSWORD.finditer(text):
        yield from _values_behind(view, original, match, "password")
    for match in _PIN.finditer(text):
        yield from _digits_behind(text, match)
    for match in _KEY.finditer(text):
        network = _NETWORK.search(text, max(0, match.start() - 50), match.start())
        yield from _values_behind(view, original, match, "password" if network else "token")
    for pattern in (_AS_LABEL, _IS_MY):
        for match in pattern.finditer(text):
            label = _PASSWORD.match(text, match.end()) or _PIN.match(text, match.end())
            value = _cased(view, original, *match.span("value"))
            if label and _looks_like_password(value):
                yield *match.span("value"), "password"
    for match in _DEVICE_CODE.finditer(text):
        yield from _digits_behind(text, match)
    for match in (*_USER_PASS.finditer(text), *_EMAIL_PASS.finditer(text)):
        value = _cased(view, original, *match.span("value"))
        if _looks_like_password(value):
            yield *match.span("value"), "password"


def _cased(view: View, original: str, start: int, end: int) -> str:
    """The value as it was written, when the view still shows it letter by letter."""
    if view.region is not None:
        return view.text[start:end]
    first, last = view.located(start, end)
    piece = original[first:last]
    return piece if fold_word(piece) == view.text[start:end] else view.text[start:end]


def _values_behind(view: View, original: str, label: re.Match[str], rule: str) -> Iterator[Span]:
    text = view.text
    limit = min(len(text), label.end() + _FAR)
    stop = _STOP.search(text, label.end(), limit)
    limit = stop.start() if stop else limit
    connector = _CONNECTOR.match(text, label.end(), limit)
    if connector is None and (
        text[label.end() : label.end() + 1] in tuple("\"'`") or _is_bare_abbreviation(text, label)
    ):
        return
    if connector is None and label.end() < limit and text[label.end()] not in " ,\"'`)]*":
        return
    if quoted := _quoted_behind(text, label.end(), connector):
        value = _cased(view, original, *quoted.span("value"))
        if rule == "password" and _is_quoted_password(value):
            yield *quoted.span("value"), rule
            return
    if connector and "phrase" in label.group() and (rest := _PHRASE.match(text, connector.end(), limit)):
        yield *rest.span(), rule
        return
    before = ""
    for count, match in enumerate(
        _WORD.finditer(text, connector.end() if connector else label.end(), label.end() + _FAR + 60)
    ):
        if match.start() >= limit or count > 9:
            return
        start, end = _trimmed(text, *match.span(), original)
        if text[start:end].isascii() is False and (plain := _ASCII.match(text, start, end)):
            end = plain.end()
        value = _cased(view, original, start, end)
        if is_placeholder(value) or text[end : end + 1] == "(" or value.startswith("[redacted"):
            return
        direct = connector is not None and count == 0
        if _accepts(rule, value, direct=direct, before=before):
            yield start, end, rule
            return
        if direct and rule == "password" and _is_plain_password(text, connector, start, end):
            yield start, end, rule
            return
        if text[start:end] in _NEGATED:
            return
        before = text[start:end]


# A passphrase of plain words: at least four to the end of the sentence.
_PHRASE = re.compile(
    r"(?!(?:in|on|at|for|is|not|never|required|stored|kept|must|dans|im|en|na|nel|the|a|an|with|by|to) )[^\W\d_]{1,14}(?:[ \-][^\W\d_]{1,14}){3,11}(?=[.!]?\s{0,3}$|[.\n])"
)


def _is_bare_abbreviation(text: str, label: re.Match[str]) -> bool:
    """Whether "pass" or "pw" stands before something that is neither quoted nor full of signs: "boarding pass LH1234"."""
    if label.group() not in _NEEDS_CONNECTOR:
        return False
    return not re.match(r"\s[\"'“]|\s(?=\S*[!@#$%^&*])(?=\S*\d)\S{6,}", text[label.end() : label.end() + 40])


def _quoted_behind(text: str, at: int, connector: re.Match[str] | None) -> re.Match[str] | None:
    if connector is not None:
        return _QUOTED.match(text, connector.end() - 1) or _QUOTED.match(text, connector.end())
    return _QUOTED.match(text, at + 1) if text[at : at + 1] in (" ", ",") else None


def _accepts(rule: str, value: str, *, direct: bool, before: str) -> bool:
    if before in _PLACES:
        return False
    if rule == "token":
        return _looks_like_key(value, direct=direct)
    return _looks_like_password(value)


def _trimmed(text: str, start: int, end: int, original: str) -> tuple[int, int]:
    """Without punctuation that belongs to the sentence; a closing "!" is kept, it is often part of a password."""
    while end > start + 1 and text[end - 1] in ".:?…":
        end -= 1
    while start < end - 1 and text[start] in ":=→":
        start += 1
    return start, end


def _looks_like_password(value: str) -> bool:
    """Letters with digits or signs among them, and not a date, version, unit, file, product or variable name."""
    low = value.lower()
    bare = low.rstrip("!.,")
    if (
        not 5 <= len(value) <= 100
        or bare in _NOT_A_VALUE
        or _SHAPE_NOT.match(low)
        or _UUID.match(low)
        or _ENV_NAME.match(value)
    ):
        return False
    if is_placeholder(value) or not value.isascii():
        return False
    letters = any(c.isalpha() for c in value)
    digits = any(c.isdigit() for c in value)
    signs = any(c in "!@#$%^&*?+~=_" for c in value[:-1]) or (value[-1] in "@#$%^&*+~=_" and not digits)
    if value.endswith("!!"):
        signs = True
    return letters and (digits or signs) and not (low.startswith("$") or low.startswith("<"))


def _is_quoted_password(value: str) -> bool:
    low = value.lower().strip()
    if is_placeholder(value) or low in _PLAIN_WORD_STOP or low in _NOT_A_VALUE or _ENV_NAME.match(value):
        return False
    if low.startswith(("new-", "current-", "http")) or "password" in low.replace("_", "").replace("-", ""):
        return bool(re.search(r"\d", low)) and not _ENV_NAME.match(value)
    return len(low) >= 4 and "." not in low[:1]


def _is_plain_password(text: str, connector: re.Match[str] | None, start: int, end: int) -> bool:
    """One plain word and nothing after it: "password: swordfish"."""
    value = text[start:end]
    if connector is None or not value.isascii() or not 4 <= len(value) <= 40 or not re.fullmatch(r"[a-z\-]+", value):
        return False
    rest = text[end : end + 2].strip()
    if value in _PLAIN_WORD_STOP or value in _NOT_A_VALUE or value.endswith(("ed", "ing", "ly", "able", "ible", "ful")):
        return False
    return not rest or rest[0] in ".,;!)\n"


def _looks_like_key(value: str, *, direct: bool) -> bool:
    """A long value of random look; right behind "key:" also a UUID or hex."""
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
    if low in _NOT_A_VALUE or not re.fullmatch(r"[\w\-+/=.~!@#$%^&*]{12,300}", value) or "(" in value:
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


_PIN_VALUE = re.compile(
    r"(?<![a-z0-9_.,:/\-+$€£])(?:\d{4,8}|\d{3}(?=\D|$)|\d{2}(?:[ \-]\d{2}){1,3}|\d{3}[ \-]\d{2}[ \-]\d{4}|\d{3}[ \-]\d{3}|\d{2,5}[a-z]\d{0,5})(?![a-z0-9_%]|[./:\-]\d)"
)
_PLACE_CODE = re.compile(r"(?:door|gate|entry|building) code")
_PIN_NOT = re.compile(
    r"^\s?(?:digits?|characters?|times?|attempts?|minutes?|hours?|days?|seconds?|years?|stell|ziffern|zeichen|chiffres|digitos|cifre|cijfers|знак|цифр|位|桁|자리|رقم|people|users|tries|hz|km|kg|€|usd|eur)"
)


def _digits_behind(text: str, label: re.Match[str]) -> Iterator[Span]:
    limit = min(len(text), label.end() + 45)
    stop = _STOP.search(text, label.end(), limit)
    match = _PIN_VALUE.search(text, label.end(), stop.start() + 1 if stop else limit)
    if match is None:
        return
    value = match.group()
    between = text[label.end() : match.start()]
    if _PIN_NOT.match(text[match.end() : match.end() + 14]) or set(re.findall(r"[^\W\d_]+", between)) & _NEGATED:
        return
    if (
        _PLACE_CODE.match(label.group())
        and label.start()
        and re.fullmatch(r"\W*", between)
        and not re.search(r"[:=]", between)
    ):
        return  # "door code 90412" in a description of the way; "door code: …" and "door code is …" are told as secrets
    if len(value) == 3 and not label.group().startswith(("cv", "pin", "security")):
        return
    yield match.start(), match.end(), "pin"
