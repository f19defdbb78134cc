"""One model step, collected from the upstream's chunks or whole answer. Text is passed on as it arrives;
gateway.upstream.calls collects the tool calls. Turns make several steps; `ask` makes a single one for keywords,
compaction, reviews, consolidation and trials of an agent."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from django.conf import settings

from gateway.limits.spending import ModelUse
from gateway.messages import content_text
from gateway.telemetry import NOTHING, Span, begin
from gateway.upstream import ModelRequest, ModelTarget, model
from gateway.upstream.answer import choices_of, max_body_bytes
from gateway.upstream.calls import PartialCall, StepCall
from gateway.upstream.collected import MessageAccumulator
from gateway.upstream.custom_tools import custom_names
from gateway.upstream.kept import KeptFields, SizeBudget, with_kept
from gateway.upstream.reasoning import ThoughtInText, reasoning_in
from gateway.upstream.usage import newer_usage, usage_of
from memories.storable import storable_text

ENDED = frozenset({"stop", "tool_calls"})
"""Finish reasons of a step that ended by itself."""
MAX_AROUND = 50
"""Top-level fields of a stream that are passed on: they are repeated with every piece of the answer."""
_MAX_NAME = 200  # length of Run.model
_MESSAGE_FIELDS = frozenset({"role", "tool_calls", "content"})
_IN_CHUNK = frozenset({"id", "object", "created", "model", "choices", "usage", "obfuscation"})
_NO_IDS: Mapping[str, str] = {}
_NO_TEXT: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStepResult:
    text: str
    calls: list[StepCall]
    usage: dict[str, Any]
    model: str
    finish_reason: str
    refused: int  # the number of characters at the end of the text that are the model's refusal
    was_ended: bool  # the server sent a finish reason
    choice: dict[str, Any]  # the upstream's whole answer, or the choice that ended its stream
    around: Mapping[str, Any]  # other top-level fields of a stream: service_tier, system_fingerprint, …
    kept: KeptFields  # the message's fields other than text and calls

    @property
    def visible_text(self) -> str:
        """The text without a thought that its stream did not open, which is only known at its end."""
        return str(ThoughtInText().moved({"content": self.text}, last=True)["content"])

    def message(self, ids: Mapping[str, str] = _NO_IDS, text_before: Mapping[str, int] = _NO_TEXT) -> dict[str, Any]:
        """Return the step as an assistant message, with its calls in the model's order. `ids` are the client's call ids
        by the model's, `text_before` the number of characters that the client got before each of its calls."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.calls:
            message["tool_calls"] = [replace(call, id=ids.get(call.id, call.id)).as_json() for call in self.calls]
        calls = {ids.get(call_id, call_id): fields for call_id, fields in self.kept.calls.items()}
        is_last = all(length >= len(self.text) for length in text_before.values())
        return with_kept(message, replace(self.kept, calls=calls, text_before={} if is_last else dict(text_before)))


