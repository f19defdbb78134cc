"""One model step, gathered from what came over the wire. Text goes on as it comes; upstream.calls has the calls."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.errors import UpstreamUnreachable
from gateway.limits.spending import ModelUse
from gateway.telemetry import NOTHING, Span, begin
from gateway.upstream import ModelRequest, model
from gateway.upstream.answer import choices_of
from gateway.upstream.calls import CallAccumulator, PartialCall, StepCall
from gateway.upstream.kept import FieldAccumulator, KeptFields, PartAccumulator, SizeBudget, with_kept
from gateway.upstream.outgoing import content_text
from gateway.upstream.reasoning import reasoning_in, without_thinking
from gateway.upstream.usage import usage_of
from memories.errors import TooLarge
from memories.storable import storable_text

_LONGEST_NAME = 200  # as long as the column of a run's model
_TOLD_APART = frozenset({"role", "tool_calls", "content"})
_KNOWN = frozenset({"id", "object", "created", "model", "choices", "usage", "obfuscation"})  # of a chunk
_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStepResult:
    text: str
    calls: list[StepCall]
    usage: dict[str, Any]
    model: str
    finish_reason: str
    was_ended: bool  # the server said why the model stopped
    choice: dict[str, Any]  # the upstream's whole answer, or the choice with which its stream ended
    around: Mapping[str, Any]  # what stood beside the choices of a stream: service_tier, system_fingerprint, …
    kept: KeptFields  # what its message carries beside text and calls

    @property
    def said(self) -> str:
        """The text without the thinking that some servers leave in it."""
        return without_thinking(self.text)

    def message(self, names: Mapping[str, str] = _NOTHING) -> dict[str, Any]:
        """Return the step as a message of the assistant, with its calls in the model's order; `names` are other ids
        than the model's own, under which a client knows its calls."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.calls:
            message["tool_calls"] = [replace(call, id=names.get(call.id, call.id)).as_json() for call in self.calls]
        calls = {names.get(call_id, call_id): more for call_id, more in self.kept.calls.items()}
        return with_kept(message, replace(self.kept, calls=calls))


@dataclass(slots=True, kw_only=True)
class ModelStep:
    """A step under way: `deadline` in the event loop's time; `bytes_left` of what the model may write, calls
    included."""

    deadline: float
    bytes_left: int
    texts: list[str] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    finish_reason: str = ""
    choice: dict[str, Any] = field(default_factory=dict)
    around: Mapping[str, Any] = field(default_factory=dict)
    asked: tuple[str, str] = ("", "")  # upstream and model that answered
    part_of: Span = NOTHING
    _budget: SizeBudget = field(default_factory=SizeBudget)
    _extra: FieldAccumulator = field(init=False)
    _parts: PartAccumulator = field(init=False)
    _calls: CallAccumulator = field(init=False)

    def __post_init__(self) -> None:
        self._extra, self._parts = FieldAccumulator(self._budget), PartAccumulator(self._budget)
        self._calls = CallAccumulator(self._budget, self._count)

    @property
    def calls(self) -> Sequence[PartialCall]:
        """Return the calls so far, in the order in which they began."""
        return self._calls.calls

    def take(self, choice: dict[str, Any], part: dict[str, Any], *, whole: bool = False) -> str:
        """Take in a choice's delta, or with `whole` its complete message; returns its text. Raises TooLarge."""
        self.finish_reason = _name_in(choice.get("finish_reason")) or self.finish_reason
        self._calls.add(part.get("tool_calls"), whole=whole)
        content, refusal = part.get("content"), refusal_in(part)
        if refusal:
            part = {name: value for name, value in part.items() if name != "refusal"}
        if whole:
            self._extra.add_whole_message(part)
        elif part.keys() - _TOLD_APART:
            self._extra.add_message(part)
        self._parts.add(content, before=self.texts)
        text = content_text(content) or refusal
        if text:
            text = storable_text(text)
            self.texts.append(text)
            self._count(text)
        return text

    @contextmanager
    def asking(self, request: ModelRequest) -> Iterator[ModelRequest]:
        """The request with the time that is left for this step, within a span of the step."""
        self.asked = (request.upstream, request.model)
        named = {"gen_ai.operation.name": "chat", "gen_ai.request.model": request.model}
        span = begin("daybook.model_step", {**named, "daybook.upstream": request.upstream}, parent=self.part_of)
        seconds = max(self.deadline - asyncio.get_running_loop().time(), 0.001)
        failure: Exception | None = None
        try:
            yield replace(request, seconds=seconds, span=span)
            self.asked = request.answered_by
        except Exception as error:
            failure = error
            raise
        finally:
            span.note(
                {
                    "gen_ai.response.model": self.model,
                    "gen_ai.usage.input_tokens": int(self.usage.get("prompt_tokens") or 0),
                    "gen_ai.usage.output_tokens": int(self.usage.get("completion_tokens") or 0),
                }
            )
            span.end(failure)

    def result(self) -> ModelStepResult:
        """Return what the step came to."""
        upstream, model = self.asked
        named = self._calls.by_id()
        parts = self._parts.parts()
        fields = {**self._extra.result(), **({"content": parts} if parts else {})}
        return ModelStepResult(
            text="".join(self.texts),
            calls=[
                StepCall(id=call_id, name=call.name, arguments="".join(call.arguments), custom=call.custom)
                for call_id, call in named.items()
            ],
            usage=self.usage,
            model=self.model,
            finish_reason=self.finish_reason or "stop",
            was_ended=bool(self.finish_reason),
            choice=self.choice,
            around=self.around,
            kept=KeptFields(
                upstream=upstream,
                model=model,
                fields=fields,
                calls={call_id: {**call.extra.result(), "id": call.id} for call_id, call in named.items()},
            ),
        )

    def _count(self, text: str) -> None:
        self.bytes_left -= len(text.encode())
        if self.bytes_left < 0:
            raise TooLarge("The answer exceeds the gateway's size limit and was cut off.")


