"""An answer as HTML while it is written, by the same renderer that shows it afterwards.

The text is rendered block by block. A finished block is rendered once and forgotten. The last block is rendered again
whenever it has grown, and only the part of its HTML that changed is sent. Long code is coloured again when it has grown
by an eighth, and until then continued without colours. The length of the open block bounds the cost of one rendering;
the caller decides how often it happens (gateway.chat.live_html)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from markdown_it.token import Token

from gateway.chat.highlight import Budget, highlight
from gateway.chat.markdown import LONGEST, MARKDOWN, MOST_MARKS, as_written, clean, count_marks, environment
from memories.history.word_diff import common_prefix

_COLOURS = 1.0
"""Seconds of processor time that the colours of one answer may take while it is written."""
_SHORT_CODE = 500
"""Characters of code that is coloured at each rendering."""
_HELD_BACK = 160
"""Characters that may wait for the end of a mark that was begun."""
_LONGEST_HEAD = 2_000
"""Characters of a table's first row that may wait for its second."""
# The beginning of a line that may still become a list item, a rule or a row of a table.
_BEGINNING = re.compile(r"[\s\d\-*+_=#>|:~`$\\.)\[\]xX]{0,40}")
# An unclosed mark within a line: strong, a formula, a link.
_UNFINISHED = re.compile(
    r"(?:(?<![\w*])\*\*(?=\S)(?:(?!\*\*).)*|\\[(\[](?:(?!\\[)\]]).)*|(?<![\w$\\])\$(?=[^\s\d$])[^$]*"
    r"|!?\[[^\]]*(?:\]\([^)]*)?)\Z"
)


@dataclass(frozen=True, slots=True)
class Change:
    """The new content of a block: the first `keep` UTF-16 units of its present HTML, and `html` after them."""

    block: int
    keep: int
    html: str


class LiveMarkdown:
    """The HTML of a growing text. Not thread-safe."""

    def __init__(self, scope: str) -> None:
        self._budget = Budget(_COLOURS)
        self._env = environment(scope, self._budget) | {
            "highlight": self._highlight,
            "live": True,
            "references": {},
            "footnotes": set(),
        }
        self._pieces: list[str] = []  # the whole text, for the case that it gets too long
        self._length = self._marks = 0
        self._open = ""  # the source, starting with the first unfinished block
        self._finished = 0  # blocks before it
        self._shown: list[str] = []  # HTML of those blocks
        self._in_code = self._growing = False
        self._coloured: dict[tuple[str, str], str] = {}

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)
        self._marks += count_marks(text)
        self._open += text

    def changes(self, *, complete: bool = False) -> tuple[list[Change], int]:
        """Return what changed since the last call, and the number of blocks. With `complete` no more text follows, so
        nothing is held back."""
        if self._length > LONGEST or self._marks > MOST_MARKS:
            return self._written_changes()
        text = self._whole_lines(complete)
        if complete:
            self._env.pop("live", None)
        shown = text if complete else text[: len(text) - _held_back(text, self._in_code)]
        env = self._env | {"references": dict(self._env["references"]), "footnotes": set(self._env["footnotes"])}
        env["numbered"] = set(self._env["numbered"])
        blocks = _blocks(MARKDOWN.parse(shown, env))
        ended = _ended(blocks, shown.count("\n"))
        html = []
        for number, block in enumerate(blocks):
            self._growing = number >= ended and not complete
            html.append(clean(MARKDOWN.renderer.render(block, MARKDOWN.options, env)))
            if number == ended - 1:
                self._env["numbered"] = set(env["numbered"])
        self._in_code = bool(blocks) and blocks[-1][0].type == "fence"
        changed = self._changed(html)
        if ended:
            self._finish(blocks, ended, env)
        return changed

    def _written_changes(self) -> tuple[list[Change], int]:
        if self._finished:
            self._finished, self._shown = 0, []
        return self._changed([as_written("".join(self._pieces))])

    def _whole_lines(self, complete: bool) -> str:
        """Return the open text with line feeds as line ends. A carriage return at its end waits for the next
        character."""
        text = self._open
        if "\r" in text:
            half = "\r" if text.endswith("\r") and not complete else ""
            text = text[: len(text) - len(half)].replace("\r\n", "\n").replace("\r", "\n")
            self._open = text + half
        return text

    def _changed(self, html: list[str]) -> tuple[list[Change], int]:
        changes = []
        for number, now in enumerate(html):
            before = self._shown[number] if number < len(self._shown) else None
            if now != before:
                same = common_prefix(before or "", now)
                changes.append(Change(self._finished + number, _utf16(now[:same]), now[same:]))
        self._shown = html
        return changes, self._finished + len(html)

    def _finish(self, blocks: Sequence[Sequence[Token]], ended: int, env: dict[str, Any]) -> None:
        """Forget the first blocks, but keep their definitions."""
        line = _first_line(blocks[ended])
        for label, reference in env["references"].items():
            if reference["map"][1] <= line:
                self._env["references"].setdefault(label, reference)
        for block in blocks[:ended]:
            self._env["footnotes"].update(token.info for token in block if token.type == "footnote_open")
        start = 0
        for _ in range(line):
            start = self._open.index("\n", start) + 1
        self._open = self._open[start:]
        self._shown = self._shown[ended:]
        self._finished += ended
        self._coloured.clear()

    def _highlight(self, code: str, language: str) -> str:
        if (known := self._coloured.get((language, code))) is not None:
            return known
        if self._coloured and self._growing:
            (last_language, begun), html = next(reversed(self._coloured.items()))
            if language == last_language and code.startswith(begun):
                if len(code) > _SHORT_CODE and len(code) - len(begun) < len(begun) // 8:
                    return html + escape(code[len(begun) :])
                del self._coloured[language, begun]
        html = self._coloured[language, code] = highlight(code, language, self._budget)
        return html


