"""Orders to the assistant that do not belong in a memory, as data: which classes of words stand close together.
A memory is a statement about somebody. An order about the assistant's own rules, secrecy, sending, storing or
future behaviour towards others is not, in whatever words and language it comes."""

from __future__ import annotations

from memories.scanning.nearness import Near, OrderRule, compiled
from memories.scanning.sentences import Sentence
from memories.scanning.words import BIT

_SUBJECTS = frozenset(
    ["i", "we", "they", "he", "she", "who", "people", "users", "user", "should", "could", "would", "might", "may", "can", "cannot", "how", "why", "whether", "which", "when", "team", "boss", "kids", "don't", "doesn't", "didn't", "won't", "if", "is", "was", "be", "been", "being", "it", "let's", "for", "of", "about", "society", "and/or", "je", "nous", "ils", "elles", "il", "yo", "nosotros", "ellos", "ich", "wir", "er", "io", "noi", "vi"]
)
_OBLIGED = frozenset(
    ["have", "has", "need", "needs", "ought", "going", "instructed", "ordered", "told", "required", "supposed", "want", "wants", "free", "obliged", "allowed", "able", "remember", "sure", "order", "permission", "authority"]
)


def is_order(sentence: Sentence, at: int) -> bool:
    """Whether the verb at `at` commands, as opposed to "I ignore", "should I ignore", "how to ignore"."""
    if not at:
        return True
    before = sentence.words[at - 1]
    if before == "to":
        if sentence.words[0] in ("use", "always", "please", "remember", "you"):
            return True
        return at > 1 and sentence.words[at - 2] in _OBLIGED and not _speaks_of_self(sentence, at - 2)
    if before in ("can", "should", "may", "could", "would", "don't") and at > 1:
        return sentence.words[at - 2] in ("you", "assistant", "ai", "model", "agent")
    return before not in _SUBJECTS


def _speaks_of_self(sentence: Sentence, at: int) -> bool:
    return at > 0 and sentence.words[at - 1] in ("i", "we", "they", "who", "user")


def is_you(sentence: Sentence, at: int) -> bool:
    """Whether "you" is told what it is or has, as opposed to being asked or reported about."""
    return not sentence.words[max(at - 1, 0)].startswith(("can", "could", "would", "do", "if", "where", "how"))


def is_short(sentence: Sentence, at: int) -> bool:
    """Whether little else is said: a bare order, not a part of a longer statement."""
    return len(sentence.words) <= 12 and is_order(sentence, at)


def prior_is_attached(sentence: Sentence, at: int) -> bool:
    """Whether the word for "earlier" stands right beside the word for rules: "all earlier homework rules" is not."""
    prior = BIT["PRIOR"]
    return any(sentence.masks[i] & prior for i in (at - 1, at + 1) if 0 <= i < len(sentence.masks))


_ENGLISH_TELL = frozenset(["tell", "tells", "mention", "reveal", "inform", "disclose", "notify", "alert", "let", "warn", "admit", "explain", "say", "speak", "confirm", "ask", "show"])


def is_foreign(sentence: Sentence, at: int) -> bool:
    """Whether the verb is not English, so that "never" may stand behind it."""
    return sentence.words[at] not in _ENGLISH_TELL


def is_wanted(sentence: Sentence, at: int) -> bool:
    """Whether the verb commands and is not forbidden: "never print secrets" is a fine wish."""
    never = BIT["NEVER"]
    return is_order(sentence, at) and not any(mask & never for mask in sentence.masks[max(0, at - 3) : at])


def is_about_something(sentence: Sentence, at: int) -> bool:
    """Whether what must not be told is a matter, not a measure: "don't tell the user more than three options"."""
    user = BIT["USER"]
    for place in range(at + 1, min(at + 6, len(sentence.words))):
        if sentence.masks[place] & user:
            return sentence.words[place + 1 : place + 2] not in (["more"], ["less"], ["to"], ["how"], ["too"], ["which"], ["what"])
    return True


