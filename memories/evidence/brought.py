"""Texts that a person brings along, told by the form of their lines: conversations of others, letters and mails, and
what stands between two rules. The forms are written down in docs/evidence.md. Linear in the text."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

Span = tuple[int, int]

SHORTEST_RULED = 100  # characters between two rules that are a text of its own
_LABELS = 3  # lines "Name: …" of which one name comes twice, from which on they are a conversation
_STAMPS = 2  # lines "[19:41] Name: …" that are one
_CLOCK = r"\d{1,2}[:.h]\d\d(?:[:.]\d\d)?(?:[ \u202f]?[AaPp]\.?[Mm]\.?)?"
_DAY = r"(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\d{1,2}\.? [^\W\d]{3,12}\.?(?: \d{4})?(?: г\.)?)"
_STAMP = rf"[\[(]?(?:{_DAY},?[ ]?(?:at |um |à |в )?)?{_CLOCK}[\])]?"
_STAMPED = re.compile(
    rf"^[ \t\u200e]*(?:{_STAMP}[ \t]*[-–—]?[ \t]*[^\n:]{{1,40}}:[ \t]|[^\n:\[]{{1,40}},?[ \t]+{_STAMP}[ \t]*(?:$|:))",
    re.MULTILINE,
)
_LABELLED = re.compile(
    r"^[ \t]*(?:[-*][ \t]+)?([^\W\d_][^\n:]{0,40}?)(?:[ ]?\([^\n()]{1,30}\))?[ ]?[:：][ \t]+\S", re.MULTILINE
)
_GREETINGS = (
    r"dear|hi|hello|hey|good (?:morning|afternoon|evening)|hallo|liebe[rs]?|sehr geehrte[rs]?|guten (?:tag|morgen)|moin"
    r"|bonjour|bonsoir|coucou|chers?|chères?|madame|monsieur|hola|buen[oa]s|estimad[oa]s?|querid[oa]s?|ciao|gentil[ei]"
    r"|car[oaie]|egregi[oa]|buongiorno|beste|geachte|olá|prezad[oa]s?|bom dia|boa tarde|hej|kära|kære|drog[ia]"
    r"|szanown[aiy]\w*|dzień dobry|cześć|witam|merhaba|sayın|здравствуй\w*|уважаем\w+|привет|добрый день|дорог\w+"
)
_GREETING = re.compile(
    rf"^[ \t]*(?:(?:{_GREETINGS})\b[^\n.!?]{{0,60}}[,!:.]?|[^\n]{{1,40}}(?:様|さん|殿)[、，]?|(?:尊敬的"
    rf"|亲爱的)[^\n]{{1,30}})[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_NOBODY = re.compile(
    rf"[ \t]*(?:{_GREETINGS})(?: (?:there|again|all|everyone|zusammen|à tous|a todos))?[,!:. \t]*$", re.IGNORECASE
)
_FAREWELL = re.compile(
    r"^[ \t]*(?:(?:(?:with )?(?:best|kind|warm|warmest|many thanks and) (?:regards|wishes)|kind regards|regards"
    r"|best|cheers"
    r"|sincerely|yours (?:truly|sincerely|faithfully)|yours|love|hugs|warmly|respectfully|xo+|mit (?:freundlichen"
    r"|besten"
    r"|lieben|herzlichen) grüßen|(?:viele|liebe|beste|herzliche|schöne) grüße|freundliche grüße|lg|mfg|vg|im auftrag"
    r"|hochachtungsvoll|cordialement|bien (?:à vous|cordialement)|bises|bisous|sincères salutations|saludos|atentamente"
    r"|un (?:abrazo|saludo)|besos|cordiali saluti|distinti saluti|un abbraccio|a presto|met vriendelijke groet\w*"
    r"|groetjes"
    r"|atenciosamente|abraços|um abraço|beijos|pozdrawiam|z poważaniem|med vänliga? hälsning\w*|mvh|saygılarımla"
    r"|с уважением|всего доброго|обнимаю)\b[^\n]{0,40}|敬具|草々|此致|敬上)[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_LONGEST_NAME = 60  # characters of a line under the farewell
_NAMES = 4  # lines of a signature
_RULE = re.compile(r"^[ \t]*(?:-{3,}|={3,}|_{3,}|\*{3,}|(?:[-*=] ){2,}[-*=])[ \t]*$", re.MULTILINE)
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")


def brought_texts(text: str) -> Iterator[Span]:
    """Yield what is of others by its form."""
    yield from _conversations(text)
    yield from _letters(text)
    for above, below in pairwise(_RULE.finditer(text)):
        if below.start() - above.end() >= SHORTEST_RULED:
            yield above.start(), below.end()


def _conversations(text: str) -> Iterator[Span]:
    """Yield from the first line that somebody said to the end of the paragraph with the last one."""
    stamped = [match.start() for match in _STAMPED.finditer(text)]
    if len(stamped) >= _STAMPS:
        yield stamped[0], _paragraph_end(text, stamped[-1])
    said = [(match.start(), match[1].casefold()) for match in _LABELLED.finditer(text)]
    times = Counter(name for _, name in said)
    places = [start for start, name in said if times[name] > 1]
    if len(said) >= _LABELS and places:
        yield places[0], _paragraph_end(text, places[-1])


def _letters(text: str) -> Iterator[Span]:
    """Yield each letter: from its greeting, on a line of its own, to the names under its farewell."""
    at = 0
    while (greeting := _GREETING.search(text, at)) and (farewell := _FAREWELL.search(text, greeting.end())):
        at = _signature_end(text, farewell.end())
        # Who begins by greeting nobody by name greets the assistant.
        if text[: greeting.start()].strip() or not _NOBODY.match(greeting[0]):
            yield greeting.start(), at


def _signature_end(text: str, at: int) -> int:
    """Return where the names under a farewell end: a few short lines, one of which may be blank before them."""
    for line in range(_NAMES + 1):
        end = text.find("\n", at + 1)
        end = len(text) if end < 0 else end
        name = text[at:end].strip()
        if at >= len(text) or len(name) > _LONGEST_NAME or (not name and line > 0):
            break
        at = end
    return at


def _paragraph_end(text: str, at: int) -> int:
    found = _PARAGRAPH_END.search(text, at)
    return found.start() if found else len(text)