def _blocks(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the tokens of each top-level block."""
    blocks: list[list[Token]] = []
    for token in tokens:
        if token.level == 0 and token.nesting >= 0:
            blocks.append([])
        blocks[-1].append(token)
    return blocks


def _first_line(block: Sequence[Token]) -> int:
    return block[0].map[0] if block[0].map else 0


def _ended(blocks: Sequence[Sequence[Token]], lines: int) -> int:
    """Return the number of blocks that cannot change any more: those before the last block whose first line is
    complete."""
    begun = [
        number
        for number, block in enumerate(blocks)
        if _first_line(block) < lines and block[0].type != "formula_pending"
    ]
    return begun[-1] if begun else 0


def _held_back(text: str, in_code: bool) -> int:
    """Return the number of characters at the end that are not shown yet, since the following text decides how they
    look."""
    start = text.rfind("\n") + 1
    line = text[start:]
    held = 0
    if _BEGINNING.fullmatch(line):
        held = len(line)
    elif in_code:
        return 0
    elif line.count("`") % 2:
        held = len(line) - line.rindex("`")
    elif match := _UNFINISHED.search(line, max(0, len(line) - _HELD_BACK)):
        held = len(line) - match.start()
    held = held if held <= _HELD_BACK else 0
    return held if in_code else max(held, _table_head(text, len(text) - held))


def _table_head(text: str, end: int) -> int:
    """Return the length of the text from the first row of a table on, if the second row is incomplete."""
    end -= text.endswith("\n", 0, end)
    start = text.rfind("\n", 0, end) + 1
    before = text.rfind("\n", 0, max(0, start - 1)) + 1
    first = text.startswith("|", start) and not (start and text.startswith("|", before))
    return len(text) - start if first and len(text) - start <= _LONGEST_HEAD else 0


def _utf16(text: str) -> int:
    """Return the length of a text as JavaScript counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
