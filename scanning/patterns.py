"""Rules that are patterns over a folded (lower-case) view, and how they are looked for.
Patterns are linear: no repeated group that can match the same text in two ways."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scanning.verdict import Finding
from scanning.views import View


@dataclass(frozen=True, slots=True)
class Alternative:
    """A pattern, and words of which a text that it matches has at least one: they are quick to look for."""

    pattern: re.Pattern[str]
    needs: tuple[str, ...] = ()

    def may_match(self, text: str) -> bool:
        """Return True unless a folded text lacks all of the words."""
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
        """Return the first match in a folded text; of several at one place that of the first alternative."""
        found = [match for one in self.alternatives if (match := one.search(text))]
        return min(found, key=lambda match: match.start(), default=None)


def needing(words: str, pattern: str) -> Alternative:
    """Return a pattern that matches no text without one of these words."""
    return Alternative(re.compile(pattern), tuple(words.split()))


def pattern_rule(name: str, reason: str, *alternatives: str | Alternative) -> PatternRule:
    """Return a rule of patterns and of alternatives."""
    found = (Alternative(re.compile(one)) if isinstance(one, str) else one for one in alternatives)
    return PatternRule(name, reason, tuple(found))


def pattern_findings(view: View, rules: Iterable[PatternRule]) -> Iterator[Finding]:
    """Return the first match of each rule in a folded view."""
    for rule in rules:
        if match := rule.search(view.text):
            start, end = view.located(*match.span())
            yield Finding(kind="injection", rule=rule.name, start=start, end=end, reason=rule.reason)
