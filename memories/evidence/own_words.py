"""Which parts of a person's message are their own words, and which they pasted or forwarded: told by structure alone.
The rule is written down in docs/evidence.md. Every pattern is linear in the text."""

import re
from collections.abc import Iterator, Sequence

from memories.evidence.brought import Span, brought_texts

LONGEST_LEAD = 200  # characters of an order that stands before or behind a text: "summarise this:"
SHORTEST_TEXT = 120  # characters of a text that stands under an order which need not be about one: "here is how:"
SHORTEST_SUBJECT = 12  # characters of a text under an order that is always about one: "summarise this:"
LONGEST_SPEECH = 2000  # characters beyond which a message without "I" and "my" is taken for a text from elsewhere
LONGEST_CITED = 80  # characters between quotation marks that are still taken for the person's own wording

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})", re.MULTILINE)
_LINES = (
    re.compile(r"^[ \t]*>.*$", re.MULTILINE),  # quotation
    re.compile(r"^\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*$", re.MULTILINE),  # a log
    re.compile(r"^(?:\+\+\+|---|@@|diff --git) .*$", re.MULTILINE),  # a patch
)
_HEADER = (
    r"[ \t]*\*{0,2}(?:From|To|Cc|Sent|Date|Subject|Reply-To|Von|An|Gesendet|Datum|Betreff|De|À|A|Para|Envoyé|Objet"
    r"|Asunto|Enviado(?: el)?|Fecha|Assunto|Data|Da|Oggetto|Inviato|Van|Aan|Onderwerp|Verzonden|Från|Till|Ämne|Skickat"
    r"|Fra|Til|Emne|Od|Do|Temat|Kimden|Kime|Konu|От|Кому|Тема|Дата|发件人|收件人|主题|日期|差出人|宛先|件名|보낸사람|제목)"
    r"\*{0,2}[ \t]?[:：]\*{0,2}[ \t]?\S.*"
)
# From here on the rest of the message is somebody else's.
_FOREIGN_FROM = re.compile(
    "|".join(
        (
            r"^[-_=]{3,}[ \t]?[^\n\-_=][^\n]{1,60}?[-_=]{3,}[ \t]*$",  # --- Forwarded message ---
            r"^(?:Begin forwarded message|Anfang der weitergeleiteten|Début du message|Inicio del mensaje"
            r"|Inizio messaggio)\b",
            r"^(?:On|Am|Le|El|Il|Op|Em|Den|W dniu) [^\n]{6,120}?(?:wrote|schrieb[^\n]{0,60}|a écrit|escribió|ha scritto"
            r"|schreef[^\n]{0,60}|escreveu|skrev[^\n]{0,60}|napisał[^\n]{0,60})[ \t]?:[ \t]*$",
            rf"^{_HEADER}\n{_HEADER}$",
            r"^BEGIN:V[A-Z]+[ \t]*$",
            r"^\[[^\]\n]{2,200}\](?: Result:)?[ \t]*$",  # [File notes.txt], [read_file for 'a.py'] Result:
            r"^Traceback \(most recent call last\):",
        )
    ),
    re.MULTILINE,
)
_JSON_FROM = re.compile(r"^[ \t]*(?:\{[ \t]*[\"\n]|\[[ \t]*(?:\{|\n[ \t]*\{))", re.MULTILINE)
_JSON_TO = re.compile(r"[\]}][ \t]*$", re.MULTILINE)
_TAG = re.compile(r"<(?:!--|(/?)([A-Za-z][\w:-]{0,40})(?:\s[^<>]{0,2000})?(/?)>)")
# People put these around words of their own; who pastes a page brings other tags along.
_INLINE = frozenset(
    {"b", "i", "u", "s", "em", "strong", "code", "kbd", "mark", "small", "sub", "sup", "del", "ins", "br"}
)
# Clients put a person's message into these; what stands in them was said.
SAID_IN = frozenset({"user_input", "user_message", "user_query", "task", "feedback"})
_SAID_IN_TAG = re.compile(rf"\s*<(?:{'|'.join(sorted(SAID_IN))})(?:\s[^<>]{{0,300}})?>", re.IGNORECASE)
_QUESTION_HEAD, _QUESTION_BEGINS = "### Task:", "</context>"
_CITED = re.compile(r"[“„«][^“”„«»]*[”“»]|(?<![^\s(\[:])\"(?=\S)[^\"]*\"")

