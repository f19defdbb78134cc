"""What a turn records in its run's output while its model steps arrive: the text, the reasoning, and in the trace which
model servers were asked, and whether they searched the web or read documents themselves: nothing shows the gateway what
they read, so what the model says then is no evidence for a memory."""

import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from gateway.messages import PARAGRAPH
from gateway.runs.context import RunOutput
from gateway.runs.utterances import SEARCHED
from gateway.upstream import ModelRequest
from gateway.upstream.dialects import dialect_of
from gateway.upstream.reasoning import reasoning_in
from gateway.upstream.request import ModelTarget, RequestLog
from memories.storable import storable_text

MAX_REASONING = 32_000  # characters per turn
MAX_ATTEMPTS = 100
# Parameters that ask for a search, or name documents to read: OpenAI, xAI, OpenRouter, Perplexity, DashScope (Qwen),
# Qianfan, Hunyuan; Azure, LiteLLM, vLLM and Cohere
_SEARCH_PARAMETERS = frozenset(
    {
        "web_search_options", "search_parameters", "plugins", "search_domain_filter", "enable_search", "web_search",
        "enable_enhancement", "data_sources", "vector_store_ids", "documents",
    }
)  # fmt: skip
# Parameters whose fields a server or proxy treats as parameters: LiteLLM and others; vLLM, SGLang and llama.cpp
_MERGED = ("extra_body", "chat_template_kwargs")
# Of a whole answer: Perplexity, xAI; DashScope and Hunyuan; Zhipu; Volcengine
_CITATIONS = ("citations", "search_results", "search_info", "web_search", "references")
# Of a message: OpenAI and OpenRouter; Cohere and LiteLLM; Groq; Azure
_MESSAGE_CITATIONS = ("annotations", "citations", "executed_tools", "context")
_OF_CLIENTS = ("function", "custom")  # types of tools whose results a client sends
# Models that search: of OpenRouter, Perplexity, Groq, OpenAI
_SEARCH_MODELS = re.compile(r"[:-]online\b|\bsonar\b|\bcompound\b|-search\b|\bdeep-research\b", re.IGNORECASE)


class AnswerText:
    """Appends to a run's text. A resumed run begins with the text that it sent to earlier requests."""

    def __init__(self, output: RunOutput) -> None:
        self._output = output
        self._recorded = len(output.text)  # length of the text that output.messages already contains
        self._request_start = len(output.text)
        self.before_calls: dict[str, int] = {}
        """The length of the step's text before each of its calls that was sent to the client, by the call's id."""

    @property
    def of_request(self) -> str:
        """The text of this request."""
        return self._output.text[self._request_start :]

    @property
    def unrecorded(self) -> str:
        """The text of the current step."""
        return self._output.text[self._recorded :]

    def step_recorded(self) -> None:
        """Note that the messages now contain the text of the step."""
        self._recorded, self.before_calls = len(self._output.text), {}

    def append(self, text: str, calls: Iterable[Mapping[str, Any]]) -> str:
        """Append a piece of a step's text and return what to send. The texts of steps become separate paragraphs.
        `calls` are the pieces of calls that follow the text."""
        sent = self._append(text)
        self.before_calls |= {call["id"]: len(self.unrecorded) for call in calls if "id" in call}
        return sent

    def _append(self, text: str) -> str:
        before, gap = self._output.text, ""
        if text and before and len(before) == self._recorded and not (before[-1].isspace() or text[0].isspace()):
            gap = PARAGRAPH
            self._recorded += len(gap)
        self._output.text += gap + text
        if len(before) == self._request_start:  # the client's text does not begin with the gap
            self._request_start += len(gap)
            return text
        return gap + text


