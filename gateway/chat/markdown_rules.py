"""markdown-it-py rules for syntax beyond CommonMark: formulas, footnotes, task lists, and the few HTML tags for which
Markdown has no marks.

Each rule looks ahead a bounded number of characters. `$…$` is a formula only where it cannot be money or a shell
variable. A counting rule bounds the work of the parser, in which deep quotations multiply the lines. `live` in the
environment means that the text is still being streamed: an unclosed formula at its end is left
out, and `[^1]` may be defined later."""

import re

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

MAX_LOOK_AHEAD = 2_000
"""Characters within which a formula must end."""
MAX_TOKENS = 80_000
_MAX_LINES = 60
_CLOSING = {"\\(": "\\)", "\\[": "\\]", "$$": "$$"}
_DOLLARS = re.compile(r"\$(?![\s$])((?:\\.|[^\\$\n]){1,200}?)(?<!\s)\$(?![\w$])")
_MATH_SIGN = re.compile(r"[\\^_={}<>]")
_WORD = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{3,}")
_LABEL = re.compile(r"\[\^([A-Za-z0-9_.-]{1,32})\]")
TAGS = ("sub", "sup", "kbd", "mark", "u")
"""HTML tags that are rendered if they have no attributes and are closed within the block; `<br>` is too."""
_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)
_TAG = re.compile(rf"<({'|'.join(TAGS)})>((?:(?!<\1>).){{1,500}}?)</\1>", re.IGNORECASE | re.DOTALL)
_TASK = re.compile(r"\[([ xX])\][ \t]+")


class TooManySteps(Exception):
    """Parsing a text takes more steps than `steps` in the environment allows, makes too many tokens, or nests too
    deep."""


def install(markdown: MarkdownIt) -> None:
    """Add the rules to a parser."""
    ends: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    markdown.block.ruler.before("table", "block_step", _block_step, ends)
    markdown.inline.ruler.before("text", "inline_step", _inline_step)
    markdown.block.ruler.before("fence", "formula_block", _formula_block, ends)
    markdown.block.ruler.before("reference", "footnote", _footnote, ends)
    markdown.inline.ruler.before("escape", "formula", _formula)
    markdown.inline.ruler.before("link", "footnote_reference", _footnote_reference)
    markdown.inline.ruler.before("autolink", "tag", _tag)
    markdown.core.ruler.before("inline", "tasks", _tasks)
    markdown.core.ruler.before("inline", "list_numbers", _list_numbers)


