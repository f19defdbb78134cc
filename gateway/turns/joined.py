"""Turns without an engine: a repeated request that waits for the run opened by the first one, in this or another
process, and a `/memory` command. The APIs treat them like any other turn."""

import asyncio
from collections.abc import AsyncGenerator

from gateway.errors import RunStopped
from gateway.limits.watchers import watching
from gateway.messages import PARAGRAPH
from gateway.models import Run
from gateway.runs.active import RECHECK_SECONDS, without_access
from gateway.runs.context import TurnContext
from gateway.runs.joined import ANSWERED_STATES, RunResult, run_result
from gateway.turns.engine import Turn
from gateway.turns.events import Delta, Done, Event, TurnOptions
from gateway.upstream.usage import usage_since
from memories.database.access import in_read_thread
from memories.errors import Unauthorized

_POLL_SECONDS = 0.25


class JoinedTurn:
    """Delivers the answer of a run to another request; `result` is given if the run has ended. Leaving `events` early
    does not stop the run."""

    def __init__(self, context: TurnContext, options: TurnOptions, result: RunResult | None = None) -> None:
        self.context = context
        self.options = options
        self._result = result

    async def events(self) -> AsyncGenerator[Event]:
        """Yield the whole answer in one Delta, then Done. Raise RunStopped, the error of a run that failed, NotFound,
        RateLimited if too many requests of its owner wait, or Unauthorized if the key of this request is revoked while
        it waits."""
        try:
            if (result := self._result) is None:
                with watching(self.context.owner_id):
                    result = await self._wait()
        finally:
            self.context.allowance.leave()
        if result.state not in ANSWERED_STATES:
            raise self._failure(result)
        pieces = [{"index": number, **call} for number, call in enumerate(result.client_calls)]
        # Earlier requests got the text from before the run was resumed.
        text = result.output.text[len(self.context.earlier.text) :].removeprefix(PARAGRAPH)
        yield Delta(text, {}, {}, pieces)
        yield self._done(result, text)

    async def _wait(self) -> RunResult:
        clock = asyncio.get_running_loop().time
        requester, checked = (self.context.owner_id, self.context.allowance.key_id), clock()
        while True:
            result = await in_read_thread(run_result, self.context.owner_id, self.context.run_id)
            if result is not None:
                return result
            await asyncio.sleep(_POLL_SECONDS)
            if clock() - checked >= RECHECK_SECONDS:
                checked = clock()
                if await in_read_thread(without_access, {requester}):
                    raise Unauthorized("This API key has expired or was revoked.")

    def _done(self, result: RunResult, text: str) -> Done:
        waits = result.state == Run.State.AWAITING_CLIENT_TOOLS
        whole = {"choices": [{"index": 0, "message": {"role": "assistant"}}]}
        return Done(
            state=result.state,
            output=result.output,
            new_text=text,
            new_usage=usage_since(result.output.usage, self.context.earlier.usage),
            changes=result.changes,
            turns_since_review=result.turns_since_review,
            client_calls=result.client_calls,
            choice={} if self.options.stream else whole,
            around={},
            finish_reason="tool_calls" if waits else str(result.output.trace.get("finish_reason") or "stop"),
        )

    def _failure(self, result: RunResult) -> Exception:
        run_id = str(self.context.run_id)
        if result.state == Run.State.STOPPED:
            return RunStopped("The same request was being answered before, and was stopped.", run_id=run_id)
        failure = result.failure()
        failure.details["run_id"] = run_id
        return failure


AnyTurn = Turn | JoinedTurn
