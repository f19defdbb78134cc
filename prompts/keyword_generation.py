"""The request for search words of notes that were written without them."""

from collections.abc import Sequence
from xml.sax.saxutils import escape

from prompts.files import fill, prompt_file


def keyword_generation_prompt(notes: Sequence[tuple[int, str]]) -> str:
    """`notes`: (number, content)."""
    lines = "\n".join(f'  <note id="{number}">{escape(content)}</note>' for number, content in notes)
    return fill(prompt_file("keyword_generation"), notes=lines)
