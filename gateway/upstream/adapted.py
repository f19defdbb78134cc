"""One request to a model server, which is repeated with changes when the server refuses it."""

import re
from collections.abc import Mapping
from typing import Any

from gateway.errors import RequestRefused, ToolsRefused
from gateway.upstream.changes import NO_OWN_TOOLS, STREAMED, Body, Change, Kind
from gateway.upstream.custom_tools import CustomCalls, custom_names
from gateway.upstream.known import Known
from gateway.upstream.paths import found_at
from gateway.upstream.refusals import changes_for
from gateway.upstream.request import CHAT, ModelRequest, ModelTarget

MOST_REFUSALS = 3  # of one request that are answered with changes
_HIDDEN = "…"
_NUMBERS = re.compile(r"\b\w*\d\w*")  # such as request ids


class AdaptedRequest:
    """A request with the changes that are known for its model, and those that its refusals have asked for."""

    def __init__(self, request: ModelRequest, known: Known, *, stream: bool) -> None:
        self.request, self.stream = request, stream
        self.dialect = request.dialect()
        self._known = known
        # Changes are learned for chats only: elsewhere the same parameter may mean something else.
        self._learned = known.changes(request.upstream, request.model) if request.path == CHAT else []
        self._made: dict[Change, str] = {}  # each with the server's words
        self._tried: set[Change] = set()
        self._asked_for: tuple[str | None, str] | None = None  # by the last refusal
        self._answered = 0
        self._latest = 0  # how many changes answered it
        self._sent: Body = {}
        self._spare = False  # whether tools of ours were sent

    @property
    def streams(self) -> bool:
        """Whether the answer arrives in pieces, also where the request is for a whole one."""
        return self.stream or STREAMED in self._changes

    @property
    def _changes(self) -> list[Change]:
        return [*self._learned, *self._made]

    def custom_calls(self) -> CustomCalls:
        """Return the object that turns calls of functions which replace custom tools back into calls of those tools."""
        return CustomCalls(custom_names(self.request.tools) if self.dialect.custom_tools is False else frozenset())

    def body(self) -> Body:
        """Return the body to send next."""
        changes = self._changes
        request = self.request.without_spare() if NO_OWN_TOOLS in changes else self.request
        self._spare = bool(request.spare)
        body = request.body(stream=self.streams, dialect=self.dialect)
        for change in changes:
            body = change.applied(body)
        self._sent = body
        return body

    def again(self, fault: Exception) -> bool:
        """Return True if the request should be sent again after this fault: it is a refusal that a change may answer,
        and at most MOST_REFUSALS refusals are answered."""
        if not isinstance(fault, RequestRefused) or self._answered == MOST_REFUSALS:
            return False
        if (asked_for := (fault.param, _NUMBERS.sub("", fault.said))) == self._asked_for:
            self._made = dict(list(self._made.items())[: -self._latest])  # the latest changes did not help
            self.body()
        changes = changes_for(fault, self._sent, fixed=self.dialect.set, tried=self._tried)
        if isinstance(fault, ToolsRefused) and self._spare and not changes:
            changes = [] if NO_OWN_TOOLS in self._tried else [NO_OWN_TOOLS]
        new = [change for change in changes if not self._is_way_back(change)]
        if not new:
            return False
        self._made |= {change: _words(fault, change, self._sent) for change in new}
        self._tried |= set(new)
        self._answered, self._asked_for, self._latest = self._answered + 1, asked_for, len(new)
        return True

    def helped(self) -> None:
        """Remember the changes of this request, which the server has accepted."""
        if self.request.spare and not self._spare:
            self.request.course.toolless = ModelTarget(self.request.upstream, self.request.model)
        if not self._made:
            return
        lasting: Mapping[Change, str] = {change: words for change, words in self._made.items() if change.lasts}
        self._made = {}
        if lasting and self.request.path == CHAT:
            self._known.learn(self.request.upstream, self.request.model, lasting)

    def _is_way_back(self, change: Change) -> bool:
        """Return True if a parameter that was renamed in this request would get its first name again."""
        pair = {change.parameter, change.value} if change.kind is Kind.RENAME else set()
        return any(made.kind is Kind.RENAME and {made.parameter, made.value} == pair for made in self._tried)


def _words(refusal: RequestRefused, change: Change, body: Mapping[str, Any]) -> str:
    """Return the server's words without the values that were sent: they may be names or ids of a person."""
    words = refusal.said
    for value in found_at(body, change.parameter.split(".")):
        if isinstance(value, str) and len(value) > 2 and value != change.value:
            words = words.replace(value, _HIDDEN)
    return words
