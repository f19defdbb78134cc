"""Keys and tokens of providers, recognised by their format.
Most formats come from the kingfisher library (offline, detection only, never validation); this module adds those that
it lacks, and a general format for tokens with a prefix."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache, lru_cache

from kingfisher_sdk import Rules, Scanner

from scanning.words import word_set

# A value to hide: start, end, rule name.
Span = tuple[int, int, str]

# Excluded rules of the library: they match common values near a word, or formats.py covers them, with placeholders.
_EXCLUDED_RULES = (
    "generic-credential-uri",
    "azure-tenant-id",
    "private-key",
    "jwt",
    "curl-auth",
    "mongodb-connection",
    "1password-vault",
)

_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}(?![A-Z0-9])"
    r"|GOCSPX-[\w\-]{20,60}|ya29\.[\w\-]{20,300}|1//0[\w\-]{30,120}|NR(?:AK|JS|II|AL|BR|RA)-[A-Za-z0-9_\-]{18,60}"
    r"|f[mo][12]_[\w\-+/=]{20,400}|pscale_(?:tkn|pw|oauth|otkn)_[\w\-.=]{20,80}|\d{8,10}:AA[\w\-]{30,40}"
    r"|[0-9a-f]{32}-us\d{1,2}(?!\d)|gl(?:pat|dt|rt|ptt|ft|imt|agent|oas|soat|cbt|ffct)-[\w\-.]{18,80}"
    r"|gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_\w{40,255}|xox[abposer](?:-[A-Za-z0-9]{1,80}){2,6}"
    r"|sk-(?:proj|svcacct|admin|ant|or|lf|live|test)-[\w\-]{20,300}|sk-[A-Za-z0-9]{32,80}"
    r"|(?:sk|rk|pk|whsec)_(?:live|test)_[A-Za-z0-9]{16,120}|whsec_[A-Za-z0-9+/=]{24,80}"
    r"|AIza[\w\-]{30,40}|hf_[A-Za-z]{30,40}|r8_[A-Za-z0-9]{30,45}|gsk_[A-Za-z0-9]{40,60}"
    r"|pplx-[A-Za-z0-9]{40,60}|xai-[A-Za-z0-9]{60,90}|SG\.[\w\-]{16,30}\.[\w\-]{30,60}|key-[0-9a-f]{32}|AC[0-9a-f]{32}"
    r"|npm_[A-Za-z0-9]{30,40}|pypi-[\w\-]{50,250}|rubygems_[0-9a-f]{40,60}|dckr_(?:pat|oat)_[\w\-]{20,60}"
    r"|do[opr]_v1_[0-9a-f]{40,70}|pul-[0-9a-f]{36,44}|dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.\-]{36,80}"
    r"|dapi[0-9a-f]{30,34}(?:-\d)?|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{30,34}|hv[sbr]\.[\w\-]{20,300}|(?:s"
    r"|b)\.[A-Za-z0-9]{24}(?![A-Za-z0-9])|glsa_[\w]{30,60}|glc_[\w+/=]{30,400}|eyJrIjoi[\w+/=]{40,200}"
    r"|lin_(?:api|oauth)_[A-Za-z0-9]{30,70}|(?:secret|ntn)_[A-Za-z0-9]{36,60}|PMAK-[0-9a-f]{24}-[0-9a-f]{30,36}"
    r"|AT(?:ATT|CTT|BB)[\w\-=]{20,400}|sntry[su]_[\w+/=\-]{30,300}|sq0(?:atp|csp|idp)-[\w\-]{20,50}"
    r"|EAAA[\w\-]{50,70}|EAA[A-Za-z0-9]{80,250}"
    r"|[A-Za-z0-9]{10,16}\.atlasv1\.[\w\-=]{40,90}|fig[dou]_[\w\-]{30,60}|sb[pv]_[0-9a-f]{36,50}"
    r"|sb_secret_[\w\-]{20,60}"
    r"|ops_eyJ[\w+/=\-]{40,900}|A3-[A-Z0-9]{6}(?:-[A-Z0-9]{5,6}){4,6}|AGE-SECRET-KEY-1[A-Z0-9]{50,70}"
    r"|nvapi-[\w\-]{40,80}|tvly-[\w\-]{20,50}|jina_[\w]{40,80}|co_[A-Za-z0-9]{36,44}"
    r"|re_[A-Za-z0-9]{6,12}_[A-Za-z0-9]{16,30}|fc-[0-9a-f]{30,34}"
    r"|CFPAT-[\w\-]{40,50}|rnd_[A-Za-z0-9]{24,40}|rpa_[A-Z0-9]{36,60}|tfp_[\w\-]{40,70}"
    r"|vc[pcairk]_[\w]{20,70}|vercel_[\w]{20,60}|nf[pco]_[A-Za-z0-9]{30,50}"
    r"|rdme_[a-z0-9]{60,80}|pat-(?:na|eu)\d-[0-9a-f\-]{36}|pat[A-Za-z0-9]{14}\.[0-9a-f]{60,66}"
    r"|bkua_[0-9a-f]{38,42}|CCIPAT_[\w]{20,70}"
    r"|LTAI[A-Za-z0-9]{12,24}|AKID[A-Za-z0-9]{28,36}|oy2[a-z0-9]{40,46}|phc_[A-Za-z0-9]{36,50}"
    r"|phx_[A-Za-z0-9]{36,60}|cio[A-Za-z0-9]{30,34}(?![A-Za-z0-9])"
    r"|AAAA[A-Za-z0-9_\-]{7}:APA91[\w\-]{100,180}|patp?_[A-Za-z0-9]{30,60}|access_token\$(?:production"
    r"|sandbox)\$[a-z0-9]{16}\$[0-9a-f]{32}|duffel_(?:test|live)_[\w\-=]{40,50}|EZ[AT]K[a-z0-9]{50,60}"
    r"|sha_[\w]{30,60}|tk-us-[\w\-]{40,60}|api_org_[A-Za-z]{34}|fw_[A-Za-z0-9]{20,40}|tgp_v1_[\w\-]{40,50}"
    r"|csk-[a-z0-9]{40,60}|ls(?:v2_(?:pt|sk)|__)_?[0-9a-f_]{32,60})"
)
_WEBHOOKS = re.compile(
    r"https://(?:(?:ptb\.|canary\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{10,22}/[\w\-]{20,90}"
    r"|hooks\.slack\.com/(?:services|workflows|triggers)/[\w/]{20,100}"
    r"|[\w\-]{1,60}\.webhook\.office\.com/webhookb2/[\w\-@/]{40,300}|hooks\.zapier\.com/hooks/catch/\d{3,12}/\w{4,20}"
    r"|chat\.googleapis\.com/v1/spaces/[\w\-]{6,30}/messages\?key=[\w\-&=%]{20,200})"
)
# prefix_body, where the body must look random (both cases and digits, or long hex).
_PREFIXED = re.compile(r"(?<![\w/\-.=&?#%])(?:[a-z][a-z0-9]{1,11}[_\-]){1,3}(?P<body>[A-Za-z0-9]{20,200})(?![\w\-/])")
# Prefixes of identifiers that appear in URLs and logs and give no access.
_IDENTIFIERS = word_set("""
price cus prod sub pi acct evt ch in txn req card pm si seti order msg thread asst run file chatcmpl resp
call user org proj id team cs src ba po tr sess session job task step item doc page block vs batch ft
ftjob img image build commit node pod usr product customer plan coupon promo invoice payout account
project workspace channel event test rev deploy trace span
""")
_WIREGUARD = re.compile(
    r"(?i:wireguard|private ?key|preshared ?key|psk"
    r"|wg)\b[^\n]{0,60}?(?<![A-Za-z0-9+/=])(?P<key>[A-Za-z0-9+/]{43}=)(?!=)"
)


def warm() -> None:
    """Load the provider rules, which the first scan of a process does otherwise (tenths of a second; seconds on a
    machine that has not cached them on disk yet)."""
    _scanner()


@cache
def _scanner() -> Scanner:
    return Scanner(Rules())


def provider_spans(text: str) -> Iterator[Span]:
    """Yield provider keys in a text with its original case."""
    if len(text) < 16:
        return
    for pattern in (_SHAPES, _WEBHOOKS):
        for match in pattern.finditer(text):
            if not is_filler(match.group()):
                yield match.start(), match.end(), "provider_key"
    for match in _WIREGUARD.finditer(text):
        yield match.start("key"), match.end("key"), "private_key"
    for match in _PREFIXED.finditer(text):
        prefix = re.split(r"[_\-]", match.group(), maxsplit=1)[0]
        if prefix not in _IDENTIFIERS and looks_random(match.group("body")):
            yield match.start(), match.end(), "provider_key"
    yield from _library_spans(text)


def _library_spans(text: str) -> Iterator[Span]:
    encoded = text.encode("utf-8", "replace")
    offsets: list[int] | None = None
    for finding in _scanner().scan(encoded):
        if not finding.visible or finding.is_base64_encoded or any(part in finding.rule_id for part in _EXCLUDED_RULES):
            continue
        if is_filler(finding.secret):
            continue
        start, end = finding.location["start_offset"], finding.location["end_offset"]
        if len(encoded) != len(text):
            offsets = offsets or _character_offsets(text)
            start, end = offsets[min(start, len(offsets) - 1)], offsets[min(end, len(offsets) - 1)]
        yield start, min(end, len(text)), "provider_key"


def _character_offsets(text: str) -> list[int]:
    """Return the character offset for every byte of the text's UTF-8 encoding."""
    offsets: list[int] = []
    for position, char in enumerate(text):
        offsets.extend([position] * len(char.encode("utf-8", "replace")))
    offsets.append(len(text))
    return offsets


def entropy(text: str) -> float:
    """Return the Shannon entropy in bits per character."""
    counts = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values()) if text else 0.0


@lru_cache(maxsize=1024)
def looks_random(body: str) -> bool:
    """Return True if a run of letters and digits looks random: mixed case with digits, or hex, of high entropy."""
    digits = sum(char.isdigit() for char in body)
    upper = sum(char.isupper() for char in body)
    lower = sum(char.islower() for char in body)
    if digits < 2 or entropy(body) < 3.0:
        return False
    mixed = upper >= 2 and lower >= 2
    hexadecimal = all(char in "0123456789abcdefABCDEF" for char in body) and len(body) >= 32
    return mixed or hexadecimal or (digits >= 4 and len(body) >= 24 and entropy(body) >= 3.5)


_FILLER = re.compile(
    r"x{5,}|X{5,}|\*{4,}|\.{3,}|0{8,}|1234567890(?:abc|$)|abcdefgh|(?i:example|placeholder|your|changeme"
    r"|redacted|dummy|insert|sample|fake|todo|<|>)"
)


def is_filler(value: str) -> bool:
    """Return True if the value is a placeholder rather than a secret."""
    return bool(_FILLER.search(value)) or (len(value) >= 8 and len(set(value)) <= 3)