def is_bare(sentence: Sentence, at: int) -> bool:
    """Whether the order names no place where it would make sense: "drop all restrictions <<<"."""
    return len(sentence.words) <= 9 and is_wanted(sentence, at) and not {"in", "on", "from", "for", "of"} & set(sentence.words[at:])


def is_removal(sentence: Sentence, at: int) -> bool:
    """Whether the verb takes away what is written; "don't forget this note" only reminds."""
    return not sentence.words[at].startswith(("forg", "olvid", "oubl", "verg", "esquec", "dimentic", "zapomin", "забы"))


def is_no_wish(sentence: Sentence, at: int) -> bool:
    """Whether it is not the person's own wish: "the user never wants to be told …"."""
    return not {"wants", "want", "likes", "prefers", "does", "doesn't", "do"} & set(sentence.words[max(0, at - 5) : at])


def is_first(sentence: Sentence, at: int) -> bool:
    """Whether the condition opens the sentence."""
    return at <= 2


def is_not_told(sentence: Sentence, at: int) -> bool:
    """Whether nobody reports it: "he secretly sends" is a statement."""
    return not at or sentence.words[at - 1] == "it" or sentence.words[at - 1] not in _SUBJECTS


_ASKING = frozenset("could can would do does did is are what how why should where when who which explain describe write create compose discuss".split())


def is_no_question(sentence: Sentence, at: int) -> bool:
    """Whether the sentence neither asks nor sets a writing task."""
    return sentence.words[0] not in _ASKING


_BIAS = "tells the assistant to push something on the user"
_PHISH = "sends the user to a page that asks for access"
_OVERRIDE = "tells the assistant to drop or outrank its instructions"
_ROLE = "gives the assistant another role without limits"
_CONCEAL = "tells the assistant to keep something from the user"
_EXFIL = "tells the assistant to send private data somewhere"
_LEAK = "tells the assistant to show its instructions or secrets"
_PERSIST = "tells the assistant to copy or protect this text"
_DELAYED = "plants a risky act that waits for a moment"
_UNSAFE = "tells the assistant to act without its safety checks"
_PLANT = "claims an approval that would switch checks off"
_ENCODED = "tells the assistant to decode something and act on it"

