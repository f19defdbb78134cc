"""Memories written as prose or as a list: Markdown files, pasted text, and the memory texts of other systems.

In Markdown each bullet and each paragraph is a memory, and the heading above it is its category. In plain text each
paragraph is one, or each line where no line is empty."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.conf import settings

from memories.database.batches import Slices
from memories.errors import TooLarge
from memories.imports.files import SourceFile
from memories.imports.found import Entry, Found, memory_fields
from memories.limits import IMPORT_LINES

_HEADING = re.compile(r"(#{1,6})\s+(\S.*)")
_BOLD_LINE = re.compile(r"\*\*([^*]+)\*\*:?")
_BULLET = re.compile(r"(?:[-*+•–]|\d{1,4}[.)])\s+(?:\[[ xX]\]\s+)?(\S.*)")
_RULE = re.compile(r"(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,}|={3,}")
_SENTENCE_END = re.compile(r"(?<=[.!?。])\s+")
_MOST_LINES = 4 * IMPORT_LINES
_READ_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Passage:
    """One memory of a text, with the line it begins in."""

    line: int
    text: str
    headings: tuple[str, ...] = ()


@dataclass(slots=True)
class _Gathering:
    """The lines of the passage that is being read."""

    headings: list[tuple[int, str]] = field(default_factory=list)
    line: int = 0
    lines: list[str] = field(default_factory=list)

    def over(self) -> Iterator[Passage]:
        if self.lines:
            titles = tuple(title for _, title in self.headings)
            yield from _fitting(Passage(self.line, " ".join(self.lines), titles))
        self.lines = []

    def begin(self, line: int, words: str) -> None:
        self.line, self.lines = line, [words]

    def heading(self, level: int, title: str) -> None:
        self.headings = [(above, known) for above, known in self.headings if above < level] + [(level, title)]


def is_markdown(text: str) -> bool:
    """Return True if a text has a heading or a bullet."""
    lines = (line.strip() for line in text[:100_000].splitlines())
    return any(_HEADING.match(line) or _BULLET.match(line) for line in lines)


def markdown_passages(text: str) -> Iterator[Passage]:
    """Return the bullets and paragraphs of a Markdown text, each with the headings above it. A line in bold letters
    alone counts as a heading. Raises TooLarge."""
    gathering = _Gathering()
    for number, raw in enumerate(_lines(text), start=1):
        line = raw.strip()
        heading, bold = _HEADING.fullmatch(line), _BOLD_LINE.fullmatch(line)
        if heading or bold:
            yield from gathering.over()
            level, title = (len(heading[1]), heading[2].rstrip("# ")) if heading else (7, bold[1] if bold else "")
            gathering.heading(level, _plain(title))
        elif not line or line.startswith("```") or _RULE.fullmatch(line):
            yield from gathering.over()
        elif bullet := _BULLET.fullmatch(line):
            yield from gathering.over()
            gathering.begin(number, bullet[1])
        elif gathering.lines:
            gathering.lines.append(line)
        else:
            gathering.begin(number, line)
    yield from gathering.over()


def text_passages(text: str) -> Iterator[Passage]:
    """Return the paragraphs of a text, or its lines where no line between two others is empty. Raises TooLarge."""
    lines = [line.strip() for line in _lines(text.strip("\r\n"))]
    by_paragraph = "" in lines
    gathering = _Gathering()
    for number, line in enumerate(lines, start=1):
        if not line or not by_paragraph:
            yield from gathering.over()
        if line:
            bullet = _BULLET.fullmatch(line)
            words = bullet[1] if bullet else line
            if gathering.lines:
                gathering.lines.append(words)
            else:
                gathering.begin(number, words)
    yield from gathering.over()


def read_markdown(file: SourceFile, found: Found) -> Slices[None]:
    """Add the bullets and paragraphs of a Markdown file. Raises TooLarge."""
    yield from _add(file, found, markdown_passages(file.text))


def read_text(file: SourceFile, found: Found) -> Slices[None]:
    """Add the paragraphs or lines of a text. Raises TooLarge."""
    yield from _add(file, found, text_passages(file.text))


def _add(file: SourceFile, found: Found, passages: Iterator[Passage]) -> Slices[None]:
    for count, passage in enumerate(passages):
        *above, category = passage.headings or ("",)
        fields = memory_fields(passage.text, category=category, keywords=above)
        place = file.place(f"line {passage.line}")
        found.add(Entry(line=passage.line, place=place, book=found.book, fields=fields))
        if count % _READ_AT_ONCE == 0:
            yield


def _lines(text: str) -> list[str]:
    if text.count("\n") > _MOST_LINES:
        raise TooLarge(f"A text has at most {_MOST_LINES} lines. Split it.", limit=_MOST_LINES)
    return text.split("\n")


def _plain(title: str) -> str:
    return " ".join(title.replace("*", "").replace("`", "").split()).rstrip(":")


def _fitting(passage: Passage) -> Iterator[Passage]:
    """Return a passage, or its sentences joined to parts where it is longer than a memory may be. A sentence that is
    longer stays whole: it is refused with the others that do not fit."""
    if len(passage.text) <= settings.MAX_ENTRY:
        yield passage
        return
    part: list[str] = []
    size = 0
    for sentence in _SENTENCE_END.split(passage.text):
        if part and size + len(sentence) > settings.MAX_ENTRY:
            yield Passage(passage.line, " ".join(part), passage.headings)
            part, size = [], 0
        part.append(sentence)
        size += len(sentence) + 1
    yield Passage(passage.line, " ".join(part), passage.headings)
