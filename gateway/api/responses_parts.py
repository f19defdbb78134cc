"""What a response that is being written consists of: items, and the parts in which a model's words stand in them."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """How words are told: `text` and `part` name the events of the text, which is in `field`, and of the part around
    it: an entry of the item's list `place`, or without one the item itself. `beside` are lists that it has too."""

    text: str
    field: str
    type: str = ""
    part: str = "content_part"
    place: str = "content"
    beside: tuple[str, ...] = ()

    def content(self, text: str, **beside: list[Any]) -> dict[str, Any]:
        """Return the part with its text."""
        lists = {name: beside.get(name, []) for name in self.beside}
        return {"type": self.type, self.field: text, **lists} if self.place else {self.field: text}


TEXT = Part(text="output_text", field="text", type="output_text", beside=("annotations", "logprobs"))
REFUSAL = Part(text="refusal", field="refusal", type="refusal")
REASONING = Part(text="reasoning_text", field="text", type="reasoning_text")
_SUMMARY = "reasoning_summary_part"
IN_SUMMARY = Part(text="reasoning_summary_text", field="text", type="summary_text", part=_SUMMARY, place="summary")
ARGUMENTS = Part(text="function_call_arguments", field="arguments", place="")
INPUT = Part(text="custom_tool_call_input", field="input", place="")


@dataclass(slots=True)
class Item:
    """An item that is being written: its place in the output, and the text and lists of its current part."""

    index: int
    item: dict[str, Any]
    part: Part | None = None
    pieces: list[str] = field(default_factory=list)
    beside: dict[str, list[Any]] = field(default_factory=dict)

    def begin(self, part: Part) -> None:
        self.part, self.pieces, self.beside = part, [], {name: [] for name in part.beside}

    def content(self) -> dict[str, Any]:
        """Return the current part with what was written of it so far."""
        return self.part.content("".join(self.pieces), **self.beside) if self.part else {}

    def at(self) -> dict[str, Any]:
        """Return what events say of where the current part is."""
        at = {"item_id": self.item["id"], "output_index": self.index}
        if self.part is None or not self.part.place:
            return at
        index = "summary_index" if self.part.place == "summary" else "content_index"
        return {**at, index: len(self.item[self.part.place])}

    def end(self) -> None:
        """Put the current part into the item."""
        if self.part is not None:
            written, place = self.content(), self.part.place
            self.item = {**self.item, **({place: [*self.item[place], written]} if place else written)}
            self.part = None
