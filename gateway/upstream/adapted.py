"""One request to a model server, which is repeated with changes if the server refuses it."""

import re
from collections.abc import Mapping
from typing import Any

from gateway.errors import RequestRefused, ToolsRefused
from gateway.messages import content_text
from gateway.tool_calls import calls_in
from gateway.upstream.cache import UpstreamCache
from gateway.upstream.changes import NO_OWN_TOOLS, STREAMED, Body, Change, Kind
from gateway.upstream.paths import found_at
from gateway.upstream.refusals import changes_for
from gateway.upstream.request import CHAT, Deadlines, ModelRequest, ModelTarget

MAX_ADAPTATIONS = 3  # of one request
_HIDDEN = "…"
_BEGIN = re.compile(r"[\w ,.]{4,20}")  # of a text that may be quoted
_INPUT = re.compile(r"""['"]input['"]\s*:""")  # vLLM and others quote what they validated
_NUMBERS = re.compile(r"\b\w*\d\w*")  # such as request ids


class AdaptedRequest:
    """A request with its deadlines, the changes learned for its model, and those made in response to its refusals."""

    def __init__(self, request: ModelRequest, cache: UpstreamCache, *, stream: bool) -> None:
        self.request, self.stream = request, stream
        self.dialect = request.dialect()
        self.deadlines = Deadlines(request, self.dialect)
        self._cache = cache
        # Changes are learned for chats only: at other endpoints a parameter may mean something else.
        self._learned = cache.changes(request.upstream, request.model) if request.path == CHAT else []
        self._made: dict[Change, str] = {}  # by change, the server's words
        self._tried: set[Change] = set()
        # The refusals so far, each with the changes made before it.
        self._refusals: list[tuple[tuple[str | None, str], dict[Change, str]]] = []
        self._sent: Body = {}
        self._sent_optional_tools = False

    @property
    def streams(self) -> bool:
        """Whether the answer is streamed, even if a whole one was requested."""
        return self.stream or STREAMED in self._changes

    @property
    def _changes(self) -> list[Change]:
        return [*self._learned, *self._made]

    def body(self) -> Body:
        """Return the body to send next."""
        changes = self._changes
        request = self.request.without_optional_tools() if NO_OWN_TOOLS in changes else self.request
        self._sent_optional_tools = bool(request.optional_tools)
        body = request.body(stream=self.streams, dialect=self.dialect)
        for change in changes:
            body = change.applied(body)
        self._sent = body
        return body

    def adapt_to(self, fault: Exception) -> bool:
        """Change the request in response to a refusal, and return True if it should be sent again. Return False for
        other faults, after MAX_ADAPTATIONS, and if no change may help."""
        if not isinstance(fault, RequestRefused) or len(self._refusals) == MAX_ADAPTATIONS:
            return False
        refusal = fault.param, _NUMBERS.sub("", fault.server_message)
        if self._refusals and self._refusals[-1][0] == refusal:
            self._made = self._refusals[-1][1]  # the last changes did not help
            self.body()
        changes = changes_for(fault, self._sent, fixed=self.dialect.set, tried=self._tried)
        if isinstance(fault, ToolsRefused) and self._sent_optional_tools and not changes:
            changes = [] if NO_OWN_TOOLS in self._tried else [NO_OWN_TOOLS]
        new = [change for change in changes if not self._undoes_rename(change)]
        if not new:
            return False
        self._refusals.append((refusal, self._made))
        self._made = self._made | {change: _words(fault, change, self._sent) for change in new}
        self._tried |= set(new)
        return True

    def accepted(self) -> None:
        """Learn the changes of this request, since the server has accepted it."""
        if self.request.optional_tools and not self._sent_optional_tools:
            self.request.log.toolless = ModelTarget(self.request.upstream, self.request.model)
        if not self._made:
            return
        lasting: Mapping[Change, str] = {change: words for change, words in self._made.items() if change.lasts}
        self._made = {}
        if lasting and self.request.path == CHAT:
            self._cache.learn(self.request.upstream, self.request.model, lasting)

    def _undoes_rename(self, change: Change) -> bool:
        """Return True if the change would give a parameter renamed in this request its original name back."""
        pair = {change.parameter, change.value} if change.kind is Kind.RENAME else set()
        return any(made.kind is Kind.RENAME and {made.parameter, made.value} == pair for made in self._tried)


def _words(refusal: RequestRefused, change: Change, body: Mapping[str, Any]) -> str:
    """Return the server's words with the values that were sent removed, and up to where they quote a message, since
    both may identify a person."""
    words = refusal.server_message
    for value in found_at(body, change.parameter.split(".")):
        if isinstance(value, str) and len(value) > 2 and value != change.value:
            words = words.replace(value, _HIDDEN)
    if quoted := _INPUT.search(words):
        words = words[: quoted.start()] + _HIDDEN
    for message in body.get("messages", ()):
        calls = [str((call.get("function") or {}).get("arguments") or "") for call in calls_in(message)]
        for text in (content_text(message.get("content")), *calls):
            if (begin := _BEGIN.search(text)) and begin[0] in words:
                words = words.partition(begin[0])[0] + _HIDDEN
    return words
