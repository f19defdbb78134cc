"""Rules that are regular expressions over a folded (lower-case) view, and their matching.
Patterns must run in linear time: no repeated group may match the same text in two ways."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scanning.verdict import Finding
from scanning.views import View


@dataclass(frozen=True, slots=True)
class Alternative:
    """A pattern, and words of which any matching text contains at least one. They are checked first, since that is
    faster."""

    pattern: re.Pattern[str]
    needs: tuple[str, ...] = ()

    def may_match(self, text: str) -> bool:
        """Return False if a folded text contains none of the words."""
        for word in self.needs:
            if word in text:
                return True
        return not self.needs

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match in a folded text."""
        return self.pattern.search(text) if self.may_match(text) else None


@dataclass(frozen=True, slots=True)
class PatternRule:
    """Alternatives that share a name and a reason."""

    name: str
    reason: str
    alternatives: tuple[Alternative, ...]

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match in a folded text; at the same position, that of the first alternative."""
        found = [match for alternative in self.alternatives if (match := alternative.search(text))]
        return min(found, key=lambda match: match.start(), default=None)


def needing(words: str, pattern: str) -> Alternative:
    """Return an alternative whose pattern only matches texts with one of these words."""
    return Alternative(re.compile(pattern), tuple(words.split()))


def pattern_rule(name: str, reason: str, *alternatives: str | Alternative) -> PatternRule:
    """Return a rule made of patterns and alternatives."""
    compiled = (Alternative(re.compile(item)) if isinstance(item, str) else item for item in alternatives)
    return PatternRule(name, reason, tuple(compiled))


def pattern_findings(view: View, rules: Iterable[PatternRule]) -> Iterator[Finding]:
    """Return the first match of each rule in a folded view."""
    for rule in rules:
        if match := rule.search(view.text):
            start, end = view.located(*match.span())
            yield Finding(kind="injection", rule=rule.name, start=start, end=end, reason=rule.reason)
