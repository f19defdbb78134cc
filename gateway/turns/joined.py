"""Turns that no engine executes: a request that waits for the answer of a run which the same request opened before, in
this process or another, and a command. The APIs treat them like any other turn."""

import asyncio
from collections.abc import AsyncGenerator

from gateway.errors import RunStopped, UpstreamUnreachable
from gateway.models import Run
from gateway.runs.access import LOOK_SECONDS, refused_now
from gateway.runs.context import TurnContext
from gateway.runs.joined import SAID, Ended, ended
from gateway.turns.engine import Turn
from gateway.turns.events import Delta, Done, Event, TurnOptions
from gateway.upstream.usage import usage_since
from memories.database.access import in_read_thread
from memories.errors import Unauthorized

_POLL_SECONDS = 0.25


class JoinedTurn:
    """The answer of a run for one more request. `ended` is given if the run is over. Leaving it early does not stop the
    run."""

    def __init__(self, context: TurnContext, options: TurnOptions, ended: Ended | None = None) -> None:
        self.context = context
        self.options = options
        self._ended = ended

    async def events(self) -> AsyncGenerator[Event]:
        """Yield the whole answer in one Delta, then Done. Raises RunStopped, UpstreamUnreachable, NotFound,
        and Unauthorized where the key of this request is revoked meanwhile."""
        try:
            found = self._ended or await self._end()
        finally:
            self.context.allowance.leave()
        if found.state not in SAID:
            raise self._failure(found)
        pieces = [{"index": number, **call} for number, call in enumerate(found.client_calls)]
        yield Delta(found.output.text, {}, {}, pieces)
        yield self._done(found)

    async def _end(self) -> Ended:
        clock = asyncio.get_running_loop().time
        asker, looked = (self.context.owner_id, self.context.allowance.key_id), clock()
        while True:
            found = await in_read_thread(ended, self.context.owner_id, self.context.run_id)
            if found is not None:
                return found
            await asyncio.sleep(_POLL_SECONDS)
            if clock() - looked >= LOOK_SECONDS:
                looked = clock()
                if await in_read_thread(refused_now, {asker}):
                    raise Unauthorized("This API key has expired or was revoked.")

    def _done(self, found: Ended) -> Done:
        waits = found.state == Run.State.AWAITING_CLIENT_TOOLS
        whole = {"choices": [{"index": 0, "message": {"role": "assistant"}}]}
        return Done(
            state=found.state,
            output=found.output,
            new_text=found.output.text,
            new_usage=usage_since(found.output.usage, {}),
            changes=found.changes,
            turns_since_review=found.turns_since_review,
            client_calls=found.client_calls,
            choice={} if self.options.stream else whole,
            around={},
            finish_reason="tool_calls" if waits else str(found.output.trace.get("finish_reason") or "stop"),
        )

    def _failure(self, found: Ended) -> Exception:
        run_id = str(self.context.run_id)
        if found.state == Run.State.STOPPED:
            return RunStopped("The same request was being answered before, and was stopped.", run_id=run_id)
        return UpstreamUnreachable(str(found.error.get("message") or "The model server gave no answer."), run_id=run_id)


AnyTurn = Turn | JoinedTurn


def turn_of(context: TurnContext, options: TurnOptions) -> AnyTurn:
    """Return the turn for an opened context."""
    return JoinedTurn(context, options) if context.joined else Turn(context, options)
