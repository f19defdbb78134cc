"""Find pasted text in a message that no mark sets off: text in another language than the person's, and comments in
code. Everything here is linear in the length of the text."""

import re
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter

from scanning.authorship import pasted_parts
from search.languages import FUNCTION_WORDS
from search.tokens import script_of

Span = tuple[int, int]

_MAX_LINES = 1000
_MAX_LINE_CHARS = 400
_OTHER = "other"  # neither English nor a language whose function words are known
_UNSPACED = frozenset({"cjk", "hiragana", "katakana"})
_LATIN = {language: words for language, words in FUNCTION_WORDS.items() if language not in {"russian", "persian"}}
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_NOT_PROSE = re.compile(r"[{};=<>]|\w\(|->|^\s*(?:[#*–-]|//|\d+[.)]\s)")  # code, lists
_NAMED = 0.3  # share of a line's words that are function words of its language; prose has 0.3 to 0.6
_MIN_FUNCTION_WORDS = 3
_MIN_LETTERS = 4  # of a line in another script

_SURE_COMMENT = re.compile(r"^[ \t]*(?://|/\*).*$", re.MULTILINE)
_MAYBE_COMMENT = re.compile(r"[ \t]*(?:#|--)[ \t]")  # in Markdown a heading, in a mail a signature
_CODE = re.compile(
    r"[ \t]*(?:def|class|async|import|from|return|for|if|while|with|func|fn|SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER)\b"
    r".*[:;)({][ \t]*$|.*[\w)\]\"'][;{][ \t]*$|[ \t]*\}[;,)]*[ \t]*$"
)


def comment_spans(text: str) -> Iterator[Span]:
    """Yield lines that are comments in code. A line that begins with # or -- is one if a line of code is next to it,
    possibly with other such lines between them."""
    yield from (match.span() for match in _SURE_COMMENT.finditer(text))
    waiting: list[Span] = []
    after_code = False
    for start, end in _lines(text):
        line = text[start:end]
        if _MAYBE_COMMENT.match(line):
            waiting.append((start, end))
            continue
        is_code = len(line) <= _MAX_LINE_CHARS and bool(_CODE.match(line))
        if is_code or after_code:
            yield from waiting
        waiting, after_code = [], is_code
    if after_code:
        yield from waiting


def other_language_spans(text: str) -> Iterator[Span]:
    """Yield pasted text in another language than the person's: from the end of their words to where they continue."""
    if "\n" not in text:
        return
    lines = [(language, span) for span in _lines(text) if (language := _language_of(text[slice(*span)]))]
    found = {language for language, _ in lines}
    if found & (_LATIN.keys() - {"english"}):
        found.discard(_OTHER)  # it may be the same language
    if len(found) < 2:
        return
    lines = [(language, span) for language, span in lines if language in found]
    languages = sorted(found)
    parts = [[span for other, span in lines if other == language] for language in languages]
    pasted = {language for language, is_pasted in zip(languages, pasted_parts(text, parts), strict=True) if is_pasted}
    own_end, is_open = 0, False
    for language, (start, end) in lines:
        if language in pasted:
            is_open = True
            continue
        if is_open:
            yield own_end, start
        own_end, is_open = end, False
    if is_open:
        yield own_end, len(text)


def _lines(text: str) -> Iterator[Span]:
    at = 0
    for number, line in enumerate(text.split("\n")):
        if number == _MAX_LINES:
            return
        yield at, at + len(line)
        at += len(line) + 1


def _language_of(line: str) -> str | None:
    """Return the language of a line in Latin script, or else its script; None if it is not certain."""
    line = line[:_MAX_LINE_CHARS]
    if _NOT_PROSE.search(line):
        return None
    if not line.isascii():
        scripts = Counter(script_of(letter) for letter in line if letter.isalpha())
        script, count = max(scripts.items(), key=itemgetter(1), default=("latin", 0))
        if script != "latin":
            return None if count < _MIN_LETTERS else "unspaced" if script in _UNSPACED else script
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(line)]
    counts = {language: sum(word in known for word in words) for language, known in _LATIN.items()}
    (first, most), (_, second) = Counter(counts).most_common(2)
    if most >= max(_MIN_FUNCTION_WORDS, _NAMED * len(words), 1.5 * second):
        return first
    is_other = len(words) >= 6 and most < _NAMED * len(words) and counts["english"] <= 0.1 * len(words)
    return _OTHER if is_other and sum(not word.isascii() for word in words) >= 2 else None
