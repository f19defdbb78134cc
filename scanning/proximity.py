"""Matches order rules: do words of certain classes occur near each other in one sentence?
Rules are data (`orders.py`); this module compiles them to bit masks and finds matches in linear time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scanning.sentences import Sentence
from scanning.views import View
from scanning.words import BIT

_TERM = re.compile(r"(?P<classes>[A-Z_|]+)\((?P<before>-?\d+),(?P<after>\d+)\)")

Check = Callable[[Sentence, int], bool]


@dataclass(frozen=True, slots=True)
class Family:
    """Rules that share a name and a reason; `rules` is text in the notation of `orders.py`. What `ambiguous` rules find
    may also be an everyday wish."""

    name: str
    reason: str
    rules: str
    ambiguous: bool = False


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule as bit masks. `near` holds (mask, words before, words after)."""

    name: str
    reason: str
    anchor: int
    near: tuple[tuple[int, int, int], ...]
    excuse: int
    check: Check | None
    ambiguous: bool


def mask_of(names: str) -> int:
    """Return the bit mask of class names separated by `|`. Raises KeyError for an unknown class."""
    return sum(BIT[name] for name in set(names.split("|")))


def compiled(family: Family, checks: Mapping[str, Any]) -> list[CompiledRule]:
    """Compile the rules of a family; `checks` are the functions that a rule may name after `?`."""
    rules = []
    for line in re.sub(r"\n\s+\+", " +", family.rules).strip().splitlines():
        body, _, check = line.strip().partition(" ? ")
        terms, _, excuse = body.partition(" - ")
        anchor, *others = terms.split(" + ")
        near = []
        for term in others:
            match = _TERM.fullmatch(term.strip())
            if match is None:
                raise ValueError(f"{family.name}: cannot read {term!r}")
            near.append((mask_of(match["classes"]), -int(match["before"]), int(match["after"])))
        rules.append(
            CompiledRule(
                name=family.name,
                reason=family.reason,
                anchor=mask_of(anchor),
                near=tuple(near),
                excuse=mask_of(excuse) if excuse else 0,
                check=checks[check.strip()] if check else None,
                ambiguous=family.ambiguous,
            )
        )
    return rules


_NEARBY = 6  # words around a match within which an excuse counts


def _match(rule: CompiledRule, sentence: Sentence, at: int) -> tuple[int, int] | None:
    """Return the first and last word of a match around the anchor at `at`, or None."""
    masks = sentence.masks
    first = last = at
    for mask, before, after in rule.near:
        for place in _positions(at, before, after, len(masks)):
            if masks[place] & mask:
                first, last = min(first, place), max(last, place)
                break
        else:
            return None
    if rule.excuse and any(mask & rule.excuse for mask in masks[max(0, first - _NEARBY) : last + _NEARBY + 1]):
        return None
    if rule.check is not None and not rule.check(sentence, at):
        return None
    return first, last


_META = BIT["META"]
QUOTE = re.compile("[\"“”„«»「」『』‘`]|(?<!\\w)'|'(?!\\w)")


def _is_mentioned(view: View, sentence: Sentence, span: tuple[int, int]) -> bool:
    """Return True if the match is in quotation marks, in a sentence about such texts ("phrases such as …")."""
    if not any(mask & _META for mask in sentence.masks[: span[0]]):
        return False
    start, end = sentence.starts[span[0]], sentence.ends[span[1]]
    opened = len(QUOTE.findall(view.text, sentence.starts[0], start))
    return opened % 2 == 1 and QUOTE.search(view.text, end, end + 80) is not None


def _positions(at: int, before: int, after: int, length: int) -> list[int]:
    """Return the positions around the anchor, without it: those after it by distance, then those before it."""
    return [*range(at + 1, min(at + after, length - 1) + 1), *range(at - 1, max(at - before, 0) - 1, -1)]


MAX_DOUBTFUL = 4


def order_matches(
    view: View,
    sentence: Sentence,
    rules: tuple[CompiledRule, ...],
    is_doubtful: Callable[[CompiledRule, Sentence, int, int], bool],
) -> Iterator[tuple[CompiledRule, int, int, bool]]:
    """Yield the rules that match in a sentence of a view, with the first and last word of a match and whether it is
    doubtful: of the first one that is not, or if all are, of the first. A doubtful order must not hide a clear one, and
    no everyday sentence has more than MAX_DOUBTFUL."""
    for rule in rules:
        found: list[tuple[int, int]] = []
        for at, mask in enumerate(sentence.masks):
            span = _match(rule, sentence, at) if mask & rule.anchor else None
            if span is None or _is_mentioned(view, sentence, span):
                continue
            if len(found) == MAX_DOUBTFUL or not is_doubtful(rule, sentence, *span):
                yield rule, *span, False
                break
            found.append(span)
        else:
            if found:
                yield rule, *found[0], True