# Orders that are always about a text from elsewhere, and those that often are.
_ABOUT_A_TEXT = re.compile(
    r"summar|\btl;?dr|translat|proofread|rewrite|rephrase|paraphrase|transcri|\bgist\b|\baction items"
    r"|\bthoughts(?: on\b|\?)"
    r"|\b(?:reply|respond|answer) (?:to (?:this|that|him|her|them)|(?:this|that|him|her|them)\b|politely|kindly|nicely)"
    r"|\b(?:turn|sort|group|explain) (?:this|these|them)\b|\b(?:got|found|received|pasted) this\b"
    r"|\b(?:sent|wrote|opened|posted) (?:me )?this\b|\bquotes? (?:out of|from) this|\bis this (?:\w+ )?(?:scam|spam"
    r"|legit|phishing)"
    r"|\bwhat (?:does|do) (?:he|she|they|this|that) (?:\w+ )?(?:mean|want|expect)|\bwould you reply\b"
    r"|zusammenfass|\bfass\w*\b.*\bzusammen|übersetz|korrektur|antworte (?:ihm|ihr|ihnen|darauf|höflich|freundlich)"
    r"|mach\w* (?:\w+ )?daraus|was (?:will|wollen) (?:er|sie) |résum|tradui|relis|répon\w*[- ](?:lui|leur|poliment)"
    r"|que (?:veut|veulent)[- ](?:il|elle|ils|elles)|attend de moi|resum|traduc|traduz|respóndel|contéstal|qué quiere\b"
    r"|riassum|rispond\w*gli|cosa vuole\b|samenvat|vertaal|sammanfatta|översätt|sammenfat|oversæt|podsumuj|streść"
    r"|przetłumacz"
    r"|odpisz|özetle|çevir|перевед|перескаж|резюм|кратк|ответь (?:ему|ей|им"
    r"|вежливо)|总结|總結|翻译|翻譯|回复他|回复她|要約|翻訳"
    r"|返信して|返事を書|요약|번역|답장|لخص|ترجم|सारांश|अनुवाद",
    re.IGNORECASE,
)
_POINTS_AT_A_TEXT = re.compile(
    r"\b(?:this|these|that|it|below|above|following|here|page|article|e-?mail|mail|message|thread|ticket|invite|log"
    r"|file"
    r"|document|text|notes?|post|diff|code|output|report|letter|dies\w*|das|folgend\w*|hier|unten|oben|seite|nachricht"
    r"|ceci|cette?|ci-dessous|voici|suivant\w*|est[eoa]|aquí|siguiente\w*|aqui|seguinte|questo|questa|ecco|seguente|dit"
    r"|deze|это\w*|вот|ниже)\b|以下|这|這|これ|この|次の|다음|이것",
    re.IGNORECASE,
)
# What a person wrote is their own, though they ask about it.
_OWN_TEXT = re.compile(
    r"\b(?:my|mein\w{0,2}|mon|ma|mes|mi|mis|meu|minha|mio|mia|mijn|min|mitt|mój|moja|мой|моё|моя)\b(?: [^\W\d]+){0,2} "
    r"(?:draft|template|prompt|notes?|text|post|code|function|script|config|log|essay|letter|e?-?mail|cv|poem|story"
    r"|plan|list|entwurf|vorlage|notizen"
    r"|brouillon|texte|borrador|texto|bozza|testo|rascunho|szkic|tekst|черновик|текст)|\bI(?:'ve| have)? (?:wrote"
    r"|written|made)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(
    r"\b(?:i|i'm|i’m|i've|i’ve|i'll|i’ll|i'd|i’d|me|my|mine|we|our|us|ich|mir|mich|mein\w{0,2}|wir|uns|unser\w{0,2}"
    r"|je|j|mon"
    r"|ma|mes|moi|nous|notre|nos|yo|mi|mis|mí|nosotr[oa]s|nuestr[oa]s?|eu|meu|minha|nós|nosso|nossa|io|mio|mia|miei|noi"
    r"|nostr[oaie]|ik|mijn|mij|wij|ons|onze|jag|min|mitt|mina|vi|vår|jeg|mit|mine|ja|mój|moja|moje|my|ben|benim|biz"
    r"|я|мне"
    r"|меня|мой|моя|мои|моё|мы|наш\w?)\b|我|私|僕|俺|제가|저는|나는|내가|أنا|मैं|मेर",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")


def foreign_spans(text: str) -> list[Span]:
    """Return the parts of a person's message that are not their own words, in order and without overlap."""
    found = [*_fences(text), *(match.span() for lines in _LINES for match in lines.finditer(text))]
    if begins := _FOREIGN_FROM.search(text):
        found.append((begins.start(), len(text)))
    found += _json(text)
    found += brought_texts(text)
    found += (elements := _merged(list(_elements(text))))
    found += _cited(text)
    start, end = _between(text, elements)
    found += _texts_under_orders(text, start, end)
    left = _left(text, found := _merged(found))
    if len(left) >= LONGEST_SPEECH and not _speaks_of_itself(left, 100):
        return _merged([*found, (start, end)])
    return found


def _left(text: str, spans: Sequence[Span]) -> str:
    ends = [0, *(edge for span in spans for edge in span), len(text)]
    return "".join(text[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True)).strip()


def question_start(text: str) -> int:
    """Return where the person's question begins in what Open WebUI sends with documents: behind them. 0 in any other
    message."""
    if not text.lstrip().startswith(_QUESTION_HEAD):
        return 0
    last = text.rfind(_QUESTION_BEGINS)
    return last + len(_QUESTION_BEGINS) if last >= 0 else 0


def _cited(text: str) -> Iterator[Span]:
    """Yield long quotations. Marks around the whole message cite nothing: some clients send it in them."""
    whole = text.strip()
    for cited in _CITED.finditer(text):
        if cited.end() - cited.start() > LONGEST_CITED + 2 and cited[0] != whole:
            yield cited.span()


def _fences(text: str) -> Iterator[Span]:
    """Yield blocks of code; one that is never closed goes to the end."""
    opened: tuple[int, str] | None = None
    for match in _FENCE.finditer(text):
        if opened is None:
            opened = match.start(), match[1]
        elif match[1].startswith(opened[1]):
            yield opened[0], match.end()
            opened = None
    if opened is not None:
        yield opened[0], len(text)


def _json(text: str) -> Iterator[Span]:
    begins = _JSON_FROM.search(text)
    if begins:
        ends = [match.end() for match in _JSON_TO.finditer(text, begins.end())]
        if ends:
            yield begins.start(), ends[-1]


def _elements(text: str) -> Iterator[Span]:
    """Yield elements of markup with what is in them, and comments. A tag that is never closed stands for itself, and so
    do those that a client puts around the message. What comes with documents is one element."""
    begins = question_start(text)
    if around := _SAID_IN_TAG.match(text, begins):
        begins = around.end()
    yield 0, begins
    opened, name, depth = -1, "", 0
    for tag in _TAG.finditer(text, begins):
        if tag[2] and tag[2].casefold() in _INLINE and tag.end() - tag.start() <= len(tag[2]) + len("</ >"):
            continue
        if tag[2] is None:
            if opened < 0:
                end = text.find("-->", tag.end())
                yield tag.start(), end + 3 if end >= 0 else len(text)
        elif opened < 0:
            yield tag.span()
            if not tag[1] and not tag[3]:
                opened, name, depth = tag.start(), tag[2].casefold(), 1
        elif tag[2].casefold() == name and not tag[3]:
            depth += -1 if tag[1] else 1
            if depth == 0:
                yield opened, tag.end()
                opened = -1


def _between(text: str, elements: Sequence[Span]) -> Span:
    """Return where the message begins and ends without the elements that stand around it."""
    first, last = 0, len(text)
    for start, end in elements:
        if start >= first:
            if text[first:start].strip():
                break
            first = end
    for start, end in reversed(elements):
        if end <= last:
            if start < first or text[end:last].strip():
                break
            last = start
    said = text[first:last]
    return first + len(said) - len(said.lstrip()), last - len(said) + len(said.rstrip())


def _texts_under_orders(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the long text that a short order before or behind it is about."""
    for lead in _leads(text, start):
        if _is_about(text[start:lead], text[lead:end]):
            yield lead, end
            return
    tail = text.rfind("\n", start, end) + 1
    if 0 < end - tail <= LONGEST_LEAD and _is_about(text[tail:end], text[start:tail]):
        yield start, tail


def _leads(text: str, start: int) -> Iterator[int]:
    """Yield where a text may begin: behind the first line, and behind the first colons in it. What follows a colon on
    a line of its own and says "I" or "my" is still the person's ("remember this: my cat is called Biscuit"), unless the
    order is one that is always about a text."""
    first_line = text.find("\n", start, start + LONGEST_LEAD + 1)
    stop = first_line if first_line >= 0 else start + LONGEST_LEAD
    for match in re.finditer(r"(?::(?=\s)|：)\s*", text[start:stop]):
        order, rest = text[start : start + match.end()], text[start + match.end() : stop]
        if first_line < 0 or _ABOUT_A_TEXT.search(order) or not _FIRST_PERSON.search(rest):
            yield start + match.end()
    if first_line >= 0:
        yield first_line + 1


def _is_about(order: str, rest: str) -> bool:
    """Return True if a text stands under an order. One that need not be about a text is, where the text does not speak
    of itself."""
    if _OWN_TEXT.search(order):
        return False
    if _ABOUT_A_TEXT.search(order):
        return len(rest) >= SHORTEST_SUBJECT
    ends_line = order.endswith("\n") and order.rstrip().endswith((":", "："))
    points = ends_line or bool(_POINTS_AT_A_TEXT.search(order))
    return points and len(rest) >= SHORTEST_TEXT and not _speaks_of_itself(rest, 40)


def _speaks_of_itself(text: str, words_each: int) -> bool:
    """Return True if "I" or "my" comes at least once in so many words, in whichever language."""
    words = len(_WORD.findall(text))
    return len(_FIRST_PERSON.findall(text)) * words_each >= max(1, words)


def _merged(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