class Thinking:
    """Adds the reasoning in the choices of a turn's steps to the run's output, up to a limit, and how long it took, to
    show them in the conversation. Reasoning that a server requires in later requests is kept by gateway.upstream.kept.
    """

    def __init__(self, output: RunOutput) -> None:
        self._output = output
        self._since: float | None = None
        self._new_step = False

    def take(self, choice: Mapping[str, Any], *, has_output: bool) -> None:
        """Read a choice of a stream or of a complete answer. `has_output`: text or calls came, so reasoning is over."""
        part = choice.get("delta") or choice.get("message")
        thought = storable_text(reasoning_in(part)) if isinstance(part, Mapping) else ""
        if thought:
            gap = PARAGRAPH if self._new_step and self._output.reasoning else ""
            self._new_step = False
            left = MAX_REASONING - len(self._output.reasoning)
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


class RunAttempts:
    """The attempts of all steps of a run: which models were asked, what failed, which one answered, and which one did
    not accept our tools, without addresses and text of the conversation. `earlier` is the trace from before the run
    waited for its client's tools."""

    def __init__(self, earlier: Mapping[str, Any]) -> None:
        self._earlier: list[dict[str, Any]] = list(earlier.get("attempts", ()))
        self._logs: list[RequestLog] = []

    def next_log(self) -> RequestLog:
        """Return a new RequestLog, which the request of the next step fills."""
        self._logs.append(RequestLog())
        return self._logs[-1]

    def prefer(self, target: ModelTarget) -> ModelTarget:
        """Return an agent's models, first the one that answered before: the conversation contains its reasoning."""
        before = [ModelTarget(entry["upstream"], entry["model"]) for entry in self._earlier if not entry["fault"]]
        answered = [*before, *(log.answered_by for log in self._logs)]
        last = next(filter(None, reversed(answered)), None)
        return target.preferring(last) if last in target.all else target

    def with_attempts(self, trace: dict[str, Any]) -> dict[str, Any]:
        """Return a run's trace with the attempts, if any failed, and the model that accepted no tools, if any."""
        toolless = next((log.toolless for log in reversed(self._logs) if log.toolless), None)
        if toolless is not None:
            trace = {**trace, "toolless": {"upstream": toolless.upstream, "model": toolless.model}}
        attempts = [*self._earlier, *(entry for log in self._logs for entry in log.attempts)]
        return {**trace, "attempts": attempts[:MAX_ATTEMPTS]} if attempts else trace


def note_request(trace: dict[str, Any], request: ModelRequest, upstream: str, model: str) -> None:
    """Note in a run's trace if a request lets the server and model that answer it read something themselves."""
    dialect = dialect_of(upstream)
    sent = {"model": model, **request.parameters, "tools": request.tools, **dialect.set}
    for name in _MERGED:
        if isinstance(extra := sent.get(name), Mapping):
            sent |= extra
    # {} asks for a search, too.
    asked = {name for name in _SEARCH_PARAMETERS if sent.get(name) not in (None, False, [])}
    tools = sent["tools"] or ()
    on_server = not isinstance(tools, list | tuple) or not all(map(_is_of_client, tools))
    if on_server or asked.difference(dialect.drop) or _SEARCH_MODELS.search(str(sent["model"])):
        trace[SEARCHED] = True


def _is_of_client(tool: Any) -> bool:
    return (
        isinstance(tool, Mapping)
        and tool.get("type", "function") in _OF_CLIENTS
        and any(isinstance(tool.get(kind), dict) for kind in _OF_CLIENTS)
    )


def note_answer(trace: dict[str, Any], choice: Mapping[str, Any], around: Mapping[str, Any]) -> None:
    """Note in a run's trace if a piece of an answer cites what the model server has read."""
    part = choice.get("delta") or choice.get("message")
    if (isinstance(part, dict) and cites(part)) or any(around.get(name) for name in _CITATIONS):
        trace[SEARCHED] = True


def cites(message: Mapping[str, Any]) -> bool:
    """Whether a message or delta of a model, or a part of its content, names what the model server has read."""
    content = message.get("content")
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    return any(part.get(name) for part in (message, *parts) for name in _MESSAGE_CITATIONS)
