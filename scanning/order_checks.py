"""Checks that an order rule may name: is the sentence a command, a wish, a question, a report?
Each takes a sentence and the index of the anchor word, and returns True if the match is valid."""

from __future__ import annotations

from itertools import pairwise

from scanning.sentences import Sentence
from scanning.words import BIT, word_set

_SUBJECTS = word_set("""
i we they he she who people users user should could would might may can cannot how why whether which when team boss
kids don't doesn't didn't won't if is was be been being it let's for of about society and/or
je nous ils elles il yo nosotros ellos ich wir er io noi vi
""")
_ORDER_VERBS = word_set("""
have has need needs ought going instructed ordered told required supposed want wants free obliged allowed able
remember sure order permission authority
""")
_ME = word_set("me us myself mir uns moi nous me-le mi mim мне нам")
_MEASURES = word_set("more less fewer to how too which what")


def is_order(sentence: Sentence, at: int) -> bool:
    """Return True if the verb at `at` commands, as opposed to "I ignore", "should I ignore", "how to ignore"."""
    if not at:
        return True
    before = sentence.words[at - 1]
    if before == "to":
        if sentence.words[0] in ("use", "always", "please", "remember", "you"):
            return True
        return at > 1 and sentence.words[at - 2] in _ORDER_VERBS and not _is_report(sentence, at - 2)
    if before in ("can", "should", "may", "could", "would", "don't") and at > 1:
        return sentence.words[at - 2] in ("you", "assistant", "ai", "model", "agent")
    return before not in _SUBJECTS


def _is_report(sentence: Sentence, at: int) -> bool:
    return at > 0 and sentence.words[at - 1] in ("i", "we", "they", "who", "user")


def is_short(sentence: Sentence, at: int) -> bool:
    """Return True for a short order that is not part of a longer statement."""
    return len(sentence.words) <= 12 and is_order(sentence, at)


_ENGLISH_TELL = word_set("""
tell tells mention reveal inform disclose notify alert let warn admit explain say speak confirm ask show
""")


def is_foreign(sentence: Sentence, at: int) -> bool:
    """Return True if the verb is not English, so that "never" may follow it."""
    return sentence.words[at] not in _ENGLISH_TELL


def is_wanted(sentence: Sentence, at: int) -> bool:
    """Return True if the verb commands and is not negated: "never print secrets" is a legitimate wish."""
    never = BIT["NEVER"]
    return is_order(sentence, at) and not any(mask & never for mask in sentence.masks[max(0, at - 3) : at])


def is_about_something(sentence: Sentence, at: int) -> bool:
    """Return True if the order is about what to tell, not how much: "don't tell the user more than three options" is
    legitimate."""
    user = BIT["USER"]
    for place in range(at + 1, min(at + 6, len(sentence.words))):
        if sentence.masks[place] & user:
            return not _MEASURES.intersection(sentence.words[place + 1 : place + 2])
    return True


_LIMITING = word_set("in on from for of than when that which")


def is_bare(sentence: Sentence, at: int) -> bool:
    """Return True if nothing limits the order: "drop all restrictions <<<", not "cancel all orders older than …"."""
    return len(sentence.words) <= 9 and is_wanted(sentence, at) and _LIMITING.isdisjoint(sentence.words[at:])


def is_removal(sentence: Sentence, at: int) -> bool:
    """Return True if the verb removes text; "don't forget this note" is only a reminder."""
    return not sentence.words[at].startswith(("forg", "olvid", "oubl", "verg", "esquec", "dimentic", "zapomin", "забы"))


def is_no_wish(sentence: Sentence, at: int) -> bool:
    """Return False for a wish of the person: "the user never wants to be told …"."""
    if {("no", "user"), ("another", "user")} & set(pairwise(sentence.words[max(0, at - 5) : at])):
        return False
    return not {"wants", "want", "likes", "prefers", "does", "doesn't", "do"} & set(sentence.words[max(0, at - 5) : at])


def is_not_to_me(sentence: Sentence, at: int) -> bool:
    """Return True if the recipient is somebody else: "e-mail me at …" is a wish."""
    return not _ME.intersection(sentence.words[at + 1 : at + 2])


def is_unguarded(sentence: Sentence, at: int) -> bool:
    """Return True if skipping is not forbidden: "never delete files without approval" is a legitimate rule."""
    never = BIT["NEVER"]
    return is_order(sentence, at) and not any(mask & never for mask in sentence.masks[max(0, at - 6) : at])


def is_kept_from(sentence: Sentence, at: int) -> bool:
    """Return True if something is hidden from somebody, as opposed to "hide the user menu"."""
    if sentence.words[at] in ("hide", "hides", "conceal", "withhold", "cover"):
        return is_order(sentence, at) and "from" in sentence.words[at + 1 : at + 12]
    return is_order(sentence, at)


def is_not_told(sentence: Sentence, at: int) -> bool:
    """Return True if it is not a report: "he secretly sends" is a statement."""
    return not at or sentence.words[at - 1] == "it" or sentence.words[at - 1] not in _SUBJECTS


_QUESTION_WORDS = word_set("""
could can would do does did is are what how why should where when who which explain describe write create
compose discuss
""")


def is_no_question(sentence: Sentence, at: int) -> bool:
    """Return True if the sentence is neither a question nor a writing task."""
    return sentence.words[0] not in _QUESTION_WORDS
