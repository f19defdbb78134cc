"""Secrets in the formats of programs: settings files, commands, connection strings, headers, cookies, and private keys
on a single line. Words that a format requires are searched first, since that is faster."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scanning.formats import is_placeholder
from scanning.patterns import HintedPatterns, hinted_matches
from scanning.provider_keys import Span, looks_random
from scanning.secret_values import is_plain_value, looks_like_key, looks_like_password

# The value of a format that always contains a password: anything but a placeholder.
_VALUE = r"[\"']?(?P<v>[^\s\"'$<>|;{}]{4,100})"
_COMMANDS: HintedPatterns = tuple(
    (word, re.compile(pattern), "password")
    for word, pattern in (
        ("jdbc:oracle", r"jdbc:oracle:[a-z]{2,5}:[\w.$#]{1,60}/(?P<v>[^\s@/\"']{3,100})@"),
        ("sqlplus", r"\bsqlplus\s(?:-\w{1,3}\s){0,3}[\w.$#]{1,60}/(?P<v>[^\s@/\"']{3,100})@"),
        (
            "mysql",
            r"\bmysql(?:dump|admin|import)?\s[^\n|;<>]{0,120}?(?<=\s)-p(?!ort\b|rotocol|ager)"
            r"(?P<v>[^\s\-\"'<>|;$={][^\s\"'<>|;]{3,60})",
        ),
        ("redis-cli", rf"\bredis-cli\s[^\n|;]{{0,100}}?(?<=\s)-a\s{{1,3}}{_VALUE}"),
        ("sshpass", rf"\bsshpass\s{{1,3}}-p\s?{_VALUE}"),
        (
            " login ",
            rf"\b(?:docker|podman|buildah|skopeo|helm|oc|az|nerdctl)\s[^\n|;]{{0,40}}?\blogin\s[^\n|;]{{0,100}}?"
            rf"(?<=\s)-p[ =]{_VALUE}",
        ),
        ("net use", r"(?i)\bnet use\s[^\n]{0,120}?/user:[^\s]{1,60}\s{1,3}(?P<v>[^\s/*\"']{4,100})"),
        ("echo", r"\becho\s(?:-n\s)?[\"']?(?P<v>[^\s\"'|$]{4,100})[\"']?\s?\|\s?(?:sudo\s-S|docker login|passwd|gpg)"),
        (
            "password",
            r"\b(?:machine\s{1,9}[\w.\-]{3,80}|default)\s{1,9}login\s{1,9}[^\s]{1,80}\s{1,9}"
            r"(?:account\s{1,9}[^\s]{1,60}\s{1,9})?password\s{1,9}(?P<v>[^\s]{4,100})",
        ),
        ("identified", r"(?i)\bidentified (?:with \w{3,30} )?by (?:password )?[\"'](?P<v>[^\"'\n]{3,100})[\"']"),
        ("password", r"(?i)\b(?:with|encrypted) password [\"'](?P<v>[^\"'\n]{3,100})[\"']"),
        ("wifi:", r"WIFI:(?:[A-Z]:[^;\n]{0,60};){0,4}?P:(?P<v>[^;\n]{4,64});"),
        ("requirepass", r"(?m)^\s{0,20}requirepass\s{1,9}[\"']?(?P<v>[^\s\"']{4,100})[\"']?\s{0,9}$"),
        ("masterauth", r"(?m)^\s{0,20}masterauth\s{1,9}[\"']?(?P<v>[^\s\"']{4,100})[\"']?\s{0,9}$"),
        ("bindpw", r"(?m)^\s{0,20}bindpw\s{1,9}(?P<v>[^\s\"']{4,100})\s{0,9}$"),
    )
)
_OPTION = re.compile(
    r"(?<![\w\-])--?(?:[a-z]{1,20}-){0,2}(?:password|passwd|passphrase|pass|pwd|token|secret|api-?key)(?P<sign>=|\s)"
    r"[\"']?(?P<v>[^\s\"'<>|;$]{4,200})"
)
_ASSIGNED = re.compile(
    r"(?<![A-Za-z0-9])(?P<k>(?:[A-Z0-9]{1,20}_){0,5}(?:[A-Z]{2,6}PASSWORD|PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|SECRET"
    r"|TOKEN|API_?KEY|ACCESS_KEY|PRIVATE_KEY|SECRET_KEY(?:_BASE)?|AUTH))="
    r"(?:\"(?P<q>[^\"\n]{4,300})\"|'(?P<a>[^'\n]{4,300})'|(?P<v>[^\s\"'$<>;&|]{4,300}))"
)
# Lines of settings files: `key: value`, `key = value`, `"key": "value"`.
_PAIR = re.compile(r"[\"'](?P<k>[\w.\-]{3,60})[\"']\s{0,3}[:=]>?\s{0,3}[\"'](?P<v>[^\"'\n]{4,600})[\"']")
_LINE = re.compile(
    r"(?m)^[ \t]{0,40}(?:-[ \t]{1,4})?(?P<k>[\w.\-:/]{3,120})[ \t]{0,9}[:=][ \t]{0,9}"
    r"[\"']?(?P<v>[^\s\"'#]{4,600})[\"']?[ \t]{0,9};?$"
)
_ELEMENT = re.compile(r"<(?P<k>[\w:.\-]{3,50})>\s{0,9}(?P<v>[^<>\s]{4,300})\s{0,9}</")
_ATTRIBUTES = re.compile(
    r"(?:key|name)\s?=\s?\"(?P<k>[^\"\n]{3,80})\"[^<>\n]{0,40}?\bvalue\s?=\s?\"(?P<v>[^\"\n]{4,300})\""
)
_PASSWORD_KEY = re.compile(r"(?:^|[_.\-:]|(?<=[a-z]))(?:pass(?:word|wd|phrase|code)?|pwd|psk|pw)$")
_SECRET_KEY = re.compile(
    r"(?:secret|token|apikey|api[_\-]key|access[_\-]?key|private[_\-]?key|secret[_\-]?key(?:[_\-]?base)?|_auth|^auth"
    r"|authtoken|credentials?|key[_\-]data|signing[_\-]?key|encryption[_\-]?key|account[_\-]?key)$"
)
_ENCODED = re.compile(r"[A-Za-z0-9+/_\-]{16,600}={0,2}")
_COOKIE = re.compile(
    r"(?<![\w?&.\-])(?P<k>[\w.\-]{0,40}?(?:auth_)?(?:sess(?:ion)?(?:[_\-]?(?:id|key|token))?|sid"
    r"|auth(?:[_\-]?token)?|jwt|remember[_\-]?(?:me|token)|(?:csrf|xsrf|access|refresh|login)[_\-]?token"
    r"|li_at))=(?P<v>[\w\-.%+/=:~]{16,600})",
    re.IGNORECASE,
)
_KNOWN_COOKIES = frozenset({"phpsessid", "jsessionid", "asp.net_sessionid", "connect.sid", "sessionid", "li_at"})
_COOKIE_PARTS = re.compile(r"[A-Za-z0-9]{16,}")
_PGPASS = re.compile(
    r"(?m)^(?=[\w.\-*]{0,79}[a-zA-Z*])[\w.\-*]{1,80}:(?:\d{2,5}|\*):[\w.\-*]{1,60}:[\w.\-*]{1,60}:(?P<v>[^\s:]{4,100})$"
)
_HASHED = re.compile(r"(?<![\w$])\$(?:apr1|1|5|6|y|2[aby]|argon2(?:id|i|d)|7)\$[./A-Za-z0-9$=,+]{20,200}")
_BARE_KEY = re.compile(
    r"(?<![A-Za-z0-9+/])(?:b3BlbnNzaC1rZXktdjE|MII[A-Z][\w+/]{1,3}IBAAKCA[QgY]"
    r"|MII[A-Z][\w+/]{1,3}IBADANBgkqhkiG9w0BAQEFAASC"
    r"|MHcCAQEEI|MIG[A-Z]AgEAMBMGByqGSM49|MC4CAQAwBQYDK2VwBCIEI)[A-Za-z0-9+/=\\\s]{30,8000}"
)
_HEX_KEY = re.compile(r"(?i)private[ _\-]?key\b[^\n]{0,40}?(?<![0-9a-z])(?:0x)?(?P<v>[0-9a-f]{64})(?![0-9a-z])")
_EXTENDED_KEY = re.compile(r"(?<![A-Za-z0-9])[xyzt]prv[1-9A-HJ-NP-Za-km-z]{90,112}(?![A-Za-z0-9])")
_KEYS: HintedPatterns = (
    (":", _PGPASS, "password"),
    ("$", _HASHED, "password"),
    ("", _BARE_KEY, "private_key"),
    ("private", _HEX_KEY, "private_key"),
    ("prv", _EXTENDED_KEY, "private_key"),
)
_SECRET_HINT = re.compile(r"pass|pwd|psk|pw\b|secret|token|key|auth|credential")  # in lower case


def program_spans(text: str) -> Iterator[Span]:
    """Yield secrets in the formats of programs, in a text with its original case."""
    low = text.lower()
    for match, rule in hinted_matches(text, low, _COMMANDS):
        if _may_be_secret(match.group("v")):
            yield *match.span("v"), rule
    for match, rule in hinted_matches(text, low, _KEYS):
        yield *match.span("v" if match.re.groups else 0), rule
    if _SECRET_HINT.search(low):
        yield from _option_spans(text)
        yield from _setting_spans(text)
    if "=" in text and (
        "sid" in low or "sess" in low or "auth" in low or "token" in low or "jwt" in low or "li_at" in low
    ):
        yield from _cookie_spans(text)


def _may_be_secret(value: str) -> bool:
    return not is_placeholder(value) and not value.startswith(("%", "?", "/", "~", "-"))


def _option_spans(text: str) -> Iterator[Span]:
    for match in _OPTION.finditer(text):
        value = match.group("v")
        named = match.group("sign") == "=" and _may_be_secret(value) and is_plain_value(value)
        if named or looks_like_password(value):
            yield *match.span("v"), "password"
    for match in _ASSIGNED.finditer(text):
        group = next(name for name in ("q", "a", "v") if match.group(name) is not None)
        yield from _pair(match.group("k"), match.group(group), match.span(group))


def _setting_spans(text: str) -> Iterator[Span]:
    patterns = [_LINE] if ":" in text or "=" in text else []
    patterns += [_PAIR] if '"' in text or "'" in text else []
    patterns += [_ELEMENT, _ATTRIBUTES] if "<" in text else []
    for pattern in patterns:
        for match in pattern.finditer(text):
            yield from _pair(match.group("k"), match.group("v"), match.span("v"))


def _pair(key: str, value: str, span: tuple[int, int]) -> Iterator[Span]:
    """Yield the value of a setting if its name denotes a secret and the value can be one."""
    name = key.lower()
    if not _may_be_secret(value) or "://" in value or "<%" in value:
        return
    if _PASSWORD_KEY.search(name):
        if is_plain_value(value):
            yield *span, "password"
    elif _SECRET_KEY.search(name) and (looks_like_key(value, direct=True) or _is_encoded(value)):
        yield *span, "token"


def _is_encoded(value: str) -> bool:
    """Return True for base64, hex and similar of sufficient length, with both letters and digits."""
    digits = sum(char.isdigit() for char in value)
    return bool(_ENCODED.fullmatch(value)) and digits >= 3 and len(set(value)) >= 10 and digits < len(value)


def _cookie_spans(text: str) -> Iterator[Span]:
    for match in _COOKIE.finditer(text):
        value, name = match.group("v"), match.group("k").lower()
        parts = _COOKIE_PARTS.findall(value.replace("%3A", ".").replace("%3a", "."))
        known = name in _KNOWN_COOKIES and any(sum(char.isdigit() for char in part) >= 4 for part in parts)
        if known or any(looks_random(part) for part in parts):
            yield *match.span("v"), "token"
