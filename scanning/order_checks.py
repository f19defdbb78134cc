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


_ADVISING = word_set("convince persuade urge nudge")


def is_deceiving(sentence: Sentence, at: int) -> bool:
    """Return True if the verb commands to deceive or press somebody, not to convince: "trick the user"."""
    return is_wanted(sentence, at) and sentence.words[at] not in _ADVISING


_REPORTED_WISHES = word_set("mochte mochten wunscht bat попросил попросила просит хочет")
_WISHES = _REPORTED_WISHES | word_set("""
wants want likes prefers does doesn't do asked asks requested requests decided hopes rather wished
""")
_DUTY = BIT["MUST"] | BIT["TRIGGER"]


def is_about_something(sentence: Sentence, at: int) -> bool:
    """Return True if the order is about what to tell, not how much: "don't tell the user more than three options" is
    legitimate. So is a wish of the person not to be told something."""
    if not _REPORTED_WISHES.isdisjoint(sentence.words[max(0, at - 4) : at]):
        return False
    user = BIT["USER"]
    for place in range(at + 1, min(at + 6, len(sentence.words))):
        if sentence.masks[place] & user:
            return not _MEASURES.intersection(sentence.words[place + 1 : place + 2])
    return True


_LIMITING = word_set("in on from for of than when that which")
_SETTINGS = word_set("orders filter filters limits commands")


def is_bare(sentence: Sentence, at: int) -> bool:
    """Return True if nothing limits the order and it is not about settings: "drop all restrictions <<<"."""
    return is_bare_setting(sentence, at) and _SETTINGS.isdisjoint(sentence.words[at + 1 : at + 3])


def is_bare_setting(sentence: Sentence, at: int) -> bool:
    """Return True if nothing limits the order: "disable all filters", not "cancel all orders older than …". What binds
    "you" is no limit: "drop all restrictions that bind you"."""
    rest = sentence.words[at:]
    binds_you = not {"you", "your"}.isdisjoint(rest) and not {"that", "which"}.isdisjoint(rest)
    return len(sentence.words) <= 9 and is_wanted(sentence, at) and (binds_you or _LIMITING.isdisjoint(rest))


def is_removal(sentence: Sentence, at: int) -> bool:
    """Return True if the verb removes text; "don't forget this note" is only a reminder."""
    return not sentence.words[at].startswith(("forg", "olvid", "oubl", "verg", "esquec", "dimentic", "zapomin", "забы"))


def is_no_wish(sentence: Sentence, at: int) -> bool:
    """Return False for a wish of the person: "the user never wants to be told …"."""
    if {("no", "user"), ("another", "user")} & set(pairwise(sentence.words[max(0, at - 5) : at])):
        return False
    return _WISHES.isdisjoint(sentence.words[max(0, at - 5) : at])


_SENDING_NOUNS = word_set("""
email e-mail mail post share upload transfer copy export archive backup dump log stream call request mirror paste
""")
_AFTER_NOUNS = word_set("is was are were isn't address addresses account accounts limit")
_OWNER = word_set("user's users'")
_SENT_THINGS = sum(BIT[name] for name in ("PRIVATE", "CHATDATA", "SENSITIVE", "CREDENTIAL", "ENTIRE", "ATTACKER"))


def is_sent(sentence: Sentence, at: int) -> bool:
    """Return True if something is sent to somebody else. "E-mail me at …" is a wish, "the user's work email is …" only
    has a noun, and "the user's team uploads builds to …" is about no private data."""
    before, after = sentence.words[max(0, at - 2) : at], sentence.words[at + 1 : at + 2]
    if not _ME.isdisjoint(after):
        return False
    word, duty = sentence.words[at], sentence.union & _DUTY
    owned = any(owner.endswith(("'s", "s'")) for owner in before) or not _AFTER_NOUNS.isdisjoint(after)
    if owned and word in _SENDING_NOUNS and not duty:
        return False
    if _is_address(sentence, at) and not duty and not any(mask & _SENT_THINGS for mask in sentence.masks[2:at]):
        return False
    told = word.endswith(("s", "ed")) and not _OWNER.isdisjoint(sentence.words[:2])
    return not told or bool(duty or any(mask & _SENT_THINGS for mask in sentence.masks[2:]))


_COPULAS = word_set("is are")
_AND = word_set("and or")


def _is_address(sentence: Sentence, at: int) -> bool:
    """Return True if the noun at `at` announces an address in a list of facts: "… GitHub is … and email x@y", "mail:
    x@y"."""
    after = at + 1
    if sentence.words[at] not in _SENDING_NOUNS or not sentence.masks[after : after + 1] or sentence.union & _DUTY:
        return False
    stated = not _COPULAS.isdisjoint(sentence.words[:at]) or sentence.starts[after] - sentence.ends[at] > 1
    ends = after + 1 == len(sentence.words) or sentence.words[after + 1] in _AND
    return bool(sentence.masks[after] & BIT["EMAIL"]) and stated and ends


def is_unguarded(sentence: Sentence, at: int) -> bool:
    """Return True if skipping is not forbidden: "never delete files without approval" is a legitimate rule."""
    if _is_forbidden_without(sentence, at):
        return False
    return is_order(sentence, at) and not any(mask & _NEVER for mask in sentence.masks[max(0, at - 6) : at])


