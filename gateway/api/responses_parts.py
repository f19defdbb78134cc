"""What a response that is being written consists of: items, their parts, and how reasoning is shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.api.responses_json import text_part

TEXT, REFUSAL = "output_text", "refusal"


@dataclass(slots=True)
class Item:
    """An item that is being written: its place in the output, and the pieces of its current part."""

    index: int
    item: dict[str, Any]
    part: str = ""  # the type of the part that is being written
    pieces: list[str] = field(default_factory=list)
    beside: dict[str, list[Any]] = field(default_factory=lambda: {"annotations": [], "logprobs": []})

    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def given(self) -> str:
        """Return the field of a call in which the model's words stand."""
        return given_field(self.item)

    @property
    def given_event(self) -> str:
        """Return the name of the events that tell them."""
        return "custom_tool_call_input" if self.given == "input" else "function_call_arguments"

    def part_now(self) -> dict[str, Any]:
        text = self.text()
        return {**text_part(text), **self.beside} if self.part == TEXT else {"type": REFUSAL, "refusal": text}


@dataclass(frozen=True, slots=True)
class Thinking:
    """The names that events use for reasoning: of the part, of its text, of its index, and its type."""

    part: str
    text: str
    index: str
    type: str

    def of(self, text: str) -> dict[str, Any]:
        return {"type": self.type, "text": text}


AS_IT_IS = Thinking("content_part", "reasoning_text", "content_index", "reasoning_text")
IN_SUMMARY = Thinking("reasoning_summary_part", "reasoning_summary_text", "summary_index", "summary_text")


def given_field(item: Mapping[str, Any]) -> str:
    """Return the field of a call's item in which the model's words stand."""
    return "input" if item["type"] == "custom_tool_call" else "arguments"
