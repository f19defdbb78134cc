"""Separate a person's own words in a message from text that they pasted or forwarded: by form where the form is
unambiguous, otherwise by a model of how people write (`scanning.authorship`). docs/evidence.md lists the rules. Every
pattern is linear in the length of the text."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from memories.evidence.client_texts import (
    ANNOUNCEMENT,
    CLIENT_TAG,
    INTERRUPTION,
    MESSAGE_TAGS,
    begins_with_summary,
    is_written_by_client,
    question_span,
    react_prompt_end,
    without_rules,
    written_results_start,
)
from memories.evidence.unmarked import comment_spans, other_language_spans
from scanning.authorship import pasted_spans, sentences_of

Span = tuple[int, int]

MAX_OWN_QUOTATION_CHARS = 80  # a longer text between quotation marks counts as foreign

_MIN_LABELLED_LINES = 3  # lines "Name: …", with one name at least twice, that make up a conversation
_MIN_STAMPED_LINES = 2  # lines "[19:41] Name: …" that make up a conversation
# Mails, Windows and Word separate lines and words by these, which the patterns do not know.
_PLAIN_BREAKS = str.maketrans("\r\v\f\x85\u2028\u2029\xa0\u202f\u3000", "\n" * 6 + " " * 3)
_CLOCK = r"\d{1,2}[:.h]\d\d(?:[:.]\d\d)?(?:[ \u202f]?[AaPp]\.?[Mm]\.?)?"
_DAY = r"(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\d{1,2}\.? [^\W\d]{3,12}\.?(?: \d{4})?(?: г\.)?)"
_STAMP = rf"[\[(]?(?:{_DAY},?[ ]?(?:at |um |à |в )?)?{_CLOCK}[\])]?"
_STAMPED = re.compile(
    rf"^[ \t\u200e]*+(?:{_STAMP}[ \t]*+[-–—]?[ \t]*+[^\n:]{{1,40}}:[ \t]"
    rf"|(?:(?<=[ \t][ \t])|[^\n:\[]{{1,40}},?[ \t]++){_STAMP}[ \t]*+(?:$|:))",
    re.MULTILINE,
)
_LABELLED = re.compile(
    r"^[ \t]*(?:[-*][ \t]+)?([^\W\d_][^\n:]{0,40}?)(?:[ ]?\([^\n()]{1,30}\))?[ ]?[:：][ \t]+\S", re.MULTILINE
)
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")
MIN_RULED_CHARS = 100  # a shorter text between two rules is still the person's own
_RULE = re.compile(r"^[ \t]*(?:-{3,}|={3,}|_{3,}|\*{3,}|(?:[-*=] ){2,}[-*=])[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})", re.MULTILINE)
# A note that a client or a bot writes into a message, up to the end of the line or the bracket: "[Replying to Ida: …"
_NOTE = (
    r"\[(?:Replying|In reply|Quot|Forward|Fwd|Image|Photo|Picture|Video|Audio|Voice|Transcri|OCR|Attach|Document|File)"
    r"[^\]\n]{0,80}:[^\]\n]*"
)
_LINES = (
    re.compile(rf"^(?:{_NOTE}\]|{INTERRUPTION}[ \t]*$)", re.MULTILINE),
    re.compile(r"^[ \t]*>.*$", re.MULTILINE),  # quotation
    re.compile(r"^\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*$", re.MULTILINE),  # a log
    re.compile(r"^(?:\+\+\+|---|@@|diff --git) .*$", re.MULTILINE),  # a patch
    re.compile(r"^@@ -\d.*(?:\n[-+ \\].*)*+", re.MULTILINE),
    # a table: the line above its rule, and those below that have cells
    re.compile(r"^[^|\n]*\|.*\n(?=[^\n]*\|)[ \t]*\|?[ \t]*:?-{3}[-:| \t]*+$(?:\n[^|\n]*+\|.*)*+", re.MULTILINE),
    re.compile(r"!\[[^\[\]\n]{1,1000}\](?=\()"),  # the description of a picture
)
_HEADER = (
    r"[ \t]*\*{0,2}(?:From|To|Cc|Sent|Date|Subject|Reply-To|Von|An|Gesendet|Datum|Betreff|De|À|A|Para|Envoyé|Objet"
    r"|Asunto|Enviado(?: el)?|Fecha|Assunto|Data|Da|Oggetto|Inviato|Van|Aan|Onderwerp|Verzonden|Från|Till|Ämne|Skickat"
    r"|Fra|Til|Emne|Od|Do|Temat|Kimden|Kime|Konu|От|Кому|Тема|Дата|发件人|收件人|主题|日期|差出人|宛先|件名|보낸사람|제목)"
    r"\*{0,2}[ \t]?[:：]\*{0,2}[ \t]?\S.*"
)
# Everything from such a line to the end of the message is foreign.
_FOREIGN_FROM = re.compile(
    "|".join(
        (
            r"^[-_=]{3,}[ \t]?[^\n\-_=][^\n]{1,60}?[-_=]{3,}[ \t]*$",  # --- Forwarded message ---
            r"^(?:Begin forwarded message|Anfang der weitergeleiteten|Début du message|Inicio del mensaje"
            r"|Inizio messaggio)\b",
            r"^(?:On|Am|Le|El|Il|Op|Em|Den|W dniu) [^\n]{6,120}?(?:wrote|schrieb[^\n]{0,60}|a écrit|escribió|ha scritto"
            r"|schreef[^\n]{0,60}|escreveu|skrev[^\n]{0,60}|napisał[^\n]{0,60})[ \t]?:[ \t]*$",
            # in any language: a line with an address and a time that ends with a colon, also if it is wrapped
            r"^(?=[^\n]*\d[:.]\d\d)[^\n<(]{0,150}[<(][^\s<>()@]{1,64}@[^\s<>()]{1,120}[>)][^\n:：]{0,80}(?:\n[^\n:：]{1,40})?"
            r"[:：][ \t]*$",
            rf"^{_HEADER}\n{_HEADER}$",
            r"^BEGIN:V[A-Z]+[ \t]*$",
            # [File notes.txt], [read_file for 'a.py'] Result:
            rf"^(?!{INTERRUPTION})\[[^\]\n]{{2,200}}\](?: Result:)?[ \t]*$",
            rf"^{_NOTE}$",  # [Replying to Bob: … over several lines
            rf"^(?:{ANNOUNCEMENT})[ \t]*$",
            r"^Traceback \(most recent call last\):",
        )
    ),
    re.MULTILINE,
)
_JSON_FROM = re.compile(r"^[ \t]*(?:\{[ \t]*[\"\n]|\[[ \t]*(?:\{|\n[ \t]*\{))", re.MULTILINE)
_JSON_TO = re.compile(r"[\]}][ \t]*$", re.MULTILINE)
_TAG = re.compile(r"<(?:!--|(/?)([A-Za-z][\w:-]{0,40})(?:\s[^<>]{0,2000})?(/?)>)")
# Tags that people use in their own words; a pasted page contains others as well.
_INLINE = frozenset(
    {"b", "i", "u", "s", "em", "strong", "code", "kbd", "mark", "small", "sub", "sup", "del", "ins", "br"}
)
_CLIENT_TAG = re.compile(CLIENT_TAG)
_MESSAGE_TAG = re.compile(rf"\s*<(?:{'|'.join(sorted(MESSAGE_TAGS))})(?:\s[^<>]{{0,300}})?>", re.IGNORECASE)
_QUOTATION = re.compile(r"[“„«][^“”„«»]*[”“»]|(?<![^\s(\[:])\"(?=\S)[^\"]*\"")
# Instructions that always refer to a text, and words that show that the text is the person's own.
_INSTRUCTION = re.compile(
    r"summar|\btl;?dr|translat|proofread|rephrase|paraphrase|zusammenfass|\bfass\w*\b.*\bzusammen|übersetz|résum|tradui"
    r"|resum|traduc|traduz|riassum|samenvat|vertaal|sammanfatta|översätt|sammenfat|oversæt|podsumuj|streść|przetłumacz"
    r"|özetle|çevir|перевед|резюм|总结|總結|翻译|翻譯|要約|翻訳|요약|번역|لخص|ترجم",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(
    r"\b(?:my|mine|i|i've|mein\w{0,2}|ich|mon|ma|mes|je|j'ai|mi|mis|yo|meu|minha|eu|mio|mia|io|mijn|ik|mój|moja|min|mitt"
    r"|jag|мой|моя|я)\b",
    re.IGNORECASE,
)
_MAX_INSTRUCTION = 200  # characters


def foreign_spans(text: str) -> list[Span]:
    """Return the spans of a person's message that are not their own words, sorted and without overlaps. If a client's
    mark could be several, words must be the person's own in each reading."""
    text = text.replace("\r\n", " \n").translate(_PLAIN_BREAKS)  # of the same length, for the positions
    if is_written_by_client(text) or begins_with_summary(text):
        return [(0, len(text))]
    readings = {question_span(text), question_span(text, other=True)}
    return merge_spans([span for begins, ends in readings for span in _foreign_spans_around(text, begins, ends)])


