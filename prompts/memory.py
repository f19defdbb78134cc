"""Blocks of remembered data: escaped, inside a tag, after one sentence that says what they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from prompts.files import fill, prompt_file


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLine:
    """One memory as a model sees it."""

    number: int | str  # another provider's entries have a name instead
    category: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """One earlier turn of this conversation, cut to its limit."""

    turn: int
    text: str


def memory_line(memory: MemoryLine) -> str:
    """`<memory id="12" category="preference">…</memory>`; no content can end the tag."""
    attributes = f"id={_attribute(str(memory.number))} category={_attribute(memory.category)}"
    return f"  <memory {attributes}>{escape(memory.content)}</memory>"


def memory_block(memories: Sequence[MemoryLine]) -> str:
    """Return the `<memories>` block, or "" for none."""
    if not memories:
        return ""
    return fill(prompt_file("memory_block"), memories="\n".join(map(memory_line, memories)))


def thread_block(snippets: Sequence[Snippet]) -> str:
    """Return the `<thread_memories>` block, or "" for none."""
    if not snippets:
        return ""
    lines = (f'  <snippet turn="{snippet.turn}">{escape(snippet.text)}</snippet>' for snippet in snippets)
    return fill(prompt_file("thread_block"), snippets="\n".join(lines))


def _attribute(value: str) -> str:
    return '"' + escape(value, {'"': "&quot;"}) + '"'
