"""The turn engine, which executes a run from the user message to the final answer. It builds the request with
`injection`, streams model steps, runs our tools, and stores the result (gateway.runs.closing) before the last event."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection, Sequence
from dataclasses import replace
from typing import Any

from django.conf import settings

from gateway import telemetry
from gateway.agents.model_choice import agent_target
from gateway.agents.settings import with_defaults
from gateway.compaction import fit_context
from gateway.errors import RunSuperseded, TooManySteps, public_error
from gateway.limits.spending import ModelUse
from gateway.messages import ChatMessage
from gateway.metrics import TurnClock
from gateway.models import Run
from gateway.runs import active, closing
from gateway.runs.client_tools import ClientCalls
from gateway.runs.context import TurnContext
from gateway.runs.instructions import hashes_gather, instructions_of
from gateway.runs.utterances import SEARCHED
from gateway.steps import (
    ENDED,
    ModelStep,
    ModelStepResult,
    complete_step,
    has_other_content,
    refusal_in,
    step_use,
    stream_step,
)
from gateway.tool_calls import calls_in
from gateway.turns.events import Delta, Done, Event, Recalled, ToolUsed, TurnOptions
from gateway.turns.evidence import note_foreign_texts
from gateway.turns.injection import build_messages, notify_providers, prepare, stored_injection
from gateway.turns.output import AnswerText, RunAttempts, Thinking, note_answer, note_request
from gateway.turns.own_tools import OwnTools
from gateway.turns.written_calls import WrittenCalls
from gateway.upstream import ModelRequest
from gateway.upstream.calls import StepCall
from gateway.upstream.usage import add_usage, usage_since
from memories.errors import DomainError
from memories.recall.two_lanes import Injection

logger = logging.getLogger("daybook.turns")


class Turn:
    """The execution of one open run. Iterate `events` once; leaving the iteration early stops the run."""

    def __init__(self, context: TurnContext, options: TurnOptions) -> None:
        self.context = context
        self.options = options
        self.output = context.output_so_far()
        self._text = AnswerText(self.output)
        self._active: active.ActiveRun  # from the start of `events` on
        self._injection = Injection()
        self._server_parses = False  # whether a step had calls that are not in its text
        self._stored = False
        self._uncounted: tuple[ModelRequest, ModelStep] | None = None  # the step whose usage is not counted yet
        self._failure: DomainError | None = None
        self._clock = TurnClock(context.earlier.usage)
        self._attempts = RunAttempts(context.earlier.trace)
        self._thinking = Thinking(self.output)
        self._deadline = asyncio.get_running_loop().time() + settings.RUN_SECONDS
        attributes = {"daybook.agent": context.agent.name, "daybook.run": str(context.run_id)}
        self._span = telemetry.begin("daybook.turn", {**attributes, "daybook.turn": context.turn})
        self._tools = OwnTools(context, options, self.output, self._span)

    async def events(self) -> AsyncGenerator[Event]:
        """Yield events as they happen, then one Done after the closing transaction has committed.

        Raise a DomainError once the run is closed as failed, and RunStopped or Restarting once it is stopped by anyone
        but its client. If the generator is cancelled or closed early, the run is closed as stopped."""
        self._active = active.register(self.context, self.output)
        try:
            await asyncio.sleep(0)  # a stop requested before the first step takes effect here
            self._injection = await self._prepare()
            if self._injection.recalled:
                yield Recalled(self._injection)
            messages = build_messages(self.context, self._injection)
            async for event in self._run_steps(messages):
                yield event
        except asyncio.CancelledError:
            if (stopped := self._active.stop_error()) is None:
                raise
            await self._close_stopped()
            raise stopped from None
        except DomainError as error:
            await self._close_failed(error)
            raise
        except Exception as error:
            failure = public_error(error, what=f"run {self.context.run_id}")
            await self._close_failed(failure)
            raise failure from error
        finally:
            try:
                if not self._active.closing:
                    await self._close_stopped()
            finally:
                active.unregister(self._active)
                self.context.allowance.leave()
                self._span.end(self._failure)

    async def _prepare(self) -> Injection:
        with telemetry.span("daybook.recall", {}, parent=self._span) as recalling:
            self.context, fitted = await fit_context(self.context)  # first: recall searches what leaves the window
            injection = await prepare(self.context, read_tool=self._tools.read_name)
            recalling.note({"daybook.recalled": len(injection.recalled)})
        if self.context.injected is None:  # a resumed run already has this trace and this usage
            self.output.trace |= {"recall": injection.trace, **fitted}
            self.output.usage = add_usage(self.output.usage, injection.usage)
            if injection.usage:
                model = agent_target(self.context.agent.settings).model
                self.output.uses.append(ModelUse(requested=model, usage=injection.usage))
        return injection

    async def _run_steps(self, messages: list[dict[str, Any]]) -> AsyncGenerator[Event]:
        steps_before = self.output.trace.get("steps", 0)
        note_foreign_texts(self.context, self.output.trace, self._tools.client_names)
        if self.options.searched:
            self.output.trace[SEARCHED] = True
        self.output.instructions = instructions_of(self.context, self.options.client_tools, self.options.parameters)
        for number in range(1, settings.RUN_STEPS + 1):
            last = number == settings.RUN_STEPS
            request = self._request(messages, () if last else self._tools.definitions)
            note_request(self.output.trace, request, request.upstream, request.model)
            step = self._new_step()
            self.output.trace["steps"] = steps_before + number
            self._uncounted = request, step
            tracker = self._client_calls()
            written = self._written_calls(() if last else self._tools.names, messages)
            async for delta in self._deltas(request, step, tracker, written):
                yield delta
            result = step.result()
            if step.answered_by != (request.upstream, request.model):
                note_request(self.output.trace, request, *step.answered_by)
            self._count_step()
            self.output.model = result.model or self.output.model
            self.output.usage = add_usage(self.output.usage, result.usage)
            client_calls = tracker.by_model_id(step.calls, result.calls)
            self._server_parses = self._server_parses or bool(result.calls)
            result = written.applied(result)
            if last and not client_calls and result.text.strip():  # its text is the answer, whatever it calls
                result = replace(result, calls=[])
            other_calls = [call for call in result.calls if call.id not in client_calls]
            own_calls, results = await self._tools.run(other_calls, self.context, self._injection)
            for call in own_calls:
                yield ToolUsed(call.name, call.arguments, results[call.id])
            ids = {call_id: call.id for call_id, call in client_calls.items()}
            self._record_step(messages, result, ids, results)
            if client_calls or not results:
                yield await self._finish(result, list(client_calls.values()))
                return
        raise TooManySteps(
            f"The model made too many steps ({settings.RUN_STEPS}) without an answer.",
            reason="too_many_steps",
            steps=settings.RUN_STEPS,
        )

    def _new_step(self) -> ModelStep:
        room = settings.ANSWER_BYTES - len(self.output.text.encode())
        earlier = frozenset(call["id"] for message in self._made for call in calls_in(message))
        return ModelStep(deadline=self._deadline, bytes_left=room, taken_ids=earlier, part_of=self._span)

    def _count_step(self) -> None:
        """Add the usage of the last step, even if the step was cut off."""
        if self._uncounted is not None and (use := step_use(*self._uncounted)):
            self.output.uses.append(use)
        self._uncounted = None

    async def _deltas(
        self, request: ModelRequest, step: ModelStep, tracker: ClientCalls, written: WrittenCalls
    ) -> AsyncGenerator[Delta]:
        """Yield what the client receives of a step: text, pieces of its tool calls, and the upstream's other fields."""
        async for choice, text in stream_step(request, step) if self.options.stream else complete_step(request, step):
            if not choice.get("index"):
                self._thinking.take(choice, has_output=bool(text or step.calls))
            note_answer(self.output.trace, choice, step.around or step.choice)
            pieces = tracker.new_pieces(step.calls)
            if text and self.options.stream:
                self._clock.text_arrived()
            if not refusal_in(choice.get("delta") or choice.get("message") or {}):
                text = written.take(text, parsed=bool(step.calls))
            choice = written.with_logprobs(choice)
            if text or pieces or choice.get("index") or has_other_content(choice):
                yield Delta(self._text.append(text, pieces), choice, step.around, pieces)
        self._thinking.pause()
        text, pieces = written.end(), tracker.new_pieces(step.calls, ended=True)
        if text or pieces:
            yield Delta(self._text.append(text, pieces), written.with_logprobs({}), step.around, pieces)

    def _written_calls(self, own_names: Collection[str], messages: Sequence[ChatMessage]) -> WrittenCalls:
        # A server that has parsed a call parses all of them: others in its text are quotations.
        sought = () if self._server_parses else own_names
        return WrittenCalls(sought, f"{self.context.run_id}:{self.output.trace['steps']}", messages)

    @property
    def _made(self) -> Sequence[ChatMessage]:
        """The run's messages so far, of which clients leave out some."""
        return (*self.context.stored, *self.output.messages)

    def _client_calls(self) -> ClientCalls:
        client_names = self._tools.client_names if self.options.client_tools else None
        start = sum(len(calls_in(message)) for message in self._made)  # a number that no earlier call has
        return ClientCalls(self.context.run_id, start=start, client_names=client_names, own=self._tools.names)

    def _request(self, messages: list[dict[str, Any]], tools: tuple[dict[str, Any], ...]) -> ModelRequest:
        agent = self.context.agent.settings
        target = self._attempts.prefer(agent_target(agent))
        return ModelRequest(
            upstream=target.upstream,
            model=target.model,
            fallbacks=target.fallbacks,
            messages=tuple(messages),
            tools=(*self.options.client_tools, *tools),
            parameters=with_defaults(self.options.parameters, agent.parameters),
            request_id=self.context.request_id,
            owner=str(self.context.owner_id),
            functions_only=self.options.functions_only,
            optional_tools=frozenset(tool["function"]["name"] for tool in tools),
            log=self._attempts.next_log(),
        )

    def _record_step(
        self, messages: list[dict[str, Any]], result: ModelStepResult, ids: dict[str, str], results: dict[str, str]
    ) -> None:
        """Append a step to the request's messages and to the output. `ids` are the client's call ids by the model's."""
        step: list[dict[str, Any]] = []
        if result.text or result.calls:
            step.append(result.message(ids, self._text.before_calls))
        step.extend(
            {"role": "tool", "tool_call_id": call.id, "content": results[call.id]}
            for call in result.calls
            if call.id in results
        )
        messages.extend(step)
        self.output.messages.extend(step)
        self._text.step_recorded()

    async def _finish(self, result: ModelStepResult, client_calls: Sequence[StepCall]) -> Done:
        state = Run.State.COMPLETED
        if client_calls:
            state = Run.State.AWAITING_CLIENT_TOOLS
            self.output.injected = stored_injection(self.context, self._injection, self._tools.read_name)
        elif result.finish_reason not in ENDED:
            self.output.trace["finish_reason"] = result.finish_reason
        if result.refused:
            self.output.trace["refused"] = result.refused
        turns_since_review = await asyncio.shield(self._close(state))
        if state == Run.State.COMPLETED:
            notify_providers(self.context, self.output.text, self.output.trace)
        # Only the native API lists the changes.
        changes = await self._tools.all_changes(self.context) if self.context.is_native else []
        return Done(
            state=state,
            output=self.output,
            new_text=self._text.of_request,
            new_usage=usage_since(self.output.usage, self.context.earlier.usage),
            changes=changes,
            turns_since_review=turns_since_review,
            client_calls=[call.as_json() for call in client_calls],
            choice=result.choice,
            around=result.around,
            finish_reason=result.finish_reason,
        )

    async def _close_stopped(self) -> None:
        """Close a cancelled or abandoned run and keep its text so far, even if this call is cancelled too."""
        if rest := self._text.unrecorded:
            self.output.messages.append({"role": "assistant", "content": rest})
        by = self._active.stopped_by or active.StoppedBy.CLIENT
        self.output.trace = {**self.output.trace, "stopped_by": by.value}
        try:
            await asyncio.shield(self._close(Run.State.STOPPED))
        except RunSuperseded:
            logger.info("run %s was ended by another process before it was stopped here", self.context.run_id)

    async def _close_failed(self, error: DomainError) -> None:
        """Close a failed run. List the memory changes of its tools in the error, so that they can be undone."""
        self._failure = error
        # An error after the answer was stored does not undo it, and a superseded run is closed already.
        if not (self._stored or isinstance(error, RunSuperseded)):
            self.output.messages = []
            try:
                await asyncio.shield(self._close(Run.State.FAILED, error.as_json()["error"]))
            except RunSuperseded:
                logger.warning("run %s was given up before it failed", self.context.run_id)
        if changes := await self._tools.all_changes(self.context):
            error.details = {**error.details, "memory_changes": changes}

    async def _close(self, state: Run.State, error: dict[str, Any] | None = None) -> int:
        self._active.closing = True
        self._clock.run_closed(state, self.output.usage)
        self._count_step()
        self._span.note({"daybook.state": state.value, "daybook.steps": int(self.output.trace.get("steps", 0))})
        self.output.trace = self._attempts.with_attempts(self.output.trace)
        if self.context.injected is None:  # done last: explaining the matches costs half as much as a search
            self.output.recalled = [item.as_json() for item in self._injection.recalled]
        await hashes_gather(self.context, self.output)
        turns_since_review = await active.in_closing_thread(
            closing.close, self.context, self.output, state=state, error=error
        )
        self._stored = True
        self.context.allowance.leave()  # before the client learns of the end and sends its next request
        return turns_since_review