def _foreign_spans_around(text: str, begins: int, ends: int) -> list[Span]:
    """Return the spans of a message that are not the person's own words if their message is in this span."""
    if react_prompt_end(text) >= 0 and (_FOREIGN_FROM.search(text, 0, begins) or any(_fences(text[:begins]))):
        begins, ends = 0, len(text)  # the prompt is in a pasted text, which imitates it
    ends = begins + len(without_rules(text[begins:ends]))
    within = _foreign_spans_within(text[begins:ends])
    return [(0, begins), *((begins + start, begins + end) for start, end in within), (ends, len(text))]


def _foreign_spans_within(text: str) -> list[Span]:
    found = [*_fences(text), *(match.span() for lines in _LINES for match in lines.finditer(text))]
    if begins := _FOREIGN_FROM.search(text):
        found.append((begins.start(), len(text)))
    found.append((written_results_start(text), len(text)))
    found += _json(text)
    found += _conversations(text)
    found += _between_rules(text)
    found += comment_spans(text)
    found += (elements := merge_spans(list(_elements(text))))
    found += _quotations(text)
    start, end = _without_outer_elements(text, elements)
    said = text[start:end]
    unmarked = (*pasted_spans(said), *_instructed_text(said), *other_language_spans(said))
    found += [(start + begins, start + ends) for begins, ends in unmarked]
    return merge_spans(found)


