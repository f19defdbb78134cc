"""The prompt with which a person has a client of MCP go through what is remembered."""

from collections.abc import Sequence

from prompts.files import fill, prompt_file
from prompts.memory import MemoryLine, memory_block

_NOTHING = "(Nothing is remembered in this book yet.)"


def review_my_memory(memories: Sequence[MemoryLine], *, book: str, tools_book: str, note: str = "") -> str:
    """Return the text for a book's memories; `tools_book` is the one that the client's tools work on, `note` is said
    after the memories."""
    block = "\n".join(part for part in (memory_block(memories) or _NOTHING, note) if part)
    return fill(prompt_file("review_my_memory"), memories=block, book=book, tools_book=tools_book)
