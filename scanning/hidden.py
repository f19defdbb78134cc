"""Finds characters that a person cannot see but a model reads.
The rules depend on the script: joiners are allowed between emoji and in scripts that join letters, tag characters in
flags, direction marks in right-to-left text, soft hyphens between syllables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, pairwise

from scanning.characters import ACCENTS, BLACK_FLAG, BLANKS, INVISIBLE, LOOKALIKES, folded, script_of
from scanning.verdict import Finding

_ANSI = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_FLAG = re.compile(
    f"{BLACK_FLAG}[\U000e0061-\U000e007a]{{2}}[\U000e0030-\U000e0039\U000e0061-\U000e007a]{{1,4}}\U000e007f"
)
_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_OVERRIDES = re.compile("[\u202d\u202e]")
_DIRECTIONS = re.compile("[\u202a\u202b\u2066\u2067\u2068]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
_ZERO_WIDTH = re.compile("[\u180e\u200b-\u200f\u2060\ufeff\u034f\u061c\u17b4\u17b5]+")
_FORMAT_CONTROLS = re.compile("[\u2061-\u2065\u206a-\u206f\ufff9-\ufffb\U0001d173-\U0001d17a]")
_FILLERS = re.compile("[\u115f\u1160\u3164\uffa0]")
_HANGUL = re.compile("[\u1100-\u115e\u1161-\u11ff\u3131-\u3163\uac00-\ud7af]")
_SOFT_HYPHENS = re.compile("(?:[^\\W\\d_]{1,2}\u00ad){3,}")
_STACKED = re.compile(r"\w[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{3,}")
_WORD = re.compile(r"[^\W\d_]+")
# Pattern, rule, and a pattern whose match anywhere in the text makes it legitimate.
_RULES: tuple[tuple[re.Pattern[str], str, re.Pattern[str] | None], ...] = (
    (_OVERRIDES, "direction_override", None),
    (_DIRECTIONS, "direction_override", _RIGHT_TO_LEFT),
    (_FORMAT_CONTROLS, "invisible_characters", None),
    (_FILLERS, "invisible_characters", _HANGUL),
    (_SOFT_HYPHENS, "invisible_characters", None),
)
# Scripts in whose words a joiner, non-joiner or zero-width space has no function.
_PLAIN_SCRIPTS = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "GEORGIAN", "HAN", "CJK", "HIRAGANA", "KATAKANA"})
_LOOKALIKE_SCRIPTS = frozenset({"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"})
_HIDING = INVISIBLE | BLANKS | ACCENTS  # all other rules are about some of these

HIDDEN = "contains characters that a person cannot see"


def hidden_findings(text: str) -> list[Finding]:
    """Return the hidden characters of the raw text. ASCII text, the common case, costs one search."""
    spans = [(m.start(), m.end(), "control_characters") for m in _ANSI.finditer(text)][:1]
    if not text.isascii():
        spans.extend(_unicode_spans(text))
    return [
        Finding(kind="injection", rule=rule, start=start, end=end, reason=_REASONS.get(rule, HIDDEN))
        for start, end, rule in spans
    ]


_REASONS = {
    "control_characters": "contains terminal control characters",
    "mixed_scripts": "writes words with look-alike letters of another script",
    "stacked_accents": "hides words under stacked accents",
    "direction_override": "contains characters that reverse the reading direction",
}


def _unicode_spans(text: str) -> Iterator[tuple[int, int, str]]:
    letters = set(text)
    if not _HIDING.isdisjoint(letters):
        yield from _hiding_spans(text)
    if any(script_of(char) in _LOOKALIKE_SCRIPTS for char in letters):
        yield from _mixed_scripts(text)


def _hiding_spans(text: str) -> Iterator[tuple[int, int, str]]:
    if tags := _TAGS.search(_FLAG.sub(lambda flag: " " * len(flag[0]), text)):
        yield *tags.span(), "tag_characters"
    for pattern, rule, allowed_with in _RULES:
        found = pattern.search(text)
        if found and not (allowed_with and allowed_with.search(text)):
            yield found.start(), found.end(), rule
    yield from islice(_selector_spans(text), 1)
    yield from islice(_zero_width_spans(text), 1)
    stacked = list(_STACKED.finditer(text))
    if len(stacked) >= 2:
        yield stacked[0].start(), stacked[-1].end(), "stacked_accents"


def _selector_spans(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _SELECTORS.finditer(text):
        before = text[match.start() - 1] if match.start() else ""
        if len(match.group()) > 1 or script_of(before) in ("LATIN", "CYRILLIC", "GREEK") or not before.strip():
            yield match.start(), match.end(), "variation_selectors"


def _zero_width_spans(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _ZERO_WIDTH.finditer(text):
        start, end = match.span()
        before = script_of(text[start - 1]) if start else ""
        after = script_of(text[end]) if end < len(text) else ""
        inside = before in _PLAIN_SCRIPTS and after in _PLAIN_SCRIPTS and "LATIN" in (before, after)
        inside = inside or (before == after and before in ("CYRILLIC", "GREEK"))
        if inside or len(match.group()) >= 3:
            yield start, end, "zero_width"


def _mixed_scripts(text: str) -> Iterator[tuple[int, int, str]]:
    """Find at least three words that mix Latin letters with look-alikes, or one where look-alikes are between Latin
    letters."""
    mixed: list[re.Match[str]] = []
    for match in _WORD.finditer(text):
        word = match.group()
        if word.isascii():
            continue
        scripts = [script_of(char) for char in word if char not in INVISIBLE and char not in ACCENTS]
        kinds = set(scripts) - {""}
        if "LATIN" not in kinds or not kinds & _LOOKALIKE_SCRIPTS or len(word) < 3:
            continue
        foreign = [folded(c) for c, script in zip(word, scripts, strict=False) if script in _LOOKALIKE_SCRIPTS]
        if all(char in LOOKALIKES for char in foreign):
            mixed.append(match)
    disguised = [m for m in mixed if _script_changes(m.group()) >= 2]
    if disguised or len(mixed) >= 3:
        yield mixed[0].start(), mixed[-1].end(), "mixed_scripts"


def _script_changes(word: str) -> int:
    """Return how often the script changes within a word: once in a loan word with an ending, more often in a
    disguise."""
    scripts = [script for script in map(script_of, word) if script]
    return sum(1 for left, right in pairwise(scripts) if left != right)
