"""Rules for orders to the assistant that do not belong in a memory: which word classes occur close together.
A memory is a statement about somebody. An order about the assistant's own rules, secrecy, sending, storing or future
behaviour towards others is not, in any wording or language.

One rule per line: `ANCHOR + CLASS|CLASS(-5,8) + … - EXCUSE ? check`. Around a word of the anchor class there must be a
word of each further class, at most 5 words before and 8 after it. A rule does not match if an excuse class occurs
nearby or the named check in `order_checks.py` returns False. Lines that start with `+` continue the previous one."""

from __future__ import annotations

from scanning import order_checks
from scanning.proximity import CompiledRule, Family, compiled

FAMILIES: tuple[Family, ...] = (
    Family(
        "instruction_override",
        "tells the assistant to drop or outrank its instructions",
        """
        DROP + RULES(0,7) + PRIOR|AUTHORITY|YOURS(-2,10) ? is_order
        DROP + RULES(0,3) + ALL(-1,2) ? is_short
        WEAKEN + RULES(0,2) + ALL(0,1) ? is_bare
        DROP_LAST + RULES(-7,1) + PRIOR|AUTHORITY|YOURS|ALL(-10,2)
        DROP + EVERYTHING(0,3) + REPLACE|ONLY(0,12) ? is_order
        STOP + EVERYTHING|PRIOR(0,3) + REPLACE(0,8)
        CANCELLED + RULES(-7,3) + AUTHORITY|YOURS(-9,4) - EVERYDAY|LOCAL
        DIRECTIVES + CANCELLED(-2,6) + PRIOR(-1,1) - EVERYDAY
        RULES + CANCELLED(-2,6) + ABOVE(-1,1) - EVERYDAY
        OUTRANKS + AUTHORITY|INNER(-7,7) + NOTE|THIS|INNER|RULES(-9,9)
        ONLY + NOTE(-3,4) + OBEY|COUNTS(-7,6) + RULES|DROP|CANCELLED(-14,10)
        OBEY + ONLY(-2,4) + NOTE(-3,5) ? is_order
        OBEY + ENTRY(-5,4) + THIS(-6,3) + LONG|EVERYTHING|ALL|NEVER(-4,8) ? is_order
        DROP + AUTHORITY(0,6) + SAYS(0,8) ? is_order
        CANCELLED + INNER|AUTHORITY(-7,3) + YOU|YOURS|INNER|SELF(-10,10) + RULES|SAYS|INNER(-10,6)
        OUTRANKS + RULES|SELF(-7,4) + EVERYTHING(-2,6) - EVERYDAY
        DROP + MEMORIES(0,6) + REST(0,4) ? is_order
        SELF + OUTRANKS|OBEY|COUNTS|AUTHORITY|DROP(-10,10)
        WEAKEN + SAFETYNET(0,5) - LOCAL ? is_wanted
        SAFETYNET + CANCELLED(-7,5) - LOCAL
        """,
    ),
    Family(
        "instruction_override",
        "tells the assistant to drop or outrank its instructions",
        """
        WEAKEN + RULES(0,2) + ALL(0,1) ? is_bare_setting
        """,
        ambiguous=True,  # "disable all filters"
    ),
    Family(
        "role_hijack",
        "gives the assistant another role without limits",
        """
        BECOME + UNRESTRICTED(0,12) + YOU|MACHINE|LONG(-12,12) ? is_order
        BECOME + WITHOUT(-8,12) + LIMITS(-10,8) + YOU|YOURS|MACHINE(-10,12) - STORY
        UNRESTRICTED + YOU(-6,4) + LONG|BECOME(-10,10) - META ? is_no_question
        UNRESTRICTED + ANSWERS(-6,6) + YOU|YOURS|MACHINE(-10,8) - STORY
        LIMITS + AVOID(-4,1) + BECOME(-12,0)
        REFUSE + NEVER(-3,2) + EVERY_REQUEST(-2,6)
        LIMITS + CANCELLED|WITHOUT(-4,6) + YOU(-8,8) + BECOME|LONG(-12,12) - STORY
        UNRESTRICTED + MACHINE(0,1) + ONLY_YOU(-13,6) ? is_no_question
        REFUSE + NEVER(-4,0) + MACHINE|YOU(-8,4) + BECOME(-12,0) - STORY
        REFUSE + VIOLATION(-1,6)
        UNRESTRICTED + MODE(0,1) + BECOME(-4,0) - LOCAL|STORY ? is_no_question
        """,
    ),
    Family(
        "concealment",
        "tells the assistant to keep something from the user",
        """
        TELL + NEVER(-3,0) + USER(-3,8) ? is_about_something
        TELL + NEVER(0,4) + USER(-5,8) ? is_foreign
        NOTELL + USER|THIS|NOTE(-8,4)
        HIDE + USER(-6,8) - STORY ? is_kept_from
        TELL + WITHOUT(-1,1) + USER(-1,4)
        SECRETLY + RISK|SEND|COPY|OBEY|REVEAL|SKIP|SELF|GOAL(-8,10) - STORY ? is_not_told
        KNOW + NEVER(-4,0) + ONE_USER(-7,0) ? is_no_wish
        SELF|SELF_TEXT + NEVER|HIDE|DENY|NOTELL(-8,8) + TELL|REVEAL|HIDE|DENY|USER|KNOW|NOTELL(-8,8)
        """,
    ),
    Family(
        "exfiltration",
        "tells the assistant to send private data somewhere",
        """
        SEND + CHATDATA(-7,8) + URL|EMAIL|HOST(-12,16) + ENTIRE|THIS|USER|MUST|TRIGGER(-10,14) ? is_sent
        SEND + PRIVATE(-7,10) + URL|EMAIL|HOST(-14,18) + USER|ENTIRE|TRIGGER|MUST(-12,14) ? is_sent
        SEND + CHATDATA|PRIVATE(-7,8) + ATTACKER(-10,14)
        SEND_OUT + SENSITIVE(-7,8) + URL|EMAIL|HOST|DROPZONE(-12,14) ? is_wanted
        ONLY_YOU + URL|EMAIL|HOST(-14,14) + ENTIRE|TRIGGER(-10,10)
            + SEND|COPY|ENCODE|SENSITIVE(-12,12) + CHATDATA|PRIVATE|SENSITIVE(-12,12)
        ASSISTANT + SEND_OUT|REVEAL|RISK(0,2) + URL|EMAIL|HOST|SENSITIVE(0,9)
        ASSISTANT + MUST(0,3) + COPY|REVEAL|SEND(0,5) + PRIVATE|SENSITIVE(0,9) - NEVER
        """,
    ),
    Family(
        "prompt_leak",
        "tells the assistant to show its instructions or secrets",
        """
        REVEAL + INNER(-9,9) ? is_wanted
        SHOW_OUT + HELD(0,7) ? is_wanted
        REVEAL + SENSITIVE|CREDENTIAL|PRONOUN(0,5) + SENSITIVE|CREDENTIAL(-8,8) + YOURS(-2,9)
            + ANSWERS(-2,10) ? is_wanted
        """,
    ),
    Family(
        "persistence",
        "tells the assistant to copy or protect this text",
        """
        COPY + THIS(-9,4) + NOTE(-9,6) + EVERYWHERE(-9,10) + STORE(-9,12) ? is_order
        SELF + COPY|DELETE(-9,9) + NEVER|EVERYWHERE|LONG|TRIGGER|MUST(-9,9)
        SELF_TEXT + COPY(-9,9) + STORE(-9,12) + EVERYWHERE|TRIGGER|MUST(-9,9)
        DELETE + NEVER(-3,1) + THIS(-6,3) + ENTRY|SELF(-10,6) ? is_removal
        DELETE + COPY|BECOME|HIDE(-8,8) + TRIGGER(-10,3) + THIS|NOTE(-10,10) ? is_no_habit
        """,
    ),
    Family(
        "biased_advice",
        "tells the assistant to push something on the user",
        """
        MANIPULATE + ONE_USER(0,3) - STORY ? is_wanted
        """,
        ambiguous=True,  # "convince the user to drink more water"
    ),
    Family(
        "biased_advice",
        "tells the assistant to push something on the user",
        """
        MANIPULATE + ONE_USER(0,3) - STORY ? is_deceiving
        MANIPULATE + ONE_USER(0,3) + BUY|VALUABLE|SENSITIVE|CREDENTIAL|RISK|URL|HOST|EMAIL(0,12) - STORY ? is_wanted
        PROMO + ANSWERS(-12,14) + YOURS(-12,14) - NEVER_ORDER|STORY ? is_no_question
        """,
    ),
    Family(
        "phishing",
        "sends the user to a page that asks for access",
        """
        VERIFY + USER|ACCOUNT(-10,6) + MUST(-6,3) + URL|HOST(-10,10)
        """,
    ),
    Family(
        "delayed_order",
        "plants a risky act that waits for a moment",
        """
        USERSAYS + TRIGGER(-4,3) + RISK(-14,14) + VALUABLE|ENTIRE|PRIVATE|CHATDATA|EMAIL|URL(-16,16)
        TRIGGER + USER|CHATDATA(0,4) + RISK(-2,14) + VALUABLE|ATTACKER(-2,16)
        """,
    ),
    Family(
        "unsafe_action",
        "tells the assistant to act without its safety checks",
        """
        COPY + BACKDOOR(0,5) - META ? is_wanted
        GRANT + ANYBODY|ATTACKER(0,5) + POWER(0,7) ? is_wanted
        SKIP + SECURITY_CHECK(0,4) - LOCAL ? is_wanted
        SKIP + CHECKS(0,5) + EVERYTHING|AUTHORITY|VALUABLE|ALL|POWER(-10,10) ? is_unguarded
        """,
    ),
    Family(
        "authority_plant",
        "claims an approval that would switch checks off",
        """
        VOUCHED + CHIEF|USER(-8,8) + SKIP|EVERYTHING|LONG|ALL(-10,10) + CHECKS|VALUABLE|RULES(-12,12) ? is_unlimited
        """,
    ),
    Family(
        "order_to_assistant",
        "tells the assistant to act without its safety checks",
        """
        ASSISTANT + MUST(0,5) + RISK(0,8) + VALUABLE|ATTACKER|ENTIRE(0,12) - NEVER ? is_not_for_me
        """,
    ),
    Family(
        "encoded_order",
        "tells the assistant to decode something and act on it",
        """
        DECODE + ACTON|OBEY(-6,8) ? is_order
        """,
    ),
)

RULES: tuple[CompiledRule, ...] = tuple(rule for family in FAMILIES for rule in compiled(family, vars(order_checks)))
