"""The words by which the demo model knows a lasting statement (English only)."""

import re


def any_of(*patterns: str) -> re.Pattern[str]:
    """One pattern for several, whatever their case."""
    return re.compile("|".join(patterns), re.IGNORECASE)


OPENER = re.compile(
    r"(?:(?:oh|nope|yes|yeah|ok(?:ay)?|well|actually|also|and|but|so|plus|by the way|btw|ha|haha|hi|hello|hey|thanks"
    r"|thank you|good|great|right|sorry|wrong|again|fyi|note that|please note(?: that)?|for the record"
    r"|just so you know|to be clear|one more thing|please)\b[,:.!]*\s+|no\b[,:.!]+\s+)+",
    re.IGNORECASE,
)
CORRECTS = any_of(r"(?:oh|no|nope|wrong|actually|sorry|but|not)\b")
TAIL = any_of(r",? (?:so(?! (?:nothing|no|never|only)\b)|because|since|which is why|that's why)\b.*")
ASKS_NEXT = any_of(
    r", (?:and )?(?:can|could|would|what|how|which|please|give|tell|show|help|any|do|does|did|should|I)\b.*"
)
CONTINUES = any_of(r"(?:and )?(?:then|after that|afterwards|finally|lastly|only then|and only then)\b")

# (what a person says, how it is noted, category); the first that fits a sentence.
PLAIN: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), note, category)
    for pattern, note, category in (
        (r"\bcall me (?P<x>[\w' -]{2,40})", "Wants to be called {x}.", "identity"),
        (r"\bmy name(?: is|'s) (?P<x>[\w' -]{2,40})", "Their name is {x}.", "identity"),
        (r"\bI(?:'m| am) (?P<x>[^.!?;:()]{2,120})", "Is {x}.", "fact"),
        (r"\bI(?:'d| would)? (?:really |much )?(?:prefer|like|love|enjoy) (?P<x>[^.!?]{3,120})", "Prefers {x}.",
         "preference"),
        (r"\bI(?:'d| would) (?:much )?rather (?P<x>[^.!?]{3,120})", "Would rather {x}.", "preference"),
        (r"\bI (?:don't like|dislike|hate|can't stand) (?P<x>[^.!?]{3,120})", "Dislikes {x}.", "preference"),
        (r"\bI live in (?P<x>[^.!?]{2,80})", "Lives in {x}.", "fact"),
        (r"\b(?:I|we)(?:'ve| have)? (?:\w+ )?moved to (?P<x>(?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'-]+)*)",
         "Lives in {x}.", "fact"),
        (r"\bI work as (?P<x>[^.!?]{2,80})", "Works as {x}.", "fact"),
        (r"\bI work (?:at|for) (?P<x>[^.!?]{2,80})", "Works for {x}.", "fact"),
        (r"^(?:please )?remember (?:that )?(?P<x>[^.!?]{4,160})", "{x}.", "note"),
        (r"^(?:both )?my (?P<x>[\w' -]{2,40} (?:is|are) [^.!?]{2,100})", "Their {x}.", "fact"),
    )
)  # fmt: skip
NO_TRAIT = any_of(
    r"(?:not|just|so|very|too|sorry|sure|fine|good|happy|glad|sad|back|done|here|there|curious|afraid|all|also|only"
    r"|even|really|pretty|quite|rather|still|kind of|ok(?:ay)?|ready|tired|hungry|thirsty|late|early|confused|lost"
    r"|bored|stuck|ill|sick|nervous|excited|cold|awake|home|busy|free|up|out|off|over|about|on|in|at|with|aware|new"
    r"|sat|user|logged|that|it|this|to|you|your|every|gonna|drawn|stoked|grateful|impressed|proud|thrilled|amazed"
    r"|lucky|\w+ly|how|both|what|when|\w+ing|the (?:first|last|one|only|idea|sound|look|second|way|end|answer)"
    r"|an? (?:bit|little|idiot|mess|fool|wreck))\b",
    r"(?:\w+ )?(?:room|seat|flight|train|order|question|problem|plan|idea|guess|point|head|brain|battery|turn|bad"
    r"|fault|mood|stomach|goal|favou?rite so far)\b",
)
# What a person is, has and does as a rule; noted in their own words.
PERSONAL = any_of(
    r"\bI(?:'m| am) (?:allergic|intolerant|colou?r-?blind|left-handed|dyslexic|deaf|diabetic|retired|married)\b",
    r"(?:^|, |\b(?:and|because|but|as) )I (?:run|own|teach|study|play|speak|coach|manage|commute|share|sing|write|wear"
    r"|cook|bake|drive|cycle|rent|grow|use|collect|paint|sew|knit|volunteer|sell|eat|drink|maintain|host|publish"
    r"|translate|suffer|live|work|start work|get up|wake up|keep (?:an?|my|bees|hens|chickens)|go to (?:bed"
    r"|the gym))\b(?! (?:it|this|that|these|those|to the)\b)",
    r"\bI (?:don't|do not|can't|cannot|can not|mustn't|won't|no longer) (?:eat|drink|use|own|drive|have|hear|speak"
    r"|take|tolerate|work|read|cook|touch|do|want)\b(?! (?:it|this|that|the|any idea|time)\b)",
    r"\b(?:I|we)(?: have|'ve got) (?:an?|two|three|four|five|no) (?:[\w-]+ )?(?:dogs?|cats?|kids?|child(?:ren)?|sons?"
    r"|daughters?|allergy|sisters?|brothers?|twins|horses?|condition|degree|garden|bab(?:y|ies)|toddler"
    r"|\w+-year-olds?)\b",
    r"\bI(?:'ve| have) (?:been|had|lived|worked|played|got) .*\b(?:for (?:\d+|\w+) years|since)\b|\ballerg(?:y|ic)\b"
    r"|\bintoleran(?:t|ce)\b",
    r"^(?:my|our) (?:\w+ )?(?:husband|wife|partner|sons?|daughters?|kids?|child(?:ren)?|dog|cat|mum|mom|mother|dad"
    r"|father|sister|brother|baby|twins)\b.* (?:has|have|can't|cannot|hates?|loves?|doesn't|don't|is|are|lives?|likes?"
    r"|goes)\b",
    r"\b(?:we're|we are) (?:a family of )?(?:two|three|four|five|six|\d)\b|\bI(?:'ve got| have) (?:an? )?(?:bad|weak"
    r"|sensitive|chronic|asthma|diabetes|coeliac|celiac|migraines|epilepsy|adhd)\b",
    r"\b(?:I was born|I grew up|I come from|(?:isn't|is not) my (?:first|native) language)\b",
)
LASTING = any_of(
    r"\balways\b|\bnever\b(?! (?:been|had|seen|heard|mind|thought|tried|knew|know|ask|told))",
    r"\bevery (?:time|single|other|first|second|last|\w+)\b|\beach (?!other)\w+|\bwhenever\b|\busually\b|\bnormally\b",
    r"\bas a rule\b|\bby default\b|\b(?:habit|routine|convention|policy)\b|\bfrom now on\b|\bin (?:the )?future\b"
    r"|\bgoing forward\b|\bin general\b|(?<!I )(?<!it )(?<!a )(?<!that )\bmust(?! (?:have|be \w+(?<!ed)\b|feel|say"
    r"|admit)|'ve)\b|\bon (?:\w+day)s\b|\b(?:twice|once|times) an? \w+\b",
    r"\b(?:I|we) only (?!have|had|want|need|got|just|know|mean|ask|saw|see)\w+|\b(?:I|we) \w+ only\b",
    r"\b(?:everything|anything|all) (?:I|we) \w+",
    r"\b(?:anything|everything|whatever|whoever) .*\b(?:goes|go|belongs?|has|must)\b",
    r"\bfirst\b.*\b(?:then|after)\b|\bonly (?:then|after|once)\b|\bthen (?:I|we)\b|^(?:once|after|before) .*, (?:I"
    r"|we)\b",
    r"\b(?:don't|do not|stop|no more|skip|avoid)\b.*\b(?:again|any ?more|ever)\b",
    r"^(?:when|if) (?:you|I) (?:\w+ )?(?:write|give|ask|send|explain|draft|show|answer|suggest|translate|mention"
    r"|say)\b",
    r"\bwe(?:'re| are) on\b|\bwe (?:all |don't |do not )?(?:use|run|keep|deploy|host|write|build|ship|release|store"
    r"|log|track|stick to|follow|name|put|format|pin|target|support|bill|charge|meet|sell|pay)\b(?! (?:it|this"
    r"|that)\b)",
    r"\bin (?:this|our) (?:repo\w*|project|team|company|shop|house|office|codebase|school|lab|department|family)\b",
    r"\bnothing (?:that|with)\b|\bonly\.?$|\bno \w+(?: \w+)?, (?:ever|please)\b|\bnot going to change\b|\bfor good\b"
    r"|\bpermanently\b|\bwith us\b|\baround here\b|\byour (?:answers?|replies|explanations?|summaries|messages)\b",
)
ORDER = any_of(
    r"(?:please |from now on,? |in (?:the )?future,? |going forward,? )*(?:don't|do not|never|always|stop|skip|avoid"
    r"|use|keep|write|answer|give|no\b|leave|drop|call|address|begin|start|end|reply|put|explain|assume)\b",
)
ORDER_WORD = any_of(
    r"(?:please |from now on,? |in (?:the )?future,? |going forward,? )*(?:(don't|do not|never|always|no)\b )?"
)
NO_ORDER = any_of(r"(?:never|always) (?:on|in|at|before|after|without|with|did|do|have|has|will)\b", r"\w+\W*$")
ANNOUNCED = any_of(
    r"\b(?:for (?:the|any|all) future|from now on|in future|going forward|for next time|keep in mind|good to know"
    r"|(?:few|two|three|some|my|our|house|ground|the) (?:\w+ )?(?:rules|requests|wishes|conventions|preferences"
    r"|habits)|things to (?:know|remember|note)|(?<!know )about (?:me|us|myself)|how (?:we|I) work|(?:house|our"
    r"|my) style|(?:our|my|the) set-?up|some (?:context|background))\b",
)
CHANGE = any_of(
    r"\b(?:I|we)(?:'ve| have)?(?: \w+)? (?:moved|switched|changed|migrated|replaced|gave up|given up|quit|stopped|sold"
    r"|renamed|dropped|left (?:my|the|our)|retired|become|got rid|went (?:over|back))\b",
    r"\b(?:my|our|the) [\w -]{1,30} (?:has |have |was |were )?(?:moved|switched|changed|migrated|renamed|replaced)\b",
    r"\bno longer\b|\b(?:not|n't)\b.* any ?more\b|^(?:not )?any ?more\b|\binstead of\b|\bthese days\b|\bas of\b",
    r"\b(?:is|are|'s|'re) now\b|(?<!from )\bnow (?:on|use|live|work|called|runs?|is|are|I|we)\b|\b(?:I"
    r"|we) (?:\w+ )?now\b|\w+ now$",
    r"\b(?:my|our|the|a) new (?:job|flat|house|car|boss|number|address|phone|laptop|team|office|place)\b",
)
WORK = any_of(
    r"\b(?:repo(?:sitory)?|branch(?:es)?|servers?|databases?|cluster|staging|production|prod|tests?|builds?|ci"
    r"|pipeline|deploy\w*|releases?|backups?|nas|printers?|scripts?|configs?|configuration|folders?|director(?:y|ies)"
    r"|ports?|api|endpoints?|migrations?|queues?|containers?|docker|packages?|dependenc(?:y|ies)|libraries|linter"
    r"|formatter|laptop|machines?|workstation|wiki|tracker|tickets?|spreadsheets?|templates?|codebase|service|registry"
    r"|router|invoices?|quotes|customers?|clients|suppliers?|stock|office|studio|workshop|lab|changelog|commits?"
    r"|pull requests?|reviews?|project|sensors?|devices?|network|website|app|files?|drive|oven|car|van|boiler|heating"
    r"|camera|kiln|boat|logs?|pc|computer|desktop|tablet|phone|vm|cloud|bucket|firewall|vpn|proxy|cron|jobs?|schema"
    r"|tables?|modules?|plugins?|kernel|python|node|java|django|postgres\w*|mysql|redis|editor|terminal|shell|keyboard"
    r"|calendar|meetings?|windows \d+|macos|linux|ubuntu|debian|fedora)\b",
)
# Whom a habit belongs to; of others and of nobody it is an opinion.
FIRST = any_of(r"\b(?:I|we|my|our|us|me|mine)\b")
TO_YOU = any_of(r"\b(?:you|your|you're|you've|you'll|guys)\b")
ASKED_OF_YOU = any_of(
    r"\b(?:want|like|need|expect) you to\b|\b(?:when|if) you\b|\byour (?:answers?|repl|expl|summar|messages)"
)
OURS = re.compile(r"\b[Oo]ur\b")
TOGETHER = any_of(r"\b(?:we|our)\b")
STANDS = any_of(
    r"\b(?:is|are|lives?|runs?|uses?|takes?|sits?|listens?|needs?|keeps?|kept|mounts?|stores?|speaks?|expects?|called"
    r"|named|hosted|goes|has|have|belongs?|on)\b|\b\w+'(?:s|re)\b",
)
# A name, a path, an address, a version: what one would have to ask for again. Capitals count.
NAMED = re.compile(r"(?<=[\w,;] )[A-Z][\w-]+|\S*[/_\\]\S+|\w+[.:-]\w+|`[^`]+`|\b\w*\d\w*\b|\b(?:called|named) \S+")
TROUBLE = any_of(
    r"\b(?:broken|down|slow|off|stuck|failing|red|green|missing|wrong|ready|fine|open|closed|installed)\b",
    r"\b\w+ing\.?$",
)
