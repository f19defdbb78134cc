"""Judges orders: which matches of the rules are certain, and which other texts the model's score makes doubtful.
Only certain orders block a text; every other suspicion is a doubt for a person to decide."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from scanning.model import model
from scanning.order_checks import is_about_a_thing
from scanning.orders import RULES
from scanning.proximity import QUOTE, CompiledRule, order_matches
from scanning.sentences import Sentence, sentences_of
from scanning.verdict import Finding
from scanning.views import View
from scanning.words import BIT, word_set

_REASON = "reads like an order to the assistant"
_CERTAIN_WHEN_BARE = frozenset({"instruction_override", "role_hijack"})
"""Families whose orders are certain at the beginning of a sentence, since they cannot be statements about somebody."""
_RULES_OF_THINGS = frozenset({"instruction_override", "prompt_leak"})
"""Families whose orders are doubtful if they are about the rules or checks of some thing, such as a boiler."""


@lru_cache(maxsize=8192)
def _possible_rules(classes: int) -> tuple[CompiledRule, ...]:
    """Return the rules that find all that they need among these classes of a sentence."""
    return tuple(
        rule for rule in RULES if all(classes & mask for mask in (rule.anchor, *(near[0] for near in rule.near)))
    )


@dataclass(frozen=True, slots=True)
class Order:
    """A rule's match in a sentence: `quoted` between quotation marks, `bare` at the beginning of the sentence, or
    encoded, which no statement about somebody is; `ambiguous` if it may also be an everyday wish or question."""

    finding: Finding
    sentence: Sentence
    quoted: bool
    bare: bool
    ambiguous: bool


def judged_orders(view: View, *, is_disguise: bool) -> Iterator[Finding]:
    """Yield certain and doubtful orders in a folded view.

    A disguise, such as digits read as letters, garbles ordinary words, so its score alone is not evidence."""
    sentences = sentences_of(view)
    orders = orders_in(view, sentences)
    yield from (replace(order.finding, certain=_is_certain(view, order)) for order in orders)
    yield from _persona_findings(view)
    if orders or is_disguise:
        return
    learned = model()
    score = learned.score(view.text, sentences)
    if score.value >= learned.hold_from:
        start, end = view.located(score.start, score.end)
        yield Finding(kind="injection", rule="resembles_order", start=start, end=end, reason=_REASON, certain=False)


def orders_in(view: View, sentences: Sequence[Sentence]) -> list[Order]:
    """Return the matches of the rules in the sentences of a folded view."""
    orders = []
    for sentence in sentences:
        for rule, first, last, doubtful in order_matches(view, sentence, _possible_rules(sentence.union), _is_of_thing):
            begin, end = sentence.starts[first], sentence.ends[last]
            line = view.text.rfind("\n", 0, begin) + 1
            quoted = len(QUOTE.findall(view.text, max(line, begin - 500), begin)) % 2 == 1
            begin, end = view.located(begin, end)
            finding = Finding(kind="injection", rule=rule.name, start=begin, end=end, reason=rule.reason)
            everyday = rule.name == "role_hijack" and _is_everyday_role(view, sentence)
            ambiguous = rule.ambiguous or everyday or doubtful
            orders.append(Order(finding, sentence, quoted, bare=first <= 1 or view.decoded, ambiguous=ambiguous))
    return orders


def _is_of_thing(rule: CompiledRule, sentence: Sentence, first: int, last: int) -> bool:
    return rule.name in _RULES_OF_THINGS and is_about_a_thing(sentence, first, last)


_EVERYDAY = BIT["EVERYDAY"] | BIT["STORY"]
# Words of no class may precede it in scripts without spaces.
_QUESTION_END = re.compile("[^.!?;。\n]{0,40}[?\u061f]")


_ASKING = word_set("wonder wondered wondering ask asks asked asking me us him her them curious sure unsure know")


def _is_everyday_role(view: View, sentence: Sentence) -> bool:
    """Return True for a question ("Do you have no limits on uploads?", "I wonder if …"), a game or a story ("We played
    a game where you pretend to be a wizard without rules"), unless it is about a machine."""
    if sentence.union & BIT["MACHINE"]:
        return False
    if any(verb in _ASKING and then in ("if", "whether") for verb, then in pairwise(sentence.words[:7])):
        return True
    return bool(sentence.union & _EVERYDAY or _QUESTION_END.match(view.text, sentence.ends[-1]))


def _is_certain(view: View, order: Order) -> bool:
    if order.quoted:
        return False
    if order.bare and not order.ambiguous and order.finding.rule in _CERTAIN_WHEN_BARE:
        return True
    learned = model()
    # Score the sentence alone, so that surrounding text cannot make an order look harmless.
    value = learned.score(*order.sentence.alone(view.text)).value
    return value >= (learned.hold_from if order.ambiguous else learned.block_from)


_ORDER = re.compile(
    r"you(?<!\wyou)(?:'re| are| will| must| can| cannot| can't| should| shall| have to| always| never|'ll| won't"
    r"| do not| don't)\b"
)
_ABOUT_ANSWERS = re.compile(
    r"\b(?:chatgpt|gpt|openai|ai|language model|jailbreak\w*|prompts?|persona|personalit\w+|in character"
    r"|out of character|"
    r"unhinged|uncensored|unfiltered|developer mode|insert prompt|my first (?:prompt|question|request)"
    r"|respond(?:ing)? (?:as|with|to)|"
    r"(?:your|his|its) (?:answers?|responses?|replies)|answer(?:ing)? (?:as|with|my|in))\b"
)
_MIN_ORDERS = 3
_MIN_MENTIONS = 2
_MIN_CHARS = 160  # shorter texts are left to the rules about orders


def _persona_findings(view: View) -> list[Finding]:
    """Find a long prompt that sets up a persona: many orders to "you", and some phrases about how to answer."""
    if len(view.text) < _MIN_CHARS:
        return []
    mentions = len(_ABOUT_ANSWERS.findall(view.text))
    orders = [match.span() for match in _ORDER.finditer(view.text)]
    if mentions < _MIN_MENTIONS or len(orders) + mentions < _MIN_ORDERS + _MIN_MENTIONS or not orders:
        return []
    start, end = view.located(orders[0][0], orders[-1][1])
    reason = "sets up a persona with a list of orders"
    return [Finding(kind="injection", rule="persona_prompt", start=start, end=end, reason=reason)]
