"""The review prompt, filled with the stored memories and the remaining budget."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prompts.files import fill, prompt_file
from prompts.memory import tagged_line


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingMemory:
    """A stored memory as the reviewer sees it."""

    number: int
    target: str
    category: str
    content: str


def review_prompt(existing: Sequence[ExistingMemory], *, room: Mapping[str, int | None], max_writes: int) -> str:
    """Return the last message of a review's request. `room`: remaining characters by target, None for no limit."""
    lefts = (f"{target}: {'no limit' if left is None else f'{left} characters'}" for target, left in room.items())
    return fill(
        prompt_file("review"),
        existing="\n".join(map(_line, existing)) or "  (nothing yet)",
        room=", ".join(lefts),
        max_writes=str(max_writes),
    )


def review_in_json(tools: Sequence[Mapping[str, Any]]) -> str:
    """Return the text that follows the review prompt for a model that accepts no tools; `tools` are their
    definitions."""
    lines = [json.dumps(tool["function"], ensure_ascii=False) for tool in tools]
    return fill(prompt_file("review_in_json"), tools="\n".join(lines))


def _line(memory: ExistingMemory) -> str:
    return tagged_line("memory", memory.content, id=memory.number, target=memory.target, category=memory.category)
