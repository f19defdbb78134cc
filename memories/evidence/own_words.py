"""Which parts of a person's message are their own words, and which they pasted or forwarded: told by form where
the form is certain, and otherwise by a model of how people write (`scanning.authorship`). The rules are written down in
docs/evidence.md. Every pattern is linear in the text."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from scanning.authorship import pasted_spans, sentences_of

Span = tuple[int, int]

LONGEST_CITED = 80  # characters between quotation marks that are still taken for the person's own wording

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
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")
SHORTEST_RULED = 100  # characters between two rules that are a text of its own
_RULE = re.compile(r"^[ \t]*(?:-{3,}|={3,}|_{3,}|\*{3,}|(?:[-*=] ){2,}[-*=])[ \t]*$", re.MULTILINE)
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
# Clients put rules for the answer behind the person's words: aider those for edits, Open WebUI those for running code.
_RULES_BEHIND = (
    r"^# (?:\*SEARCH/REPLACE block\*|V4A Diff Format) Rules:[ \t]*$"
    r"|^# File editing rules:\n\nReturn edits similar to unified diffs"
    r"|^To suggest changes to a file you MUST return the entire content of the updated file\.\nYou MUST use this "
    r"|^#### Code Interpreter\n\nYou have access to a Python code interpreter via:"
)
# Whole messages that clients write in the person's place: files and examples (aider), where they work (Gemini CLI, Qwen
# Code), what came of a command (aider, Open Interpreter).
_WRITTEN_BY_CLIENTS = re.compile(
    "|".join(
        (
            r"# AGENTS\.md instructions",
            r"(?:I have|These files have been) \*added these files to the chat\*",
            r"Here are some READ ONLY files, provided for your reference\.",
            r"(?:I am working with you on code in a git repository\.\n)?Here are summaries of some files present in ",
            r"I am not sharing (?:any files that you can edit|the full contents of any files with you) yet\.",
            r"Don't try and edit any existing code without asking me to add the files to the chat!",
            r"I switched to a new code base\. Please don't consider the above files",
            r"(?:Change get_factorial\(\) to use math\.factorial|Refactor hello\(\) into its own file\."
            r"|Replace is_prime with a call to sympy\.|Change the greeting to be more casual)\s*\Z",
            r"This is the (?:Gemini CLI|Qwen Code)\. We are setting up the context for our chat\.",
            r"# Fix any errors below, if possible\.\n",
            r"Here is the content of https?://\S{1,2000}:\n\n",
            r"I committed the changes with git hash [0-9a-f]{6,40} & commit msg: ",
            r"I ran this command:\n\n[^\n]{1,2000}\n\nAnd got this output:\n",
            r"The code above was executed on my machine\. It produced no text output\.",
        )
    )
)
# Summaries of a conversation that a model wrote, and a client puts in the person's place: aider, Codex, Claude Code,
# LangChain. The person's next words may follow in the same message, so it is no message of the client's alone.
_SUMMARISED = re.compile(
    r"\s*(?:I spoke to you previously about a number of things\.\n"
    r"|Another language model started to solve this problem and produced a summary"
    r"|This session is being continued from a previous conversation that ran out of context"
    r"|Here is a summary of the conversation to date:\s)"
)
_OUTPUT, _ABOUT_IT = "Code output: ", "What does this output mean / what's next (if anything, or are we done)?"
_RULES_FROM = re.compile(_RULES_BEHIND, re.MULTILINE)
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
            _RULES_BEHIND,
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
# Orders that are always about a text, and what is said in those about a text of one's own.
_ORDER = re.compile(
    r"summar|\btl;?dr|translat|proofread|rephrase|paraphrase|zusammenfass|\bfass\w*\b.*\bzusammen|übersetz|résum|tradui"
    r"|resum|traduc|traduz|riassum|samenvat|vertaal|sammanfatta|översätt|sammenfat|oversæt|podsumuj|streść|przetłumacz"
    r"|özetle|çevir|перевед|резюм|总结|總結|翻译|翻譯|要約|翻訳|요약|번역|لخص|ترجم",
    re.IGNORECASE,
)
_OF_ONES_OWN = re.compile(
    r"\b(?:my|mine|i|i've|mein\w{0,2}|ich|mon|ma|mes|je|j'ai|mi|mis|yo|meu|minha|eu|mio|mia|io|mijn|ik|mój|moja|min|mitt"
    r"|jag|мой|моя|я)\b",
    re.IGNORECASE,
)
_LONGEST_ORDER = 200


def foreign_spans(text: str) -> list[Span]:
    """Return the parts of a person's message that are not their own words, in order and without overlap."""
    if is_written_by_client(text) or _SUMMARISED.match(text):
        return [(0, len(text))]
    found = [*_fences(text), *(match.span() for lines in _LINES for match in lines.finditer(text))]
    if begins := _FOREIGN_FROM.search(text):
        found.append((begins.start(), len(text)))
    found += _json(text)
    found += _conversations(text)
    found += _ruled(text)
    found += (elements := merged(list(_elements(text))))
    found += _cited(text)
    start, end = _between(text, elements)
    said = text[start:end]
    found += [(start + begins, start + ends) for begins, ends in (*pasted_spans(said), *_under_order(said))]
    return merged(found)


def is_written_by_client(text: str) -> bool:
    """Return True if a client wrote all of a message in the person's place."""
    said = text.strip()
    return bool(_WRITTEN_BY_CLIENTS.match(said)) or (said.startswith(_OUTPUT) and said.endswith(_ABOUT_IT))


def question_start(text: str) -> int:
    """Return where the person's question begins in what Open WebUI sends with documents: behind them. 0 in any other
    message."""
    if not text.lstrip().startswith(_QUESTION_HEAD):
        return 0
    last = text.rfind(_QUESTION_BEGINS)
    return last + len(_QUESTION_BEGINS) if last >= 0 else 0


def without_rules(text: str) -> str:
    """Return a message's text without the rules for its answer that a client put behind it."""
    rules = _RULES_FROM.search(text)
    return text[: rules.start()] if rules else text


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


def _ruled(text: str) -> Iterator[Span]:
    """Yield what stands between two rules."""
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


def _paragraph_end(text: str, at: int) -> int:
    found = _PARAGRAPH_END.search(text, at)
    return found.start() if found else len(text)


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


def _under_order(text: str) -> Iterator[Span]:
    """Yield the text that a short order before or behind it is about, where that text does not speak of its writer: the
    model misses short ones. Remarks may stand before an order that ends with a colon."""
    if not _ORDER.search(text[:_LONGEST_ORDER]) and not _ORDER.search(text[-_LONGEST_ORDER:]):
        return
    sentences = sentences_of(text)
    early = [at for at, one in enumerate(sentences) if one.start < _LONGEST_ORDER and (one.ends_with_colon or not at)]
    orders = [(sentences[at], sentences[at + 1 :]) for at in early]
    for order, others in (*orders, (sentences[-1], sentences[:-1])):
        words = text[order.start : order.end]
        is_apart = others and (order.ends_with_colon or (order if order is sentences[-1] else others[0]).line_gap)
        is_about = len(words) <= _LONGEST_ORDER and _ORDER.search(words) and not _OF_ONES_OWN.search(words)
        if is_apart and is_about and not any(other.uses_first_person for other in others):
            yield others[0].start, others[-1].end


def merged(spans: Sequence[Span]) -> list[Span]:
    """Return spans in order, those that touch each other as one."""
    found: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found
