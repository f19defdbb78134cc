"""A change of requests that makes a model server take them: what a refusal teaches, as data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gateway.upstream.paths import without

_LONGEST_PATH, _LONGEST_VALUE = 200, 100

Body = dict[str, Any]


class Kind(StrEnum):
    """What is done with a parameter."""

    DROP = "drop"
    RENAME = "rename"
    SET = "set"


class Condition(StrEnum):
    """Which requests a change is for."""

    ALWAYS = ""
    TOOLS = "tools"  # those that offer tools
    WHOLE = "whole"  # those that are not streamed
    VALUE = "value"  # those in which the parameter has the change's value
    ONCE = "once"  # the refused one only


_CONDITION_WORDS = {Condition.TOOLS: " where tools are offered", Condition.WHOLE: " where nothing is streamed"}


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a request. `value` is the new name or the new value; with Condition.VALUE the one that is refused.
    `parameter` is a path without places in lists: `messages.name`."""

    kind: Kind
    parameter: str
    value: Any = None
    condition: Condition = Condition.ALWAYS

    def __str__(self) -> str:
        if self.kind is Kind.RENAME:
            what = f"{self.parameter} is sent as {self.value}"
        elif self.kind is Kind.SET:
            what = f"{self.parameter} is set to {json.dumps(self.value)}"
        elif self.condition is Condition.VALUE:
            what = f"{self.parameter} is left out where it is {json.dumps(self.value)}"
        else:
            what = f"{self.parameter} is left out"
        return what + _CONDITION_WORDS.get(self.condition, "")

    @property
    def lasts(self) -> bool:
        """Return True if it can be of use to another request, and fits its row."""
        useful = self.condition is not Condition.ONCE
        return useful and len(self.parameter) <= _LONGEST_PATH and len(json.dumps(self.value)) <= _LONGEST_VALUE

    def applied(self, body: Body) -> Body:
        """Return the body with this change, where it is for such a request. Nothing that was given is changed."""
        if not self._is_for(body):
            return body
        if self.kind is Kind.SET:
            return {**body, self.parameter: self.value}
        path = self.parameter.split(".")
        changed: Body = without(body, path)
        if self.kind is Kind.RENAME and self.parameter in body:
            changed.setdefault(self.value, body[self.parameter])
        if len(path) > 1 and changed.get(path[0]) == {}:
            del changed[path[0]]  # an object of which nothing is left
        return changed

    def _is_for(self, body: Mapping[str, Any]) -> bool:
        if self.condition is Condition.TOOLS:
            return bool(body.get("tools"))
        if self.condition is Condition.WHOLE:
            return not body.get("stream")
        if self.condition is Condition.VALUE:
            return bool(body.get(self.parameter) == self.value)
        return True