def _quotations(text: str) -> Iterator[Span]:
    """Yield long quotations. Marks around the whole message do not count, since some clients add them."""
    whole = text.strip()
    for quotation in _QUOTATION.finditer(text):
        if quotation.end() - quotation.start() > MAX_OWN_QUOTATION_CHARS + 2 and quotation[0] != whole:
            yield quotation.span()


def _fences(text: str) -> Iterator[Span]:
    """Yield fenced code blocks. A block that is never closed extends to the end."""
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


def _between_rules(text: str) -> Iterator[Span]:
    """Yield long texts between two horizontal rules."""
    for above, below in pairwise(_RULE.finditer(text)):
        if below.start() - above.end() >= MIN_RULED_CHARS:
            yield above.start(), below.end()


def _conversations(text: str) -> Iterator[Span]:
    """Yield chat logs: from the first line with a speaker to the end of the paragraph with the last one."""
    stamped = [match.start() for match in _STAMPED.finditer(text)]
    if len(stamped) >= _MIN_STAMPED_LINES:
        yield stamped[0], _paragraph_end(text, stamped[-1])
    said = [(match.start(), match[1].casefold()) for match in _LABELLED.finditer(text)]
    times = Counter(name for _, name in said)
    places = [start for start, name in said if times[name] > 1]
    if len(said) >= _MIN_LABELLED_LINES and places:
        yield places[0], _paragraph_end(text, places[-1])


def _paragraph_end(text: str, at: int) -> int:
    found = _PARAGRAPH_END.search(text, at)
    return found.start() if found else len(text)


def _elements(text: str) -> Iterator[Span]:
    """Yield markup elements with their content, and comments. Of a tag that is never closed, and of those that a client
    wraps around the message, only the tag itself is yielded, and nothing of an opening tag without attributes: people
    write "<div>" and "List<String>"."""
    wrapper = _MESSAGE_TAG.match(text)
    begins = wrapper.end() if wrapper else 0
    yield 0, begins
    tags = list(_TAG.finditer(text, begins))
    closed = {tag[2].casefold(): tag.start() for tag in tags if tag[1]}  # where each name is closed last
    opened, opener, name, depth, commented = -1, "", "", 0, 0  # `commented`: the end of the last comment
    for tag in tags:
        is_bare = bool(tag[2]) and tag.end() - tag.start() <= len(tag[2]) + len("</ >")
        if is_bare and (inline := tag[2].casefold()) in _INLINE and inline != name:
            continue
        if tag[2] is None:
            if opened < 0 and tag.start() >= commented:
                end = text.find("-->", tag.end())
                commented = end + 3 if end >= 0 else len(text)
                yield tag.start(), commented
        elif opened < 0:
            is_opening = not tag[1] and not tag[3]
            if not (is_bare and is_opening):
                yield tag.span()
            if is_opening and closed.get(tag[2].casefold(), 0) > tag.start():
                opened, opener, name, depth = tag.start(), tag[2], tag[2].casefold(), 1
        elif tag[2].casefold() == name and not tag[3]:
            depth += -1 if tag[1] else 1
            # A file may contain the tag that ends it.
            if tag.start() == closed[name] or (depth == 0 and not _CLIENT_TAG.fullmatch(opener)):
                yield opened, tag.end()
                opened, name = -1, ""


def _without_outer_elements(text: str, elements: Sequence[Span]) -> Span:
    """Return the span of the message without the elements before and after it."""
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


def _instructed_text(text: str) -> Iterator[Span]:
    """Yield the text that a short instruction before or after it refers to ("Summarise this: …"), unless that text
    refers to its writer. The model misses short texts of this kind. Other sentences may precede an instruction that
    ends with a colon."""
    if not _INSTRUCTION.search(text[:_MAX_INSTRUCTION]) and not _INSTRUCTION.search(text[-_MAX_INSTRUCTION:]):
        return
    sentences = sentences_of(text)
    early = [
        at for at, first in enumerate(sentences) if first.start < _MAX_INSTRUCTION and (first.ends_with_colon or not at)
    ]
    candidates = [(sentences[at], sentences[at + 1 :]) for at in early]
    for candidate, others in (*candidates, (sentences[-1], sentences[:-1])):
        words = text[candidate.start : candidate.end]
        is_apart = others and (
            candidate.ends_with_colon or (candidate if candidate is sentences[-1] else others[0]).line_gap
        )
        is_short = len(words) <= _MAX_INSTRUCTION
        is_instruction = is_short and _INSTRUCTION.search(words) and not _FIRST_PERSON.search(words)
        if is_apart and is_instruction and not any(other.uses_first_person for other in others):
            yield others[0].start, others[-1].end


def merge_spans(spans: Sequence[Span]) -> list[Span]:
    """Return the spans sorted, with overlapping and adjacent ones merged."""
    found: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found
