"""Formats remembered data for models: escaped, inside a tag, after a sentence that says what it is; and prompts about
it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape
from typing import NamedTuple
from xml.sax.saxutils import escape

from prompts.files import fill, prompt_file

_QUOTE = {'"': "&quot;"}
_TAGS = "memory|snippet|memory_summary|memories|thread_memories|earlier_conversation"
_TAG = re.compile(rf"</?(?:{_TAGS})(?: [^<>]*)?>")
_TAGGED_TEXT = re.compile(r"<(memory|snippet|memory_summary)( [^<>]*)?>([^<]*)</\1>")
_OF_PROVIDER = re.compile(r' id="(?!\d+")')  # another provider's entries have a name instead of a number
_EMPTY_BOOK = "(Nothing is remembered in this book yet.)"


class MemoryLine(NamedTuple):
    """One memory as a model sees it."""

    number: int | str  # another provider's entries have a name instead
    category: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """One earlier turn of this conversation, truncated."""

    turn: int
    text: str


def tagged_line(tag: str, content: str, **attributes: object) -> str:
    """Return `  <tag key="value">content</tag>`, escaped so that the content cannot end the tag."""
    named = "".join([f' {key}="{_escaped(str(value))}"' for key, value in attributes.items()])
    return f"  <{tag}{named}>{escape(content)}</{tag}>"


def _escaped(value: str) -> str:
    return value if value.isalnum() else escape(value, _QUOTE)


def memory_line(memory: MemoryLine) -> str:
    """Return `  <memory id="12" category="preference">…</memory>`, escaped like `tagged_line`."""
    number, category, content = memory
    return f'  <memory id="{_escaped(str(number))}" category="{_escaped(category)}">{escape(content)}</memory>'


def memory_block(memories: Sequence[MemoryLine]) -> str:
    """Return the `<memories>` block, or "" without memories."""
    if not memories:
        return ""
    return fill(prompt_file("memory_block"), memories="\n".join(map(memory_line, memories)))


def thread_block(snippets: Sequence[Snippet]) -> str:
    """Return the `<thread_memories>` block, or "" without snippets."""
    if not snippets:
        return ""
    lines = (tagged_line("snippet", snippet.text, turn=snippet.turn) for snippet in snippets)
    return fill(prompt_file("thread_block"), snippets="\n".join(lines))


def texts_in_blocks(text: str) -> list[tuple[str, bool]]:
    """Return the unescaped texts inside the tags of these blocks and of the Memory Guidance, and whether each is ours,
    not another provider's."""
    return [
        (words, not _OF_PROVIDER.match(match[2] or ""))
        for match in _TAGGED_TEXT.finditer(text)
        if (words := unescape(match[3]).strip())
    ]


def without_tags(text: str) -> str:
    """Return a text copied from such a block without its tags, unescaped."""
    return unescape(_TAG.sub(" ", text)) if _TAG.search(text) else text


def review_my_memory(memories: Sequence[MemoryLine], *, book: str, tools_book: str, note: str = "") -> str:
    """Return the prompt that makes an MCP client review a book with the person. `tools_book` is the book that the
    client's tools use; `note` follows the memories."""
    block = "\n".join(part for part in (memory_block(memories) or _EMPTY_BOOK, note) if part)
    return fill(prompt_file("review_my_memory"), memories=block, book=book, tools_book=tools_book)


def keyword_generation_prompt(notes: Sequence[tuple[int, str]]) -> str:
    """Return the prompt that asks for keywords for (number, content) notes without any."""
    lines = (tagged_line("note", content, id=number) for number, content in notes)
    return fill(prompt_file("keyword_generation"), notes="\n".join(lines))