def _block_step(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """Count one look at a line. Each level of nesting looks at a line that continues a paragraph again."""
    if len(state.tokens) > MAX_TOKENS:  # a row of a table gets as many cells as the head, however short it is
        raise TooManySteps
    if state.level >= state.md.options["maxNesting"] - 2:  # the parser would drop what is nested deeper
        raise TooManySteps
    return _step(state)


def _inline_step(state: StateInline, silent: bool) -> bool:
    return _step(state)


def _step(state: StateBlock | StateInline) -> bool:
    state.env["steps"] -= 1
    if state.env["steps"] < 0:
        raise TooManySteps
    return False  # the other rules decide what stands here


def _formula(state: StateInline, silent: bool) -> bool:
    opening = state.src[state.pos : state.pos + 2]
    if opening in _CLOSING:
        start, closing = state.pos + 2, _CLOSING[opening]
        end = state.src.find(closing, start, min(start + MAX_LOOK_AHEAD + 2, state.posMax))
        content, markup = state.src[start:end].strip(), opening
        if end < 0 or not _is_formula(content):
            return False
        end += 2
    else:
        before = state.src[state.pos - 1] if state.pos else " "
        match = _DOLLARS.match(state.src, state.pos, state.posMax) if opening[:1] == "$" else None
        if match is None or before.isalnum() or before in "_$" or not _is_surely_formula(match[1]):
            return False
        content, markup, end = match[1], "$", match.end()
    if not silent:
        token = state.push("formula", "math", 0)
        token.content, token.markup = content, markup
    state.pos = end
    return True


def _is_formula(content: str) -> bool:
    """Return False for words in escaped brackets, as in `\\[no link\\]`."""
    return bool(content) and (bool(re.search(r"[\\^_={}<>+*/|\d-]", content)) or not _WORD.search(content))


def _is_surely_formula(content: str) -> bool:
    if _MATH_SIGN.search(content):
        return "\\" in content or len(_WORD.findall(content)) < 2
    if not re.fullmatch(r"[A-Za-z0-9 +\-*/().,'|!:]{1,40}", content):
        return False
    return not re.search(r"[A-Za-z]{2,}" if " " in content else r"[A-Za-z]{3,}", content)


def _formula_block(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    first = state.bMarks[start_line] + state.tShift[start_line]
    opening = state.src[first : first + 2]
    if opening not in ("\\[", "$$") or state.is_code_block(start_line):
        return False
    if start_line < state.env.get("unclosed", 0):  # this text was already searched without finding the end
        return False
    lines, closed, size, line = [], False, 0, start_line
    while line < min(end_line, start_line + _MAX_LINES) and size <= MAX_LOOK_AHEAD and not closed:
        at = state.bMarks[line] + state.tShift[line]
        text = state.src[first + 2 if line == start_line else at : state.eMarks[line]].rstrip()
        if line > start_line and (state.isEmpty(line) or state.sCount[line] < state.blkIndent):
            return False
        closed = text.endswith(_CLOSING[opening])
        if closed:
            text = text[:-2]
        if _CLOSING[opening] in text:  # ends in the middle of a line: an inline formula
            return False
        lines.append(text)
        size += len(text) + 1
        line += 1
    content = "\n".join(lines).strip()
    pending = not closed and line == state.lineMax and "live" in state.env
    if not (pending or (closed and content and size <= MAX_LOOK_AHEAD)):
        if not closed:
            state.env["unclosed"] = line
        return False
    if not silent:
        token = state.push("formula_pending" if pending else "formula_block", "math", 0)
        token.content, token.markup, token.map = content, opening, [start_line, line]
        state.line = line
    return True


def _footnote(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    first = state.bMarks[start_line] + state.tShift[start_line]
    match = _LABEL.match(state.src, first, state.eMarks[start_line])
    if match is None or state.is_code_block(start_line) or state.src[match.end() : match.end() + 1] != ":":
        return False
    if silent:
        return True
    line = start_line + 1
    while line < end_line and not state.isEmpty(line) and state.sCount[line] >= state.blkIndent:
        if state.src.startswith("[^", state.bMarks[line] + state.tShift[line]):
            break
        line += 1
    state.env.setdefault("footnotes", set()).add(match[1])
    opened = state.push("footnote_open", "p", 1)
    opened.info, opened.map = match[1], [start_line, line]
    inline = state.push("inline", "", 0)
    rest = state.getLines(start_line + 1, line, state.blkIndent, False)
    inline.content = f"{state.src[match.end() + 1 : state.eMarks[start_line]].strip()}\n{rest}".strip()
    inline.map, inline.children = [start_line, line], []
    state.push("footnote_close", "p", -1).info = match[1]
    state.line = line
    return True


def _footnote_reference(state: StateInline, silent: bool) -> bool:
    match = _LABEL.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    defined = match[1] in state.env.get("footnotes", ())
    if not defined and not ("live" in state.env and match[1].isdigit()):
        return False
    if not silent:
        token = state.push("footnote_reference", "sup", 0)
        token.content, token.hidden = match[1], not defined
    state.pos = match.end()
    return True


def _tag(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "<":
        return False
    if match := _BREAK.match(state.src, state.pos, state.posMax):
        if not silent:
            state.push("hardbreak", "br", 0)
    elif match := _TAG.match(state.src, state.pos, state.posMax):
        if not silent:
            name, end = match[1].lower(), state.posMax
            state.push("tag_open", name, 1)
            state.pos, state.posMax = match.span(2)
            state.md.inline.tokenize(state)
            state.posMax = end
            state.push("tag_close", name, -1)
    else:
        return False
    state.pos = match.end()
    return True


def _list_numbers(state: StateCore) -> None:
    """Note in each ordered list how many digits its last number has."""
    lists: list[tuple[Token, int]] = []
    for token in state.tokens:
        if token.type == "ordered_list_open":
            lists.append((token, int(token.attrGet("start") or 1)))
        elif token.type == "list_item_open" and lists and token.level == lists[-1][0].level + 1:
            lists[-1] = (lists[-1][0], lists[-1][1] + 1)
        elif token.type == "ordered_list_close":
            opened, following = lists.pop()
            opened.meta["digits"] = len(str(following - 1))


def _tasks(state: StateCore) -> None:
    for item, paragraph, inline in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if (item.type, paragraph.type, inline.type) != ("list_item_open", "paragraph_open", "inline"):
            continue
        if match := _TASK.match(inline.content):
            item.meta["task"] = True
            paragraph.meta["done"] = match[1] != " "
            inline.content = inline.content[match.end() :]
