"""The items of a response while it is written, and the parts that their text is streamed in."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A kind of part. Its text is in `field` and streamed in events named after `text_event`. The part is an entry of
    the item's list `container`, whose events are named after `part_event`; without a container, the text is a field of
    the item itself. `lists` are further fields of the part."""

    text_event: str
    field: str
    type: str = ""
    part_event: str = "content_part"
    container: str = "content"
    lists: tuple[str, ...] = ()

    def as_json(self, text: str, **lists: list[Any]) -> dict[str, Any]:
        more = {name: lists.get(name, []) for name in self.lists}
        return {"type": self.type, self.field: text, **more} if self.container else {self.field: text}


TEXT = Part(text_event="output_text", field="text", type="output_text", lists=("annotations", "logprobs"))
REFUSAL = Part(text_event="refusal", field="refusal", type="refusal")
REASONING = Part(text_event="reasoning_text", field="text", type="reasoning_text")
SUMMARY = Part(
    text_event="reasoning_summary_text",
    field="text",
    type="summary_text",
    part_event="reasoning_summary_part",
    container="summary",
)
ARGUMENTS = Part(text_event="function_call_arguments", field="arguments", container="")
INPUT = Part(text_event="custom_tool_call_input", field="input", container="")


@dataclass(slots=True)
class Item:
    """An item that is being written: its index in the output, and the text and lists of its current part."""

    index: int
    data: dict[str, Any]
    part: Part | None = None
    pieces: list[str] = field(default_factory=list)
    lists: dict[str, list[Any]] = field(default_factory=dict)

    def begin(self, part: Part) -> None:
        self.part, self.pieces, self.lists = part, [], {name: [] for name in part.lists}

    def current_part(self) -> dict[str, Any]:
        """Return the current part as written so far."""
        return self.part.as_json("".join(self.pieces), **self.lists) if self.part else {}

    def position(self) -> dict[str, Any]:
        """Return the fields of an event that locate the current part."""
        position = {"item_id": self.data["id"], "output_index": self.index}
        if self.part is None or not self.part.container:
            return position
        index = "summary_index" if self.part.container == "summary" else "content_index"
        return {**position, index: len(self.data[self.part.container])}

    def end(self) -> None:
        """Add the current part to the item."""
        if self.part is not None:
            written, container = self.current_part(), self.part.container
            self.data = {**self.data, **({container: [*self.data[container], written]} if container else written)}
            self.part = None
