"""The turn engine: one user message and all that follows until the final answer. It asks `injection` what to send,
streams steps of the model, runs our tools, and has gateway.runs.closing store it before the last event."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection, Sequence
from typing import Any

from django.conf import settings

from gateway import telemetry
from gateway.agents.model_choice import agent_target
from gateway.agents.parameters import with_defaults
from gateway.compaction import fit
from gateway.errors import RunSuperseded, TooManySteps, as_told
from gateway.limits.spending import ModelUse
from gateway.metrics import TurnClock
from gateway.models import Run
from gateway.runs import closing, held
from gateway.runs.attempts import RunAttempts
from gateway.runs.client_tools import ClientCalls
from gateway.runs.context import TurnContext
from gateway.steps import ModelStep, ModelStepResult, complete_step, says_more, step_use, stream_step
from gateway.turns.events import Delta, Done, Event, Recalled, ToolUsed, TurnOptions
from gateway.turns.evidence import reads_untrusted
from gateway.turns.injection import build_messages, kept, prepare, provider_scope
from gateway.turns.own_tools import OwnTools
from gateway.turns.thinking import Thinking
from gateway.upstream import ModelRequest
from gateway.upstream.calls import StepCall
from gateway.upstream.usage import add_usage, usage_since
from memories import tools as memory_tools
from memories.errors import DomainError
from memories.providers import record_later
from memories.recall.two_lanes import Injection, contained

logger = logging.getLogger("daybook.turns")

_PARAGRAPH = "\n\n"
_USUAL_ENDS = frozenset({"stop", "tool_calls"})


class Turn:
    """The execution of one open run. `events` is iterated once; leaving it early stops the run."""

    def __init__(self, context: TurnContext, options: TurnOptions) -> None:
        self.context = context
        self.options = options
        self.output = context.output_so_far()
        self._noted = len(self.output.text)  # how much of the text is in output.messages already
        self._new_from = len(self.output.text)  # where the text of this request begins
        self._held: held.HeldRun | None = None
        self._tools = OwnTools(context, options)
        self._injection = Injection()
        self._closed = False
        self._stored = False
        self._asked: tuple[ModelRequest, ModelStep] | None = None  # the step that is not counted yet
        self._failure: DomainError | None = None
        self._clock = TurnClock(context.earlier.usage)
        self._attempts = RunAttempts(context.earlier.trace)
        self._thinking = Thinking(self.output)
        self._deadline = asyncio.get_running_loop().time() + settings.RUN_SECONDS
        named = {"daybook.agent": context.agent.name, "daybook.run": str(context.run_id)}
        self._span = telemetry.begin("daybook.turn", {**named, "daybook.turn": context.turn})

    async def events(self) -> AsyncGenerator[Event]:
        """Deltas and notes as they happen, then one Done, after the closing commit.

        Raises DomainErrors after the run was closed as failed, RunStopped and Restarting after it was stopped by
        somebody else than its client. Cancelled or left early, it closes as stopped."""
        self._held = mine = held.hold(self.context, self.output)
        try:
            await asyncio.sleep(0)  # a stop that came before the first step takes effect here
            self._injection = await self._prepare()
            if self._injection.recalled:
                yield Recalled(self._injection)
            messages = build_messages(self.context, self._injection)
            async for event in self._run_steps(messages):
                yield event
        except asyncio.CancelledError:
            if (told := mine.interrupted()) is None:
                raise
            await self._close_stopped()
            raise told from None
        except DomainError as error:
            await self._close_failed(error)
            raise
        except Exception as error:
            failure = as_told(error, what=f"run {self.context.run_id}")
            await self._close_failed(failure)
            raise failure from error
        finally:
            try:
                if not self._closed:
                    await self._close_stopped()
            finally:
                held.release(mine)
                self.context.allowance.leave()
                self._span.end(self._failure)

    async def _prepare(self) -> Injection:
        with telemetry.span("daybook.recall", {}, parent=self._span) as recalling:
            self.context, fitted = await fit(self.context)  # before recall looks for what has left the window
            injection = await prepare(self.context, read_tool=self._tools.read_name)
            recalling.note({"daybook.recalled": len(injection.recalled)})
        if self.context.injected is None:  # else it was noted, and its tokens counted, when the run opened
            chosen = {"session": self.output.trace["session"]} if "session" in self.output.trace else {}
            self.output.trace = {**chosen, "recall": injection.trace, "steps": 0, **fitted}
            self.output.usage = add_usage(self.output.usage, injection.usage)
            if injection.usage:
                asked = agent_target(self.context.agent.settings).model
                self.output.uses.append(ModelUse(asked=asked, usage=injection.usage))
        return injection

    async def _run_steps(self, messages: list[dict[str, Any]]) -> AsyncGenerator[Event]:
        tools = self._tools.offered(self.context, self.options.parameters)
        ours = {tool["function"]["name"] for tool in tools}
        steps_before = self.output.trace.get("steps", 0)
        if reads_untrusted(self.context.messages, self._tools.clients):
            self.output.trace["untrusted"] = True  # the run read what its client's tools found
        for number in range(1, settings.RUN_STEPS + 1):
            last = number == settings.RUN_STEPS
            request = self._request(messages, () if last else tools)
            room = settings.ANSWER_BYTES - len(self.output.text.encode())
            step = ModelStep(deadline=self._deadline, bytes_left=room, part_of=self._span)
            self.output.trace["steps"] = steps_before + number
            self._asked = request, step
            mine = self._client_calls(ours)
            async for delta in self._deltas(request, step, mine):
                yield delta
            result = step.result()
            self._count_step()
            self.output.model = result.model or self.output.model
            self.output.usage = add_usage(self.output.usage, result.usage)
            client_calls = mine.shown(step.calls, result.calls)
            rest = [call for call in result.calls if call.id not in client_calls]
            own_calls = [call for call in rest if call.name in ours and not call.custom]
            # Where the client has no tools, the model made the name up, and only our result can say so.
            made_up = [call for call in rest if call not in own_calls]
            answers = {call.id: memory_tools.unknown_tool(call) for call in made_up}
            if own_calls:
                answers |= await self._tools.run(own_calls, self.context, self.output, self._injection, self._span)
                for call in own_calls:
                    yield ToolUsed(call.name, call.arguments, answers[call.id])
            names = {call_id: shown.id for call_id, shown in client_calls.items()}
            self._note_step(messages, result, names, answers)
            if client_calls or not answers:
                yield await self._finish(result, list(client_calls.values()))
                return
        raise TooManySteps(
            f"The model made too many steps ({settings.RUN_STEPS}) without an answer.",
            reason="too_many_steps",
            steps=settings.RUN_STEPS,
        )

    def _count_step(self) -> None:
        """Note what the last step took, also where it was cut off."""
        if self._asked is not None and (use := step_use(*self._asked)):
            self.output.uses.append(use)
        self._asked = None

    async def _deltas(self, request: ModelRequest, step: ModelStep, mine: ClientCalls) -> AsyncGenerator[Delta]:
        """Yield what a step says to the client: text, pieces of the client's calls, and what stands beside them."""
        async for choice, text in stream_step(request, step) if self.options.stream else complete_step(request, step):
            if not choice.get("index"):
                self._thinking.take(choice, says=bool(text or step.calls))
            pieces = mine.news(step.calls)
            if text and self.options.stream:
                self._clock.text()
            if text or pieces or choice.get("index") or says_more(choice):
                yield Delta(self._say(text), choice, step.around, pieces)
        self._thinking.pause()
        if pieces := mine.news(step.calls, ended=True):
            yield Delta("", {}, step.around, pieces)

    def _say(self, text: str) -> str:
        """Append a piece of a step's text and return it as it is sent. Texts before and after tools are paragraphs."""
        before, gap = self.output.text, ""
        if text and before and len(before) == self._noted and not (before[-1].isspace() or text[0].isspace()):
            gap = _PARAGRAPH
            self._noted += len(gap)
        self.output.text += gap + text
        if len(before) == self._new_from:  # the text of this request begins here, without a gap before it
            self._new_from += len(gap)
            return text
        return gap + text

    def _client_calls(self, ours: Collection[str]) -> ClientCalls:
        theirs = self._tools.clients if self.options.client_tools else None
        earlier = (*self.context.messages, *self.output.messages)
        start = sum(len(message.get("tool_calls") or ()) for message in earlier)  # a number that none of them has
        return ClientCalls(self.context.run_id, start=start, theirs=theirs, ours=ours)

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

    def _note_step(
        self, messages: list[dict[str, Any]], result: ModelStepResult, names: dict[str, str], answers: dict[str, str]
    ) -> None:
        """Append a step to the request's messages and to what is stored; `names` are the client's ids of its calls."""
        step: list[dict[str, Any]] = []
        if result.text or result.calls:
            step.append(result.message(names))
        step.extend(
            {"role": "tool", "tool_call_id": call.id, "content": answers[call.id]}
            for call in result.calls
            if call.id in answers
        )
        messages.extend(step)
        self.output.messages.extend(step)
        self._noted = len(self.output.text)

    async def _finish(self, result: ModelStepResult, client_calls: Sequence[StepCall]) -> Done:
        state = Run.State.COMPLETED
        if client_calls:
            state = Run.State.AWAITING_CLIENT_TOOLS
            self.output.injected = kept(self.context, self._injection, self._tools.read_name)
        elif result.finish_reason not in _USUAL_ENDS:
            self.output.trace["finish_reason"] = result.finish_reason
        turns_since_review = await asyncio.shield(self._close(state))
        if state == Run.State.COMPLETED:
            self._tell_providers()
        return Done(
            state=state,
            output=self.output,
            new_text=self.output.text[self._new_from :],
            new_usage=usage_since(self.output.usage, self.context.earlier.usage),
            changes=self._tools.changes,
            turns_since_review=turns_since_review,
            client_calls=[call.as_json() for call in client_calls],
            choice=result.choice,
            around=result.around,
            finish_reason=result.finish_reason,
        )

    def _tell_providers(self) -> None:
        with contained("providers", self.output.trace):
            if scope := provider_scope(self.context):
                record_later(
                    scope,
                    user=self.context.user_text,
                    assistant=self.output.text,
                    run_id=self.context.run_id,
                    metadata={"agent": self.context.agent.name, "turn": self.context.turn},
                )

    async def _close_stopped(self) -> None:
        """Close a run that was cancelled or abandoned: its text so far is kept, even if this is cancelled too."""
        if rest := self.output.text[self._noted :]:
            self.output.messages.append({"role": "assistant", "content": rest})
        by = (self._held and self._held.stopped_by) or held.StoppedBy.CLIENT
        self.output.trace = {**self.output.trace, "stopped_by": by.value}
        try:
            await asyncio.shield(self._close(Run.State.STOPPED))
        except RunSuperseded:
            logger.info("run %s was ended by another process before it was stopped here", self.context.run_id)

    async def _close_failed(self, error: DomainError) -> None:
        """Close a run that failed. The error says what its tools wrote to memory, so that it can be undone."""
        self._failure = error
        if not self._stored:  # else the answer is complete; what went wrong after it does not undo it
            self.output.messages = []
            problem = {name: error.as_json()["error"][name] for name in ("code", "message")}
            try:
                await asyncio.shield(self._close(Run.State.FAILED, problem))
            except RunSuperseded:
                logger.warning("run %s was given up before it failed", self.context.run_id)
        if changes := await self._tools.all_changes(self.context, self.output.trace):
            error.details = {**error.details, "memory_changes": changes}

    async def _close(self, state: Run.State, error: dict[str, Any] | None = None) -> int:
        self._closed = True
        if self._held is not None:
            self._held.closing = True
        self._clock.closed(state, self.output.usage)
        self._count_step()
        self._span.note({"daybook.state": state.value, "daybook.steps": int(self.output.trace.get("steps", 0))})
        self.output.trace = self._attempts.noted(self.output.trace)
        if self.context.injected is None:  # only now, since the reasons take as long to find as half of a search
            self.output.recalled = [item.as_json() for item in self._injection.recalled]
        turns_since_review = await held.in_closing_thread(
            closing.close, self.context, self.output, state=state, error=error
        )
        self._stored = True
        self.context.allowance.leave()  # before the client hears of the end, and asks again
        return turns_since_review
