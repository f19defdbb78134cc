"""What the demo model never keeps: words that are not the person's own, games, questions, passing states, what was
done, other people in passing, secrets, and orders planted for a model."""

import re

from gateway.demo.cues import any_of
from memories.scanning import scan

_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_BRACKETED = re.compile(r"\[[^\]\n]*\]")
_QUOTED_LINE = re.compile(r"^\s*(?:>|\|).*$", re.MULTILINE)
_QUOTED = re.compile(r"""["“«„][^"”»“]*["”»“]|(?<!\w)['‘][^'’]*['’](?!\w)""")
_FEWEST_QUOTED = 3  # a quoted word or two is a name more often than a quotation
# "here is the mail: …", "the page says: …": what follows the colon, or the line, was written by somebody else.
_PASTED = any_of(
    r"\b(?:e-?mails?|mail|message|article|page|post|letter|review|readme|logs?|text|transcript|(?:his|her|their|these"
    r"|meeting) notes?|comment|ticket|thread|output|draft|paragraph|passage|sentence|speech|poem|story|bio"
    r"|intro(?:duction)?|profile|blurb|blog|advert|advertisement|lyrics|recipe|newsletter|says|said|wrote|writes|reads"
    r"|read this|pasted?|forward(?:ed)?|translate|summari[sz]e|proofread|rewrite|this from|got this|this is|here(?:'s"
    r"| is| it is)|the following|below|sent me|found this)\b(?:[^.!?\n:]{0,80}:(?=\s)|[^\n:]{0,80}\n(?=\s*\S))",
    r"^(?:-{3,}|={3,})",
)
_GAME = any_of(
    r"\b(?:let's (?:play|pretend|say|imagine|suppose|assume)|role-?play|pretend|imagine|suppose|hypothetical(?:ly)?"
    r"|thought experiment|act as|for the sake of argument|what if|you(?:'re| are) (?:the|an?|my) \w+, (?:and )?I"
    r"|in (?:the|my|this|our) (?:story|novel|game|play|campaign|scene|sketch)|my (?:\w+ )?(?:character|hero(?:ine)?)"
    r"|(?:write|tell)(?: me)? (?:an?|the) (?:\w+ )?(?:story|poem|scene|dialogue|monologue|sketch|song|joke))\b",
)
_GAME_OVER = any_of(
    r"\b(?:stop (?:here|there)|back to (?:reality|work|business|earth)|in (?:real life|reality)|game over"
    r"|out of character|end of (?:the )?(?:game|scene|story))\b",
)
_QUESTION = any_of(
    r"\?\W*$|^(?:what|how|why|who|which|where)\b",
    r"^(?:is|are|am|do|does|did|can|could|should|shall|would|will|has|have)"
    r" (?:I|you|we|it|there|they|he|she|that|this|the|my|our)\b",
)
_DAYS = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_PASSING = any_of(
    r"\b(?:today|tonight|tomorrow|yesterday|(?:right|just|for) now|(?<!from )now|at the moment|currently)\b",
    r"\b(?:so far|meanwhile)\b",
    rf"\b(?:this|last|next) (?:time|one|morning|afternoon|evening|night|week|weekend|month|sprint|{_DAYS})\b",
    r"\b(?:already|almost|nearly|still (?:have|need|waiting|not)|maybe|perhaps|probably)\b",
    r"\b(?:\d+|an?|few|two|three) (?:minutes?|hours?|days?|weeks?) ago\b",
    r"\bin (?:\d+|an?|two|three|ten) (?:minutes?|hours?|days?)\b",
    r"\bI(?:'m| am) (?:stuck|about|off|out|on my way|so)\b",
    r"\b(?:I'm|I am|we're|we are) (?!living|studying|teaching|using)\w+ing\b",
    rf"(?<!never )(?<!always )\bon (?:(?:my|the) )?{_DAYS}\b",
    r"\b(?:I(?:'d| would)(?! (?:rather|prefer))|I wish|if I (?:were|was|had|could|lived|did))\b",
)
_EVENT = any_of(
    r"(?<!always )(?<!never )\b(?:was|were|did|had|went|came|said|told|asked|found|saw|took|made|gave|broke|failed"
    r"|fixed|tried|forgot|lost|bought|happened|turned|worked|crashed|installed|finished|passed|merged|pushed|ended"
    r"|(?:I|we|it|he|she|they)(?:'ve|'s|'d)? just|(?:I|we) \w+ed)\b",
)
_OTHERS = any_of(
    r"^(?:he|she|they|let's|someone|somebody|people|you|it|this|that|there|nothing|nobody|everybody|everyone)\b",
    r"^(?:my|our|an?|the|this|that) (?:\w+ )?(?:friend|neighbou?r|colleague|co-?worker|boss|manager|landlord|cousin"
    r"|uncle|aunt|nephew|niece|classmate|roommate|flatmate|guy|guest|stranger|doctor|dentist|teacher|mother-in-law"
    r"|father-in-law)s?\b",
)
_OF_MODELS = any_of(r"\b(?:the user|users?'s|assistants?|AI|language models?|chat ?bots?|system prompt)\b")
_SECRET = any_of(
    r"\b(?:passwords?|passphrase|passcode|pass ?key|pin|secrets?|credentials?|api[ -]?key|(?:access )?token|log ?in"
    r"|card number|iban|cvc|account number|code is|combination is)\b",
)


def own_words(text: str) -> str:
    """A message without what its writer pasted or quoted."""
    for strange in (_FENCED, _BRACKETED, _QUOTED_LINE):
        text = strange.sub(" ", text)
    text = _QUOTED.sub(lambda quoted: " " if len(quoted[0].split()) >= _FEWEST_QUOTED else quoted[0], text)
    pasted = _PASTED.search(text)
    if pasted is None:
        return text
    before = text[: pasted.start()]
    return before[: max(map(before.rfind, ".!?\n")) + 1]


def opens_game(text: str) -> bool:
    """Whether a message begins something made up: a game, a story, a thought experiment."""
    return bool(_GAME.search(text))


def ends_game(text: str) -> bool:
    """Whether a message leads back to what is real."""
    return bool(_GAME_OVER.search(text))


def is_planted(text: str) -> bool:
    """Whether a message holds orders meant for a model, as pages and mails may."""
    return any(finding.kind == "injection" for finding in scan(text).findings)


def is_never_kept(sentence: str) -> bool:
    """Whether a sentence asks, gives a secret away or comes near one, or speaks of models and their users."""
    return any(p.search(sentence) for p in (_QUESTION, _SECRET, _OF_MODELS)) or scan(sentence).blocked


def is_passing(sentence: str) -> bool:
    """Whether a sentence tells what holds only now, or what might be."""
    return bool(_PASSING.search(sentence))


def is_event(sentence: str) -> bool:
    """Whether a sentence tells what happened or was done."""
    return bool(_EVENT.search(sentence))


def is_of_others(sentence: str) -> bool:
    """Whether a sentence speaks of somebody or something else than the person and their work."""
    return bool(_OTHERS.match(sentence))