SOURCES: tuple[OrderRule, ...] = (
    # Rules: drop them, cancel them, outrank them.
    OrderRule("instruction_override", _OVERRIDE, "DROP", (Near("RULES", 0, 7), Near("PRIOR|AUTHORITY|YOURS", 2, 10)), also=is_order),
    OrderRule("instruction_override", _OVERRIDE, "DROP", (Near("RULES", 0, 3), Near("ALL", 1, 2)), also=is_short),
    OrderRule("instruction_override", _OVERRIDE, "WEAKEN", (Near("RULES", 0, 5), Near("AUTHORITY|YOURS", 0, 7)), never="LOCAL|EVERYDAY", also=is_wanted),
    OrderRule("instruction_override", _OVERRIDE, "WEAKEN", (Near("RULES", 0, 2), Near("ALL", 0, 1)), also=is_bare),
    OrderRule("instruction_override", _OVERRIDE, "DROP_LAST", (Near("RULES", 7, 1), Near("PRIOR|AUTHORITY|YOURS|ALL", 10, 2))),
    OrderRule("instruction_override", _OVERRIDE, "DROP", (Near("EVERYTHING", 0, 3), Near("REPLACE|ONLY", 0, 12)), also=is_order),
    OrderRule("instruction_override", _OVERRIDE, "STOP", (Near("EVERYTHING|PRIOR", 0, 3), Near("REPLACE", 0, 8))),
    OrderRule("instruction_override", _OVERRIDE, "CANCELLED", (Near("RULES", 7, 3), Near("AUTHORITY|YOURS", 9, 4)), never="EVERYDAY|LOCAL"),
    OrderRule("instruction_override", _OVERRIDE, "CANCELLED", (Near("CHECKS", 5, 2),)),
    OrderRule("instruction_override", _OVERRIDE, "RULES", (Near("CANCELLED", 2, 6), Near("PRIOR", 1, 1)), never="EVERYDAY"),
    OrderRule("instruction_override", _OVERRIDE, "CANCELLED", (Near("RULES", 6, 4), Near("REPLACE|ONLY", 4, 10)), never="EVERYDAY|LOCAL"),
    OrderRule("instruction_override", _OVERRIDE, "OUTRANKS", (Near("AUTHORITY|INNER", 7, 7), Near("NOTE|THIS|INNER|RULES", 9, 9))),
    OrderRule("instruction_override", _OVERRIDE, "OPPOSITE", (Near("AUTHORITY|RULES|INNER", 10, 8),)),
    OrderRule("instruction_override", _OVERRIDE, "DROP", (Near("INNER", 0, 4),), also=is_order),
    OrderRule("instruction_override", _OVERRIDE, "DROP_LAST", (Near("INNER", 4, 1),)),
    OrderRule("instruction_override", _OVERRIDE, "ONLY", (Near("NOTE", 3, 4), Near("OBEY|COUNTS", 7, 6), Near("RULES|DROP|CANCELLED", 14, 10))),
    OrderRule("instruction_override", _OVERRIDE, "OBEY", (Near("ONLY", 2, 4), Near("THIS|NOTE", 3, 5)), also=is_order),
    OrderRule("instruction_override", _OVERRIDE, "OBEY", (Near("NOTE", 5, 4), Near("THIS", 6, 3), Near("LONG|EVERYTHING|ALL|NEVER", 4, 8)), also=is_order),
    OrderRule("instruction_override", _OVERRIDE, "DROP", (Near("AUTHORITY", 0, 6), Near("SAYS", 0, 8)), also=is_order),
    OrderRule("instruction_override", _OVERRIDE, "DROP", (Near("RULES", 0, 3), Near("OBEY", 0, 9), Near("ONLY|NOTE|THIS|SELF", 0, 12)), also=is_order),
    OrderRule("instruction_override", _OVERRIDE, "CANCELLED", (Near("INNER|AUTHORITY", 7, 3), Near("YOU|YOURS|INNER|SELF", 10, 10), Near("RULES|SAYS|INNER", 10, 6))),
    OrderRule("instruction_override", _OVERRIDE, "RELEASED", (Near("RULES|AUTHORITY", 2, 8), Near("YOU", 5, 6))),
    OrderRule("instruction_override", _OVERRIDE, "DROP", (Near("MEMORIES", 0, 6), Near("REST", 0, 4)), also=is_order),
    OrderRule("instruction_override", _OVERRIDE, "SELF", (Near("OUTRANKS|OBEY|COUNTS|AUTHORITY|DROP", 10, 10),)),
    OrderRule("instruction_override", _OVERRIDE, "WEAKEN", (Near("SAFETYNET", 0, 5),), never="LOCAL", also=is_wanted),
    OrderRule("instruction_override", _OVERRIDE, "SAFETYNET", (Near("CANCELLED", 7, 5),), never="LOCAL"),
    OrderRule("instruction_override", _OVERRIDE, "APPLY", (Near("RULES", 5, 2), Near("WITHOUT", 7, 0), Near("YOU|AUTHORITY|CHATDATA|INNER", 8, 6)), never="EVERYDAY"),
    OrderRule("instruction_override", _OVERRIDE, "ONLY", (Near("COUNTS", 0, 5), Near("LONG|SELF", 6, 8)), never="EVERYDAY"),
    # Roles.
    OrderRule("role_hijack", _ROLE, "BECOME", (Near("UNRESTRICTED", 0, 12), Near("YOU|MACHINE|LONG", 12, 12)), also=is_order),
    OrderRule("role_hijack", _ROLE, "BECOME", (Near("WITHOUT", 0, 10), Near("LIMITS", 0, 13), Near("YOU|MACHINE|LONG", 6, 12)), never="STORY|EVERYDAY", also=is_order),
    OrderRule("role_hijack", _ROLE, "BECOME", (Near("WITHOUT", 8, 12), Near("LIMITS", 10, 8), Near("YOU|YOURS|MACHINE", 10, 12)), never="STORY", also=is_you),
    OrderRule("role_hijack", _ROLE, "UNRESTRICTED", (Near("YOU", 6, 4), Near("LONG|BECOME", 10, 10)), never="META", also=is_no_question),
    OrderRule("role_hijack", _ROLE, "UNRESTRICTED", (Near("ANSWERS", 6, 6), Near("YOU|YOURS|MACHINE", 10, 8)), never="STORY", also=is_you),
    OrderRule("role_hijack", _ROLE, "LIMITS", (Near("AVOID", 4, 1), Near("BECOME", 12, 0))),
    OrderRule("role_hijack", _ROLE, "REFUSE", (Near("NEVER", 3, 2), Near("EVERY_REQUEST", 2, 6)),),
    OrderRule("role_hijack", _ROLE, "LIMITS", (Near("CANCELLED|WITHOUT", 4, 6), Near("YOU", 8, 8), Near("BECOME|LONG", 12, 12)), never="STORY", also=is_you),
    OrderRule("role_hijack", _ROLE, "REFUSE", (Near("NEVER", 4, 0), Near("MACHINE|YOU", 8, 4), Near("BECOME", 12, 0)), never="STORY"),
    OrderRule("role_hijack", _ROLE, "BECOME", (Near("UNRESTRICTED", 0, 4), Near("EVERYWHERE|LONG", 0, 12)), also=is_order),
    OrderRule("role_hijack", _ROLE, "UNRESTRICTED", (Near("MACHINE", 0, 1), Near("ONLY_YOU", 13, 6)), also=is_no_question),
    # Secrecy.
    OrderRule("concealment", _CONCEAL, "UNAWARE", (Near("ONE_USER", 6, 4),)),
    OrderRule("concealment", _CONCEAL, "KNOW", (Near("WITHOUT", 4, 0), Near("ONE_USER", 3, 2))),
    OrderRule("concealment", _CONCEAL, "SPEAK", (Near("ONE_USER", 0, 3), Near("FALSELY", 2, 8)), also=is_wanted),
    OrderRule("concealment", _CONCEAL, "TELL", (Near("NEVER", 3, 0), Near("USER", 3, 5)), also=is_about_something),
    OrderRule("concealment", _CONCEAL, "TELL", (Near("NEVER", 0, 4), Near("USER", 5, 8)), also=is_foreign),
    OrderRule("concealment", _CONCEAL, "TELL", (Near("NEVER", 3, 0), Near("NOBODY", 0, 3), Near("SKIP|RISK|SEND|RULES|SELF|CHECKS", 14, 10))),
    OrderRule("concealment", _CONCEAL, "NOTELL", (Near("USER|THIS|NOTE", 8, 4),)),
    OrderRule("concealment", _CONCEAL, "HIDE", (Near("USER", 6, 8),), never="STORY", also=is_order),
    OrderRule("concealment", _CONCEAL, "TELL", (Near("WITHOUT", 1, 1), Near("USER", 1, 4))),
    OrderRule("concealment", _CONCEAL, "SECRETLY", (Near("RISK|SEND|COPY|OBEY|REVEAL|SKIP|SELF|GOAL", 8, 10),), never="STORY", also=is_not_told),
    OrderRule("concealment", _CONCEAL, "KNOW", (Near("NEVER", 4, 0), Near("ONE_USER", 7, 0)), also=is_no_wish),
    OrderRule("concealment", _CONCEAL, "SELF", (Near("NEVER|HIDE|DENY|NOTELL", 8, 8), Near("TELL|REVEAL|HIDE|DENY|USER|KNOW|NOTELL", 8, 8))),
    # Data that leaves.
    OrderRule("exfiltration", _EXFIL, "SEND", (Near("CHATDATA", 7, 8), Near("URL|EMAIL|HOST", 12, 16), Near("ENTIRE|THIS|USER|MUST|TRIGGER", 10, 14))),
    OrderRule("exfiltration", _EXFIL, "SEND", (Near("PRIVATE", 7, 10), Near("URL|EMAIL|HOST", 14, 18), Near("USER|ENTIRE|TRIGGER|MUST", 12, 14))),
    OrderRule("exfiltration", _EXFIL, "SEND", (Near("CHATDATA|PRIVATE", 7, 8), Near("ATTACKER", 10, 14))),
    OrderRule("exfiltration", _EXFIL, "SENT", (Near("MUST", 6, 0), Near("CHATDATA|PRIVATE|ENTIRE", 8, 8), Near("URL|EMAIL|HOST|DROPZONE", 2, 12))),
    OrderRule("exfiltration", _EXFIL, "SEND_OUT", (Near("SENSITIVE", 7, 8), Near("URL|EMAIL|HOST|DROPZONE", 12, 14)), also=is_wanted),
    OrderRule("exfiltration", _EXFIL, "ENCODE", (Near("CHATDATA|SENSITIVE", 0, 6), Near("LINK", 2, 14), Near("YOURS|LINK|ENTIRE|URL", 2, 16), Near("URL|DECODE|USER|EVERYWHERE", 6, 16)), also=is_wanted),
    OrderRule("exfiltration", _EXFIL, "ONLY_YOU", (Near("URL|EMAIL|HOST", 14, 14), Near("ENTIRE|TRIGGER", 10, 10), Near("SEND|COPY|ENCODE|SENSITIVE", 12, 12), Near("CHATDATA|PRIVATE|SENSITIVE", 12, 12))),
    OrderRule("exfiltration", _EXFIL, "HARVEST", (Near("CREDENTIAL", 0, 5), Near("USER", 2, 6)), also=is_wanted),
    # What only the assistant knows.
    OrderRule("prompt_leak", _LEAK, "REVEAL", (Near("INNER", 9, 9),), also=is_wanted),
    OrderRule("prompt_leak", _LEAK, "REVEAL", (Near("RULES", 0, 7), Near("YOURS", 0, 6), Near("ENTIRE|EVERYWHERE", 6, 10)), also=is_wanted),
    OrderRule("prompt_leak", _LEAK, "REVEAL", (Near("AUTHORITY", 0, 5), Near("SAYS", 0, 7)), also=is_wanted),
    OrderRule("prompt_leak", _LEAK, "REVEAL", (Near("SENSITIVE|CREDENTIAL|PRONOUN", 0, 5), Near("SENSITIVE|CREDENTIAL", 8, 8), Near("YOURS", 2, 9), Near("ANSWERS", 2, 10)), also=is_wanted),
    # Text that wants to stay or spread.
    OrderRule("persistence", _PERSIST, "COPY", (Near("THIS", 9, 4), Near("NOTE", 9, 6), Near("EVERYWHERE", 9, 10), Near("STORE", 9, 12)), also=is_order),
    OrderRule("persistence", _PERSIST, "SELF", (Near("COPY|DELETE", 9, 9), Near("NEVER|EVERYWHERE|LONG|TRIGGER|MUST", 9, 9))),
    OrderRule("persistence", _PERSIST, "DELETE", (Near("NEVER", 3, 1), Near("THIS", 6, 3), Near("NOTE", 10, 6)), also=is_removal),
    OrderRule("persistence", _PERSIST, "SELF", (Near("PERMANENT", 3, 8),)),
    OrderRule("persistence", _PERSIST, "SELF", (Near("COPY", 8, 8), Near("DELETE", 3, 14))),
    OrderRule("persistence", _PERSIST, "SELF", (Near("EVERYWHERE", 10, 8), Near("MUST", 8, 6))),
    OrderRule("persistence", _PERSIST, "DELETE", (Near("COPY|BECOME|HIDE", 8, 8), Near("TRIGGER", 10, 3), Near("THIS|NOTE", 10, 10))),
    OrderRule("biased_advice", _BIAS, "PUSH", (Near("BUY", 0, 12), Near("USER", 4, 10), Near("LONG|MUST|BUY|EVERYTHING|TRIGGER", 8, 14)), also=is_order),
    OrderRule("biased_advice", _BIAS, "PROMO", (Near("ANSWERS", 12, 14), Near("YOURS", 12, 14)), never="NEVER_ORDER|STORY", also=is_no_question),
    OrderRule("phishing", _PHISH, "VERIFY", (Near("USER|ACCOUNT", 10, 6), Near("MUST", 6, 3), Near("URL|HOST", 10, 10))),
    # Acts that wait.
    OrderRule("delayed_order", _DELAYED, "USERSAYS", (Near("TRIGGER", 4, 3), Near("RISK", 14, 14), Near("VALUABLE|ENTIRE|PRIVATE|CHATDATA|EMAIL|URL", 16, 16))),
    OrderRule("delayed_order", _DELAYED, "TRIGGER", (Near("USER|CHATDATA", 0, 4), Near("RISK", 2, 14), Near("VALUABLE|ATTACKER", 2, 16))),
    OrderRule("unsafe_action", _UNSAFE, "RISK", (Near("ATTACKER", 0, 8),), also=is_wanted),
    OrderRule("unsafe_action", _UNSAFE, "RISK", (Near("ALL", 0, 2), Near("VALUABLE", 0, 5), Near("AUTO|SKIP|ATTACKER", 3, 10)), also=is_wanted),
    OrderRule("unsafe_action", _UNSAFE, "OBEY", (Near("CODE", 0, 4), Near("UNTRUSTED", 0, 8), Near("LONG|ALL|AUTO", 4, 10)), also=is_wanted),
    OrderRule("unsafe_action", _UNSAFE, "CODE", (Near("UNTRUSTED", 0, 5), Near("TREATAS", 6, 0))),
    OrderRule("unsafe_action", _UNSAFE, "COPY", (Near("BACKDOOR", 0, 5),), never="META", also=is_wanted),
    OrderRule("delayed_order", _DELAYED, "TRIGGER", (Near("SWAP", 2, 12), Near("ACCOUNTNO", 2, 16)), never="STORY"),
    OrderRule("delayed_order", _DELAYED, "TRIGGER", (Near("DESTROY", 2, 12), Near("TRACES", 2, 14)), never="LOCAL", also=is_first),
    OrderRule("unsafe_action", _UNSAFE, "GRANT", (Near("ANYBODY|ATTACKER", 0, 5), Near("POWER", 0, 7)), also=is_wanted),
    OrderRule("unsafe_action", _UNSAFE, "SKIP", (Near("SECURITY_CHECK", 0, 4),), never="LOCAL", also=is_wanted),
    # Acts without a check.
    OrderRule("unsafe_action", _UNSAFE, "SKIP", (Near("CHECKS", 0, 5), Near("EVERYTHING|AUTHORITY|VALUABLE|MACHINE|ALL", 10, 10)), also=is_order),
    OrderRule("authority_plant", _PLANT, "CANCELLED", (Near("MODE", 4, 1), Near("AUTHORITY", 5, 1))),
    OrderRule("role_hijack", _ROLE, "REFUSE", (Near("VIOLATION", 1, 6),)),
    OrderRule("order_to_assistant", _UNSAFE, "ASSISTANT", (Near("MUST", 0, 5), Near("RISK", 0, 8), Near("VALUABLE|ATTACKER|ENTIRE", 0, 12)), never="NEVER"),
    OrderRule("authority_plant", _PLANT, "VOUCHED", (Near("CHIEF|USER", 8, 8), Near("SKIP|EVERYTHING|LONG|ALL", 10, 10), Near("CHECKS|VALUABLE|RULES", 12, 12))),
    # Encoded orders.
    OrderRule("encoded_order", _ENCODED, "DECODE", (Near("ACTON|OBEY", 6, 8),), also=is_order),
)  # fmt: skip

RULES = tuple(compiled(rule) for rule in SOURCES)
