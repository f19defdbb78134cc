"""Long prompts that set up a persona: not one order, but many sentences to "you" about how to answer.
A memory is a short statement about somebody; a page of orders in the second person is a prompt."""

from __future__ import annotations

import re

from scanning.verdict import Finding
from scanning.views import View

_ORDERED = re.compile(
    r"\byou(?:'re| are| will| must| can| cannot| can't| should| shall| have to| always| never|'ll| won't"
    r"| do not| don't)\b"
)
_ABOUT_ANSWERS = re.compile(
    r"\b(?:chatgpt|gpt|openai|ai|language model|jailbreak\w*|prompts?|persona|personalit\w+|in character"
    r"|out of character|"
    r"unhinged|uncensored|unfiltered|developer mode|insert prompt|my first (?:prompt|question|request)"
    r"|respond(?:ing)? (?:as|with|to)|"
    r"(?:your|his|its) (?:answers?|responses?|replies)|answer(?:ing)? (?:as|with|my|in))\b"
)
_ORDERS = 3
_MENTIONS = 2
_LEAST = 160  # characters; shorter texts are left to the rules about orders


def persona_findings(view: View) -> list[Finding]:
    """At least three orders to "you" and two mentions of how a model answers, in a text of some length."""
    if len(view.text) < _LEAST:
        return []
    mentions = [m.start() for m in _ABOUT_ANSWERS.finditer(view.text)]
    orders = [m.span() for m in _ORDERED.finditer(view.text)]
    if len(mentions) < _MENTIONS or len(orders) + len(mentions) < _ORDERS + _MENTIONS or not orders:
        return []
    start, end = view.located(orders[0][0], orders[-1][1])
    reason = "sets up a persona with a list of orders"
    return [Finding(kind="injection", rule="persona_prompt", start=start, end=end, reason=reason)]