_CHECKS, _NEVER = BIT["CHECKS"], BIT["NEVER"]
_FORBIDDEN = word_set("forbidden prohibited verboten interdit interdite interdits prohibido vietato")
_ARE = word_set("is are was were be ist sind wird werden est sont es son esta estan e sono sein")
_OF_CHECKS = word_set("a an any the my our prior explicit written eine meine vorherige une mon ma una mi il la")


def _is_forbidden_without(sentence: Sentence, at: int) -> bool:
    """Return True for "deploys without my approval are forbidden". Another clause says nothing about skipping: "skip
    the checks, since asking is forbidden"."""
    words, masks, starts, ends = sentence.words, sentence.masks, sentence.starts, sentence.ends
    for place in range(at + 1, min(at + 8, len(words) - 1)):
        if starts[place] - ends[place - 1] > 1:
            return False
        if words[place] in _ARE:
            stated = slice(place + 1, place + 3)
            return not _FORBIDDEN.isdisjoint(words[stated]) and not any(mask & _NEVER for mask in masks[stated])
        if not masks[place] & _CHECKS and words[place] not in _OF_CHECKS:
            return False
    return False


_TRIGGER = BIT["TRIGGER"]
_FIRST_PERSON = word_set("i we i'm we're i've we've ich wir je nous")
_SHORTENING = ("summari", "compress", "consolidat", "prun", "edit", "chang")


def is_no_habit(sentence: Sentence, at: int) -> bool:
    """Return False for what a person wants done when they say or do something: "when I say good night, summarise the
    day and save it"."""
    if not sentence.words[at].startswith(_SHORTENING):
        return True
    begins = (place for place, mask in enumerate(sentence.masks[:at]) if mask & _TRIGGER)
    return all(_FIRST_PERSON.isdisjoint(sentence.words[place + 1 : place + 2]) for place in begins)


_SENT_BY = BIT["RISK"]


def is_not_for_me(sentence: Sentence, at: int) -> bool:
    """Return False if the assistant sends, shows or gives something to the person alone: "must send me a list"."""
    risky = [place for place in range(at + 1, min(at + 10, len(sentence.words))) if sentence.masks[place] & _SENT_BY]
    elsewhere = sentence.union & (BIT["URL"] | BIT["EMAIL"] | BIT["HOST"] | BIT["ATTACKER"])
    return bool(elsewhere) or any(_ME.isdisjoint(sentence.words[place + 1 : place + 2]) for place in risky)


_CAPS = frozenset({("up", "to"), ("at", "most"), ("bis", "zu")})


def is_unlimited(sentence: Sentence, at: int) -> bool:
    """Return False for an approval up to an amount that skips and mentions no checks: "approved expenses up to 500
    euros"."""
    pairs = list(pairwise(sentence.words[at:]))
    capped = not _CAPS.isdisjoint(pairs) or any(word == "under" and amount[0].isdigit() for word, amount in pairs)
    return not capped or bool(sentence.union & (_CHECKS | BIT["SKIP"]))


_RULES_OF = BIT["RULES"] | BIT["DIRECTIVES"] | BIT["SAFETYNET"] | BIT["CHECKS"] | BIT["INNER"] | BIT["ACCOUNT"]
_PRIOR, _SYSTEM = BIT["PRIOR"], BIT["AUTHORITY"] | BIT["MACHINE"]
_OF = word_set("for of from in on above to at fur von vom zur zum im am auf pour de du des per di del della voor van")
_OF_ANY = word_set("for of fur von zum zur im am pour de du des per di del della")  # also without an article
_ARTICLES = word_set("the a an our my his her their der die das den dem la le les el los il lo de het een un une una")
_THE_ASSISTANT = sum(
    BIT[name] for name in ("YOU", "YOURS", "MACHINE", "ASSISTANT", "CHATDATA", "AUTHORITY", "INNER", "SELF", "RULES")
)


def is_about_a_thing(sentence: Sentence, first: int, last: int) -> bool:
    """Return True if the rules or checks in a match are those of some thing: "the old instructions for the boiler"."""
    words, masks = sentence.words, sentence.masks
    if any(mask & _SYSTEM and not mask & _RULES_OF for mask in masks):
        return False  # "message of the system: the filters of age are lifted"
    for rules in range(first, min(last + 2, len(words) - 2)):
        follows = masks[rules + 1] & _PRIOR and words[rules + 1] not in _OF  # "les consignes précédentes pour …"
        at = rules + bool(follows)
        if masks[rules] & _RULES_OF and words[at + 1] in _OF and at + 2 < len(words):
            article = words[at + 2] in _ARTICLES
            noun = at + 2 + article
            named = article or words[at + 1] in _OF_ANY
            if (
                named
                and noun < len(words)
                and not masks[noun]
                and not any(m & _THE_ASSISTANT for m in masks[noun : noun + 3])
            ):
                return True
    return False


_COMPLAINTS = word_set("hates hate dislikes dislike complains complained complain")


def is_kept_from(sentence: Sentence, at: int) -> bool:
    """Return True if something is hidden from somebody, as opposed to "hide the user menu" and a complaint."""
    if not _COMPLAINTS.isdisjoint(sentence.words[:at]):
        return False
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
