"""The question every order rule asks: do words of these classes stand near each other in one sentence?
Rules are data (`orders.py`); this file compiles them to bit masks and finds their matches in linear time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from memories.scanning.sentences import Sentence
from memories.scanning.verdict import Finding
from memories.scanning.views import View
from memories.scanning.words import BIT


def mask_of(names: str) -> int:
    """Bits of class names separated by spaces or bars."""
    mask = 0
    for name in names.replace("|", " ").split():
        mask |= BIT[name]
    return mask


@dataclass(frozen=True, slots=True)
class Near:
    """Words of classes `what` from `before` words ahead of the anchor to `after` words behind it."""

    what: str
    before: int = 8
    after: int = 8


@dataclass(frozen=True, slots=True)
class OrderRule:
    """`anchor` and every `near` in one sentence; no word of `unless` right before the anchor; none of `never`
    in the match or close to it. `also` is a last check in code."""

    name: str
    reason: str
    anchor: str
    near: tuple[Near, ...]
    unless: str = ""
    never: str = ""
    also: Callable[[Sentence, int], bool] | None = None


@dataclass(frozen=True, slots=True)
class _Compiled:
    rule: OrderRule
    anchor: int
    near: tuple[tuple[int, int, int], ...]
    unless: int
    never: int
    needed: tuple[int, ...]


def compiled(rule: OrderRule) -> _Compiled:
    near = tuple((mask_of(n.what), n.before, n.after) for n in rule.near)
    anchor = mask_of(rule.anchor)
    needed = (anchor, *(mask for mask, _, _ in near))
    return _Compiled(rule, anchor, near, mask_of(rule.unless), mask_of(rule.never), needed)


_ASIDE = 6  # words around a match in which a word of `never` excuses it


def _mask_around(masks: list[int], start: int, end: int) -> int:
    union = 0
    for mask in masks[max(0, start) : end]:
        union |= mask
    return union


def _has_all(union: int, needed: tuple[int, ...]) -> bool:
    for mask in needed:  # a plain loop: this runs for every rule and sentence
        if not union & mask:
            return False
    return True


def _fits(rule: _Compiled, sentence: Sentence, at: int) -> tuple[int, int] | None:
    """First and last word of a match around the anchor at `at`; None if it does not match."""
    masks = sentence.masks
    if rule.unless and at and masks[at - 1] & rule.unless:
        return None
    first = last = at
    for mask, before, after in rule.near:
        for place in _places(at, before, after, len(masks)):
            if masks[place] & mask:
                first, last = min(first, place), max(last, place)
                break
        else:
            return None
    if rule.never and _mask_around(masks, first - _ASIDE, last + _ASIDE + 1) & rule.never:
        return None
    if rule.rule.also is not None and not rule.rule.also(sentence, at):
        return None
    return first, last


_META = BIT["META"]
_QUOTE = re.compile("[\"“”„«»「」『』‘`]|(?<!\\w)'|'(?!\\w)")


def _is_mentioned(view: View, sentence: Sentence, span: tuple[int, int]) -> bool:
    """Whether the match stands in quotation marks in a sentence that speaks about such texts ("phrases such as …")."""
    if not any(mask & _META for mask in sentence.masks[: span[0]]):
        return False
    start, end = sentence.starts[span[0]], sentence.ends[span[1]]
    opened = len(_QUOTE.findall(view.text, sentence.starts[0], start))
    return opened % 2 == 1 and _QUOTE.search(view.text, end, end + 80) is not None


def _places(at: int, before: int, after: int, length: int) -> list[int]:
    """Places around the anchor, not the anchor itself unless `before` and `after` are both 0; nearest behind first."""
    if not before and not after:
        return [at]
    return [*range(at + 1, min(at + after, length - 1) + 1), *range(at - 1, max(at - before, 0) - 1, -1)]


def order_findings(view: View, sentences: list[Sentence], rules: tuple[_Compiled, ...]) -> list[Finding]:
    """All matches of the rules, at most one of each rule in a sentence."""
    found: list[Finding] = []
    for sentence in sentences:
        union = sentence.union
        for rule in rules:
            if not _has_all(union, rule.needed):
                continue
            for at, mask in enumerate(sentence.masks):
                if not mask & rule.anchor:
                    continue
                span = _fits(rule, sentence, at)
                if span is not None and not _is_mentioned(view, sentence, span):
                    start, end = view.located(sentence.starts[span[0]], sentence.ends[span[1]])
                    reason = rule.rule.reason
                    found.append(Finding(kind="injection", rule=rule.rule.name, start=start, end=end, reason=reason))
                    break
    return found


