"""Which parts of a person's message are their own words, and which they pasted or forwarded: told by structure alone.
The rule is written down in docs/evidence.md. Every pattern is linear in the text."""

import re
from collections.abc import Iterator, Sequence

Span = tuple[int, int]

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
            r"^\[[^\]\n]{2,200}\][ \t]*$",  # [tool output], [File notes.txt]
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
_CITED = re.compile(r"[“„«][^“”„«»]*[”“»]|(?<![^\s(\[:])\"(?=\S)[^\"]*\"")

# Orders that are always about a text from elsewhere, and those that often are.
_ABOUT_A_TEXT = re.compile(
    r"summar|\btl;?dr|translat|proofread|rewrite|rephrase|paraphrase|transcri|\bgist\b|zusammenfass|\bfass\w*\b.*\bzusammen"
    r"|übersetz|korrektur|résum|tradui|relis|resum|traduc|traduz|riassum|samenvat|vertaal|sammanfatta|översätt|sammenfat"
    r"|oversæt|podsumuj|streść|przetłumacz|özetle|çevir|перевед|резюм|кратк|总结|總結|翻译|翻譯|要約|翻訳|요약|번역|لخص|ترجم|सारांश|अनुवाद",
    re.IGNORECASE,
)
_POINTS_AT_A_TEXT = re.compile(
    r"\b(?:this|these|that|it|below|above|following|here|page|article|e-?mail|mail|message|thread|ticket|invite|log|file"
    r"|document|text|notes?|post|diff|code|output|report|letter|dies\w*|das|folgend\w*|hier|unten|oben|seite|nachricht"
    r"|ceci|cette?|ci-dessous|voici|suivant\w*|est[eoa]|aquí|siguiente\w*|aqui|seguinte|questo|questa|ecco|seguente|dit"
    r"|deze|это\w*|вот|ниже)\b|以下|这|這|これ|この|다음|이것",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(
    r"\b(?:i|i'm|i’m|i've|i’ve|i'll|i’ll|i'd|i’d|me|my|mine|we|our|us|ich|mir|mich|mein\w{0,2}|wir|uns|unser\w{0,2}|je|j|mon"
    r"|ma|mes|moi|nous|notre|nos|yo|mi|mis|mí|nosotr[oa]s|nuestr[oa]s?|eu|meu|minha|nós|nosso|nossa|io|mio|mia|miei|noi"
    r"|nostr[oaie]|ik|mijn|mij|wij|ons|onze|jag|min|mitt|mina|vi|vår|jeg|mit|mine|ja|mój|moja|moje|my|ben|benim|biz|я|мне"
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
    found += _elements(text)
    found += [cited.span() for cited in _CITED.finditer(text) if cited.end() - cited.start() > LONGEST_CITED + 2]
    found += _texts_under_orders(text)
    return _merged(found)


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
    """Yield elements of markup with what is in them, and comments. A tag that is never closed stands for itself."""
    opened, name, depth = -1, "", 0
    for tag in _TAG.finditer(text):
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


def _texts_under_orders(text: str) -> Iterator[Span]:
    """Yield the long text that a short order before or behind it is about; a long message in another register."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    for lead in _leads(text, start):
        if _is_about(text[start:lead], text[lead:end]):
            yield lead, end
            return
    tail = text.rfind("\n", start, end) + 1
    if 0 < end - tail <= LONGEST_LEAD and _is_about(text[tail:end], text[start:tail]):
        yield start, tail
        return
    if end - start >= LONGEST_SPEECH and not _speaks_of_itself(text[start:end], 100):
        yield start, end


def _leads(text: str, start: int) -> Iterator[int]:
    """Yield where a text may begin: behind the first line, and behind the first colons in it."""
    first_line = text.find("\n", start, start + LONGEST_LEAD + 1)
    stop = first_line if first_line >= 0 else start + LONGEST_LEAD
    for match in re.finditer(r"(?::(?=\s)|：)\s*", text[start:stop]):
        yield start + match.end()
    if first_line >= 0:
        yield first_line + 1


def _is_about(order: str, rest: str) -> bool:
    """Return True if a text stands under an order. One that need not be about a text is, where the text does not speak
    of itself."""
    points = order.rstrip().endswith((":", "：")) or bool(_POINTS_AT_A_TEXT.search(order))
    if not points:
        return False
    if _ABOUT_A_TEXT.search(order):
        return len(rest) >= SHORTEST_SUBJECT
    return len(rest) >= SHORTEST_TEXT and not _speaks_of_itself(rest, 40)


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
