"""Changes that make a model server accept a request, as data that can be stored."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gateway.upstream.paths import without

_MAX_PATH_CHARS, _MAX_VALUE_CHARS = 200, 100

Body = dict[str, Any]


class Kind(StrEnum):
    """What a change does with its parameter."""

    DROP = "drop"
    RENAME = "rename"
    SET = "set"


class Condition(StrEnum):
    """The requests that a change applies to."""

    ALWAYS = ""
    TOOLS = "tools"  # requests that offer tools
    WHOLE = "whole"  # requests that are not streamed
    VALUE = "value"  # requests whose parameter has the value of the change
    OWN = "own"  # requests with our own tools, which are left out; the client's stay
    ONCE = "once"  # only the request that was refused


_CONDITION_WORDS = {Condition.TOOLS: " where tools are offered", Condition.WHOLE: " where nothing is streamed"}


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a request. `value` is the new name or the new value, or with Condition.VALUE the refused value.
    `parameter` is a path without list indexes, such as `messages.name`."""

    kind: Kind
    parameter: str
    value: Any = None
    condition: Condition = Condition.ALWAYS

    def __str__(self) -> str:
        if self.kind is Kind.RENAME:
            what = f"{self.parameter} is sent as {self.value}"
        elif self.kind is Kind.SET:
            what = f"{self.parameter} is set to {json.dumps(self.value)}"
        elif self.condition is Condition.OWN:
            return "the memory tools are left out"
        elif self.condition is Condition.VALUE:
            what = f"{self.parameter} is left out where it is {json.dumps(self.value)}"
        else:
            what = f"{self.parameter} is left out"
        return what + _CONDITION_WORDS.get(self.condition, "")

    @property
    def lasts(self) -> bool:
        """Return True if the change may help other requests and fits into its row."""
        reusable = self.condition is not Condition.ONCE
        return reusable and len(self.parameter) <= _MAX_PATH_CHARS and len(json.dumps(self.value)) <= _MAX_VALUE_CHARS

    def applied(self, body: Body) -> Body:
        """Return a copy of the body with this change, or the body itself if the change does not apply to it."""
        if not self._applies_to(body):
            return body
        if self.kind is Kind.SET:
            return {**body, self.parameter: self.value}
        path = self.parameter.split(".")
        changed: Body = without(body, path)
        if self.kind is Kind.RENAME and self.parameter in body:
            changed.setdefault(self.value, body[self.parameter])
        if len(path) > 1 and changed.get(path[0]) == {}:
            del changed[path[0]]
        return changed

    def _applies_to(self, body: Mapping[str, Any]) -> bool:
        if self.condition is Condition.TOOLS:
            return bool(body.get("tools"))
        if self.condition is Condition.WHOLE:
            return not body.get("stream")
        if self.condition is Condition.VALUE:
            return bool(body.get(self.parameter) == self.value)
        return self.condition is not Condition.OWN  # AdaptedRequest applies it: a body does not say whose its tools are


STREAMED = Change(Kind.SET, "stream", True, Condition.WHOLE)
"""For models that only stream: the chunks are joined (gateway.upstream.collected)."""
NO_OWN_TOOLS = Change(Kind.DROP, "tools", condition=Condition.OWN)
"""For models that refuse tools: ours are left out (`ModelRequest.optional_tools`)."""