@dataclass(slots=True, kw_only=True)
class ModelStep:
    """A model step in progress. `deadline` is in the event loop's time; `bytes_left` limits its text and tool calls;
    `taken_ids` are those of the run's earlier calls."""

    deadline: float
    bytes_left: int
    taken_ids: frozenset[str] = frozenset()
    usage: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    finish_reason: str = ""
    refused: int = 0
    choice: dict[str, Any] = field(default_factory=dict)
    around: Mapping[str, Any] = field(default_factory=dict)
    answered_by: tuple[str, str] = ("", "")  # upstream and model
    part_of: Span = NOTHING
    thought: ThoughtInText = field(default_factory=ThoughtInText)
    _message: MessageAccumulator = field(init=False)
    _further: SizeBudget = field(init=False)

    def __post_init__(self) -> None:
        self._further = SizeBudget(max_body_bytes())
        self._message = MessageAccumulator(SizeBudget(max_body_bytes()), SizeBudget(self.bytes_left).spend)

    @property
    def texts(self) -> Sequence[str]:
        """The pieces of the text so far."""
        return self._message.texts

    @property
    def calls(self) -> Sequence[PartialCall]:
        """The calls so far, in the order in which they began."""
        return self._message.calls.calls

    def take(self, choice: dict[str, Any], part: dict[str, Any], *, whole: bool = False) -> str:
        """Add a choice's delta or, with `whole`, its complete message, and return the text in it. Raises TooLarge."""
        self.finish_reason = name_in(choice.get("finish_reason")) or self.finish_reason
        refusal = refusal_in(part)
        if refusal:
            part = {name: value for name, value in part.items() if name != "refusal"}
        text = self._message.add(part, whole=whole) or self._message.add_text(refusal)
        if text:
            self.refused = self.refused + len(text) if refusal else 0
        return text

    def count_further(self, choice: dict[str, Any]) -> None:
        """Count the size of another choice than the first, which is only passed on. Raises TooLarge."""
        self._further.spend(str(choice))

    @contextmanager
    def within_span(self, request: ModelRequest) -> Iterator[ModelRequest]:
        """Provide the request with the time left for this step, within a span of the step."""
        self.answered_by = (request.upstream, request.model)
        self.thought = ThoughtInText(self.answered_by, request.parameters)
        self._message.calls.custom_names = custom_names(request.tools)
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": request.model}
        attributes["daybook.upstream"] = request.upstream
        seconds = max(self.deadline - asyncio.get_running_loop().time(), 0.001)
        with begin("daybook.model_step", attributes, parent=self.part_of) as span:
            try:
                yield replace(request, seconds=seconds, span=span)
                self.answered_by = request.answered_by
            finally:
                span.note(
                    {
                        "gen_ai.response.model": self.model,
                        "gen_ai.usage.input_tokens": int(self.usage.get("prompt_tokens") or 0),
                        "gen_ai.usage.output_tokens": int(self.usage.get("completion_tokens") or 0),
                    }
                )

    def result(self) -> ModelStepResult:
        """Return the result of the finished step."""
        upstream, model = self.answered_by
        named = self._message.calls.by_id(self.taken_ids)
        parts = self._message.parts.parts()
        fields = {**self._message.extra.result(), **({"content": parts} if parts else {})}
        if isinstance(audio := fields.get("audio"), dict):
            fields["audio"] = {"id": audio.get("id")}  # OpenAI accepts nothing else of a sound that it made
        return ModelStepResult(
            text="".join(self.texts),
            calls=[
                StepCall(id=call_id, name=call.name, arguments="".join(call.arguments), custom=call.custom)
                for call_id, call in named.items()
            ],
            usage=self.usage,
            model=self.model,
            finish_reason=self.finish_reason or "stop",
            refused=self.refused,
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


def step_use(request: ModelRequest, step: ModelStep) -> ModelUse | None:
    """Return the model use of a step, even if it was cut off; None if the model sent nothing."""
    if not (step.usage or step.texts or step.calls or step.choice):
        return None
    text = "".join((*step.texts, *(piece for call in step.calls for piece in call.arguments)))
    _, requested = request.answered_by
    return ModelUse(requested=requested, model=step.model, usage=step.usage, messages=request.messages, text=text)


async def stream_step(request: ModelRequest, step: ModelStep) -> AsyncGenerator[tuple[dict[str, Any], str]]:
    """Stream a step and yield `(choice, text)` for each chunk with content. Raises DomainErrors."""
    with step.within_span(request) as timed:
        async with aclosing(model().stream(timed)) as stream:
            async for chunk in stream:
                around = {name: value for name, value in chunk.items() if name not in _IN_CHUNK and value is not None}
                if around and not around.items() <= step.around.items():
                    step.around = dict(islice({**step.around, **around}.items(), MAX_AROUND))
                step.model = name_in(chunk.get("model")) or step.model
                step.usage = newer_usage(step.usage, usage_of(chunk))
                for choice in choices_of(chunk):
                    delta: dict[str, Any] = choice.get("delta") or {}
                    if choice.get("index"):
                        step.count_further(choice)
                        yield choice, ""
                        continue
                    if delta is not (moved := step.thought.moved(delta)):
                        delta = dict(moved)
                        choice = {**choice, "delta": delta}
                    text = step.take(choice, delta)
                    if delta is not (shown := _with_thought_outside(delta, text)):
                        choice = {**choice, "delta": shown}
                    if choice.get("finish_reason"):
                        step.choice = choice
                    if text or has_other_content(choice) or delta.get("tool_calls") or reasoning_in(delta):
                        yield choice, text
        if left := dict(step.thought.moved({}, last=True, cut_off=step.finish_reason not in ENDED)):
            yield {"delta": left}, step.take({}, left)
    step.thought.ended(step.answered_by, "".join(step.texts))


async def complete_step(request: ModelRequest, step: ModelStep) -> AsyncGenerator[tuple[dict[str, Any], str]]:
    """Request a step without streaming, for clients that receive the upstream's whole choices, since a stream may omit
    fields. Until the answer begins only the request's own deadline applies. Raises DomainErrors."""
    with step.within_span(request) as timed:
        answer = await model().complete(timed)
        step.model = name_in(answer.get("model"))
        step.usage = usage_of(answer)
    step.choice = answer
    choice = answer["choices"][0]
    message = dict(step.thought.moved(choice.get("message") or {}, last=True))
    text = step.take(choice, message, whole=True)
    choice["message"] = _with_thought_outside(message, text)
    yield choice, text


async def ask(
    target: ModelTarget,
    messages: Sequence[dict[str, Any]],
    *,
    seconds: float,
    tools: Sequence[dict[str, Any]] = (),
    parameters: dict[str, Any] | None = None,
    owner: str = "",
    request_id: str = "",
    answer_bytes: int = 0,
) -> ModelStepResult:
    """Return one answer of a model, outside a turn. It is streamed from the upstream, so that a long answer does not
    exceed the limit of silence. `seconds` limits the total time, including fall-backs; `answer_bytes` the answer, with
    0 for DAYBOOK_ANSWER_BYTES; `owner` is the person the call is for.

    Raises DomainErrors: UpstreamTimeout when the time is over, UpstreamSilent after too long a silence, RateLimited,
    TooLarge and the upstream's other errors."""
    request = ModelRequest(
        upstream=target.upstream,
        model=target.model,
        fallbacks=target.fallbacks,
        messages=tuple(messages),
        tools=tuple(tools),
        parameters=parameters or {},
        owner=owner,
        request_id=request_id,
    )
    deadline = asyncio.get_running_loop().time() + seconds
    step = ModelStep(deadline=deadline, bytes_left=answer_bytes or settings.ANSWER_BYTES)
    async for _ in stream_step(request, step):
        pass
    return step.result()


def _with_thought_outside(part: dict[str, Any], text: str) -> dict[str, Any]:
    """Return a delta or a message with this text. A thought among the parts of its content (Mistral) is moved to
    `reasoning_content`, where clients look for it."""
    if not isinstance(part.get("content"), list) or not (thought := reasoning_in(part)):
        return part
    return {**part, "content": text, "reasoning_content": thought}


def has_other_content(choice: Mapping[str, Any]) -> bool:
    """Return True if a choice contains more than text and tool calls: reasoning, a refusal, audio, …"""
    part = choice.get("delta") or choice.get("message") or {}
    return bool(choice.get("logprobs")) or any(value for key, value in part.items() if key not in _MESSAGE_FIELDS)


def name_in(value: Any) -> str:
    """Return an upstream's name for something in storable form; "" for anything but text."""
    return storable_text(value)[:_MAX_NAME] if isinstance(value, str) else ""


def refusal_in(part: Mapping[str, Any]) -> str:
    """Return the `refusal` of a message or delta without content, which then is the answer; "" otherwise."""
    refusal = part.get("refusal")
    return refusal if isinstance(refusal, str) and not content_text(part.get("content")) else ""