def step_use(request: ModelRequest, step: ModelStep) -> ModelUse | None:
    """Return what a step took of its model, also one that was cut off; None for one that was not answered."""
    if not (step.usage or step.texts or step.calls or step.choice):
        return None
    said = "".join((*step.texts, *(piece for call in step.calls for piece in call.arguments)))
    _, asked = request.answered_by
    return ModelUse(asked=asked, model=step.model, usage=step.usage, given=request.messages, said=said)


async def stream_step(request: ModelRequest, step: ModelStep) -> AsyncGenerator[tuple[dict[str, Any], str]]:
    """Stream a step: `(choice, text)` for each chunk that says something. Raises DomainErrors."""
    with step.asking(request) as asked:
        async with aclosing(model().stream(asked)) as stream:
            async for chunk in stream:
                around = {name: value for name, value in chunk.items() if name not in _KNOWN and value is not None}
                if around and not around.items() <= step.around.items():
                    step.around = {**step.around, **around}
                step.model = _name_in(chunk.get("model")) or step.model
                step.usage = usage_of(chunk) or step.usage
                for choice in choices_of(chunk):
                    given = choice.get("delta")
                    delta = given if isinstance(given, dict) else {}
                    if choice.get("index"):
                        yield choice, ""  # further choices that a client asked for are its own affair
                        continue
                    text = step.take(choice, delta)
                    if choice.get("finish_reason"):
                        step.choice = choice
                    if text or says_more(choice) or delta.get("tool_calls") or reasoning_in(delta):
                        yield choice, text


async def complete_step(request: ModelRequest, step: ModelStep) -> AsyncGenerator[tuple[dict[str, Any], str]]:
    """Take a step in one piece, for clients that get the upstream's whole choices, of which a stream could lose
    something. Until the answer begins only the request's own deadline limits it. Raises DomainErrors."""
    with step.asking(request) as asked:
        answer = await model().complete(asked)
        step.model = _name_in(answer.get("model"))
        step.usage = usage_of(answer)
    step.choice = answer
    choice = answer["choices"][0]
    if not isinstance(choice, dict):
        raise UpstreamUnreachable("The model server's answer contains no choice.")
    message = choice.get("message")
    yield choice, step.take(choice, message if isinstance(message, dict) else {}, whole=True)


def says_more(choice: Mapping[str, Any]) -> bool:
    """Return True if a choice of a stream holds more than text and tool calls: reasoning, a refusal, audio, …"""
    delta = choice.get("delta")
    beside = isinstance(delta, dict) and any(value for key, value in delta.items() if key not in _TOLD_APART)
    return beside or bool(choice.get("logprobs"))


def _name_in(value: Any) -> str:
    """Return a name that an upstream gave, as it can be stored; "" for anything but text."""
    return storable_text(value)[:_LONGEST_NAME] if isinstance(value, str) else ""


def refusal_in(part: Mapping[str, Any]) -> str:
    """Return what a message or delta says in its field for refusals, where it has no content: then it is the answer."""
    refusal = part.get("refusal")
    return refusal if isinstance(refusal, str) and not content_text(part.get("content")) else ""
