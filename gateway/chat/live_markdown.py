"""Renders an answer as HTML while it is streamed, with the renderer that is used afterwards.

The text is rendered block by block. A finished block is rendered once and dropped. The last block is rendered again
when it grows, and only the changed part of its HTML is sent. Long code is highlighted again after growing by an eighth;
until then new code is appended plain. The length of the open block bounds the cost of one rendering; the caller decides
how often to render (gateway.chat.live_html)."""

import re
from collections.abc import Sequence
from copy import copy
from html import escape
from typing import Any

from markdown_it.token import Token

from gateway.chat.highlight import Budget, highlight
from gateway.chat.markdown import MARKDOWN, MAX_CHARS, MAX_MARKS, clean, count_marks, environment, unrendered
from gateway.chat.markdown_rules import TAGS, TooManySteps
from memories.history.matching import common_prefix

_HIGHLIGHT_SECONDS = 1.0
"""Processor seconds for highlighting one answer while it is streamed."""
_SHORT_CODE_CHARS = 500
"""Code up to this length is highlighted at each rendering."""
_MAX_HELD_BACK = 160
"""Characters that may be held back until an opened mark is closed."""
_MAX_TABLE_HEAD = 2_000
"""Characters of a table's first row that may be held back until its second row is complete."""
# The beginning of a line that may still become a list item, a rule or a row of a table.
_BEGINNING = re.compile(r"[\s\d\-*+_=#>|:~`$\\.)\[\]xX]{0,40}")
# An unclosed inline mark: strong, a formula, a link, a tag.
_UNFINISHED = re.compile(
    r"(?:(?<![\w*])\*\*(?=\S)(?:(?!\*\*).)*|\\[(\[](?:(?!\\[)\]]).)*|(?<![\w$\\])\$(?=[^\s\d$])[^$]*"
    r"|!?\[[^\]]*(?:\]\([^)]*)?"
    rf"|<(?:(?:{'|'.join(TAGS)})>[^<]*(?:</[a-z]*)?|[a-z]* ?/?))\Z",
    re.IGNORECASE,
)


class LiveMarkdown:
    """The HTML of a growing text. Not thread-safe."""

    def __init__(self, scope: str) -> None:
        self._budget = Budget(_HIGHLIGHT_SECONDS)
        self._env = environment(scope, self._budget) | {
            "highlight": self._highlight,
            "live": True,
            "references": {},
            "footnotes": set(),
        }
        self._pieces: list[str] = []  # the whole text, in case it gets too long to be rendered
        self._length = self._marks = 0
        self._open = ""  # the source from the first unfinished block on
        self._finished = 0  # number of finished blocks
        self._shown: list[str] = []  # HTML of the unfinished blocks
        self._in_code = self._growing = self._too_slow = False
        self._coloured: dict[tuple[str, str], str] = {}

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)
        self._marks += count_marks(text)
        self._open += text

    def changes(self, *, complete: bool = False) -> tuple[list[dict[str, Any]], int]:
        """Return the changes since the last call and the number of blocks. A change is `{block, keep, html}`: keep the
        first `keep` UTF-16 units of the block's current HTML and append `html`. If `complete`, no more text follows and
        nothing is held back."""
        if self._too_slow or self._length > MAX_CHARS or self._marks > MAX_MARKS:
            return self._unrendered_changes()
        text = self._normalized_text(complete)
        if complete:
            self._env.pop("live", None)
        shown = text if complete else text[: len(text) - _held_back(text, self._in_code)]
        env = self._env | {name: copy(self._env[name]) for name in ("references", "footnotes", "numbered")}
        try:
            blocks = _blocks(MARKDOWN.parse(shown, env))
        except TooManySteps:
            self._too_slow = True
            return self._unrendered_changes()
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

    def _unrendered_changes(self) -> tuple[list[dict[str, Any]], int]:
        if self._finished:
            self._finished, self._shown = 0, []
        return self._changed([unrendered("".join(self._pieces))])

    def _normalized_text(self, complete: bool) -> str:
        """Return the open text with normalised line endings. A trailing CR waits for the next character."""
        text = self._open
        if "\r" in text:
            pending = "\r" if text.endswith("\r") and not complete else ""
            text = text[: len(text) - len(pending)].replace("\r\n", "\n").replace("\r", "\n")
            self._open = text + pending
        return text

    def _changed(self, html: list[str]) -> tuple[list[dict[str, Any]], int]:
        changes = []
        for number, now in enumerate(html):
            before = self._shown[number] if number < len(self._shown) else None
            if now != before:
                same = common_prefix(before or "", now)
                changes.append({"block": self._finished + number, "keep": _utf16(now[:same]), "html": now[same:]})
        self._shown = html
        return changes, self._finished + len(html)

    def _finish(self, blocks: Sequence[Sequence[Token]], ended: int, env: dict[str, Any]) -> None:
        """Drop the first `ended` blocks, but keep their link and footnote definitions."""
        line = _first_line(blocks[ended])
        for label, reference in env["references"].items():
            if reference["map"][1] <= line:
                self._env["references"].setdefault(label, reference)
        for block in blocks[:ended]:
            self._env["footnotes"].update(token.info for token in block if token.type == "footnote_open")
        self._open = self._open.split("\n", line)[-1]
        self._shown = self._shown[ended:]
        self._finished += ended
        self._coloured.clear()

    def _highlight(self, code: str, language: str) -> str:
        if (known := self._coloured.get((language, code))) is not None:
            return known
        if self._coloured and self._growing:
            (last_language, begun), html = next(reversed(self._coloured.items()))
            if language == last_language and code.startswith(begun):
                if len(code) > _SHORT_CODE_CHARS and len(code) - len(begun) < len(begun) // 8:
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
    """Return how many blocks cannot change any more: those before the last block whose first line is complete."""
    return max(
        (at for at, block in enumerate(blocks) if _first_line(block) < lines and block[0].type != "formula_pending"),
        default=0,
    )


def _held_back(text: str, in_code: bool) -> int:
    """Return how many trailing characters to hold back because the text that follows decides how they are rendered."""
    start = text.rfind("\n") + 1
    line = text[start:]
    held = 0
    if _BEGINNING.fullmatch(line):
        held = len(line)
    elif in_code:
        return 0
    elif line.count("`") % 2:
        held = len(line) - line.rindex("`")
    elif match := _UNFINISHED.search(line, max(0, len(line) - _MAX_HELD_BACK)):
        held = len(line) - match.start()
    held = held if held <= _MAX_HELD_BACK else 0
    return held if in_code else max(held, _table_head(text, len(text) - held))


def _table_head(text: str, end: int) -> int:
    """Return the length of the text from a table's first row on if its second row is incomplete, else 0."""
    end -= text.endswith("\n", 0, end)
    start = text.rfind("\n", 0, end) + 1
    before = text.rfind("\n", 0, max(0, start - 1)) + 1
    first = text.startswith("|", start) and not (start and text.startswith("|", before))
    return len(text) - start if first and len(text) - start <= _MAX_TABLE_HEAD else 0


def _utf16(text: str) -> int:
    """Return the length in UTF-16 units, as JavaScript counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
