"""Read memories from Markdown files, pasted text, and the memory texts of other systems.

In Markdown each bullet and each paragraph is a memory, and the heading above it is its category. In plain text each
paragraph is a memory, or each line if the text has no empty lines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.conf import settings

from memories.database.batches import Slices
from memories.errors import TooLarge
from memories.imports.contents import Entry, ImportContents, memory_fields
from memories.imports.files import SourceFile
from memories.limits import IMPORT_LINES

_HEADING = re.compile(r"(#{1,6})\s+(\S.*)")
_BOLD_LINE = re.compile(r"\*\*([^*]+)\*\*:?")
_BULLET = re.compile(r"(?:[-*+•–]|\d{1,4}[.)])\s+(?:\[[ xX]\]\s+)?(\S.*)")
_RULE = re.compile(r"(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,}|={3,}")
_SENTENCE_END = re.compile(r"(?<=[.!?。])\s+")
_MAX_LINES = 4 * IMPORT_LINES
_SLICE_PASSAGES = 1_000


@dataclass(frozen=True, slots=True)
class Passage:
    """A memory in a text, with the line where it begins."""

    line: int
    text: str
    headings: tuple[str, ...] = ()


@dataclass(slots=True)
class _PassageBuilder:
    """Collects the lines of the current passage."""

    headings: list[tuple[int, str]] = field(default_factory=list)
    line: int = 0
    lines: list[str] = field(default_factory=list)

    def flush(self) -> Iterator[Passage]:
        if self.lines:
            titles = tuple(title for _, title in self.headings)
            yield from _split_passage(Passage(self.line, " ".join(self.lines), titles))
        self.lines = []

    def add(self, line: int, words: str) -> None:
        if not self.lines:
            self.line = line
        self.lines.append(words)

    def heading(self, level: int, title: str) -> None:
        self.headings = [(above, known) for above, known in self.headings if above < level] + [(level, title)]


def is_markdown(text: str) -> bool:
    """Return True if a text has a heading or a bullet."""
    lines = (line.strip() for line in text[:100_000].splitlines())
    return any(_HEADING.match(line) or _BULLET.match(line) for line in lines)


def markdown_passages(text: str) -> Iterator[Passage]:
    """Yield the bullets and paragraphs of a Markdown text, each with the headings above it. A line that is bold
    throughout counts as a heading. Raises TooLarge."""
    builder = _PassageBuilder()
    for number, raw in enumerate(_lines(text), start=1):
        line = raw.strip()
        heading, bold = _HEADING.fullmatch(line), _BOLD_LINE.fullmatch(line)
        if heading or bold:
            yield from builder.flush()
            level, title = (len(heading[1]), heading[2].rstrip("# ")) if heading else (7, bold[1] if bold else "")
            builder.heading(level, _plain(title))
        elif not line or line.startswith("```") or _RULE.fullmatch(line):
            yield from builder.flush()
        elif bullet := _BULLET.fullmatch(line):
            yield from builder.flush()
            builder.add(number, bullet[1])
        else:
            builder.add(number, line)
    yield from builder.flush()


def text_passages(text: str) -> Iterator[Passage]:
    """Yield the paragraphs of a text, or its lines if it has no empty line between others. Raises TooLarge."""
    lines = [line.strip() for line in _lines(text.strip("\r\n"))]
    by_paragraph = "" in lines
    builder = _PassageBuilder()
    for number, line in enumerate(lines, start=1):
        if not line or not by_paragraph:
            yield from builder.flush()
        if line:
            bullet = _BULLET.fullmatch(line)
            builder.add(number, bullet[1] if bullet else line)
    yield from builder.flush()


def read_markdown(file: SourceFile, contents: ImportContents) -> Slices[None]:
    """Add the bullets and paragraphs of a Markdown file. Raises TooLarge."""
    yield from _add(file, contents, markdown_passages(file.text))


def read_text(file: SourceFile, contents: ImportContents) -> Slices[None]:
    """Add the paragraphs or lines of a text. Raises TooLarge."""
    yield from _add(file, contents, text_passages(file.text))


def _add(file: SourceFile, contents: ImportContents, passages: Iterator[Passage]) -> Slices[None]:
    for count, passage in enumerate(passages):
        *above, category = passage.headings or ("",)
        fields = memory_fields(passage.text, category=category, keywords=above)
        place = file.place(f"line {passage.line}")
        contents.add_entry(Entry(line=passage.line, place=place, book=contents.book, fields=fields))
        if count % _SLICE_PASSAGES == 0:
            yield


def _lines(text: str) -> list[str]:
    if text.count("\n") > _MAX_LINES:
        raise TooLarge(f"A text has at most {_MAX_LINES} lines. Split it.", limit=_MAX_LINES)
    return text.split("\n")


def _plain(title: str) -> str:
    return " ".join(title.replace("*", "").replace("`", "").split()).rstrip(":")


def _split_passage(passage: Passage) -> Iterator[Passage]:
    """Yield a passage, split between sentences if it is longer than a memory may be. A single sentence that is too long
    stays whole and is refused later."""
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
