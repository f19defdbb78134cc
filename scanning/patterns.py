"""Rules that are regular expressions over a folded (lower-case) view, and their matching.
Patterns must run in linear time: no repeated group may match the same text in two ways. `hinted_matches` serves the
formats of secrets, which are searched in a text with its original case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scanning.verdict import Finding
from scanning.views import View


@dataclass(frozen=True, slots=True)
class PatternRule:
    """Patterns that share a name and a reason, each with whether its matches begin at the beginning of a word."""

    name: str
    reason: str
    patterns: tuple[tuple[re.Pattern[str], bool], ...]


def pattern_rule(name: str, reason: str, *patterns: str) -> PatternRule:
    """Return a rule made of patterns. Those that begin with a word boundary must continue with a letter."""
    # Without the boundary, `re` skips to the letters with which a match can begin, in a third of the time.
    rows = ((re.compile(pattern.removeprefix(r"\b")), pattern.startswith(r"\b")) for pattern in patterns)
    return PatternRule(name, reason, tuple(rows))


def _first(pattern: re.Pattern[str], at_word: bool, text: str) -> re.Match[str] | None:
    match = pattern.search(text)
    while at_word and match and (start := match.start()) and (text[start - 1].isalnum() or text[start - 1] == "_"):
        match = pattern.search(text, start + 1)
    return match


def pattern_findings(view: View, rules: Iterable[PatternRule]) -> Iterator[Finding]:
    """Return the first match of each rule in a folded view; at the same position, that of its first pattern."""
    for rule in rules:
        if found := [match for pattern, at_word in rule.patterns if (match := _first(pattern, at_word, view.text))]:
            start, end = view.located(*min(found, key=re.Match.start).span())
            yield Finding(kind="injection", rule=rule.name, start=start, end=end, reason=rule.reason)


HintedPatterns = tuple[tuple[str, re.Pattern[str], str], ...]
"""(word, pattern, rule) rows; any text that the pattern matches contains the word, in lower case."""


def hinted_matches(text: str, low: str, rows: HintedPatterns) -> Iterator[tuple[re.Match[str], str]]:
    """Yield the matches in a text, and the rule of each; `low` is the text in lower case."""
    for word, pattern, rule in rows:
        for match in pattern.finditer(text) if word in low else ():
            yield match, rule
