"""Collects a model's reasoning in a turn and how long it took, to show it in the conversation. It is stored up to a
limit and deleted with the turn. Reasoning that a server requires in later requests is kept by gateway.upstream.kept."""

import time
from collections.abc import Mapping
from typing import Any

from gateway.runs.context import RunOutput
from gateway.upstream.reasoning import reasoning_in
from memories.storable import storable_text

MAX_CHARS = 32_000  # per turn
_BETWEEN_STEPS = "\n\n"


class Thinking:
    """Adds the reasoning in the choices of a turn's steps to the run's output."""

    def __init__(self, output: RunOutput) -> None:
        self._output = output
        self._since: float | None = None
        self._new_step = False

    def take(self, choice: Mapping[str, Any], *, has_output: bool) -> None:
        """Read a choice of a stream or of a complete answer. `has_output`: text or calls came, so reasoning is over."""
        part = choice.get("delta") or choice.get("message")
        thought = storable_text(reasoning_in(part)) if isinstance(part, Mapping) else ""
        if thought:
            gap = _BETWEEN_STEPS if self._new_step and self._output.reasoning else ""
            self._new_step = False
            left = MAX_CHARS - len(self._output.reasoning)
            self._output.reasoning += (gap + thought)[: max(0, left)]
            if self._since is None and "delta" in choice:
                self._since = time.monotonic()
        if has_output:
            self.pause()

    def pause(self) -> None:
        """Stop the clock: the answer has begun, or the step is over."""
        self._new_step = True
        if self._since is not None:
            spent = round((time.monotonic() - self._since) * 1000)
            self._output.trace["thought_ms"] = self._output.trace.get("thought_ms", 0) + spent
            self._since = None
