"""Runs each native turn in its own task, so that the turn continues when its browser disconnects.

Watchers in the same process receive the task's events; other processes read the text saved in the run's row. The number
of an event is the length of the text so far: `after=N` works in every process, and a reload starts at 0."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError

from gateway.errors import Restarting, RunStopped, public_error
from gateway.models import Run
from gateway.runs import active
from gateway.runs.active import StoppedBy
from gateway.runs.context import TurnContext
from gateway.runs.joined import RunResult
from gateway.runs.session_rows import run_get
from gateway.turns.engine import Turn
from gateway.turns.events import Delta, Done, Recalled, ToolUsed, TurnOptions, done_json, run_json
from memories.database.access import in_read_thread, overloaded
from memories.errors import DomainError, NotFound
from memories.messaging.invalidation import register_cache
from memories.models import Invalidation

logger = logging.getLogger("daybook.live")

LiveEvent = tuple[str, dict[str, Any]]
_NOTHING_RECALLED: LiveEvent = ("recalled", {"recalled": []})


@dataclass(slots=True)
class LiveTurn:
    """A native turn executed in this process."""

    context: TurnContext
    text: str = ""
    reasoning: str = ""
    events: list[tuple[int, LiveEvent]] = field(default_factory=list)  # (length of the text at that moment, event)
    final: LiveEvent | None = None
    failure: DomainError | None = None
    watchers: int = 0
    _left: asyncio.TimerHandle | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _task: "asyncio.Task[None] | None" = None

    def start(self, options: TurnOptions) -> None:
        """Start the task. The turn runs even without watchers."""
        self.text, self.reasoning = self.context.earlier.text, self.context.earlier.reasoning
        _live[self.context.run_id] = self
        self._task = asyncio.create_task(self._run(options), name=f"turn {self.context.run_id}")
        self._unwatched()

    def stop(self, by: StoppedBy = StoppedBy.REQUEST) -> None:
        """Stop the turn and keep its text so far. Safe from any thread."""
        if self._task is not None:
            # Not immediately: the task registers its run in its first step.
            self._task.get_loop().call_soon_threadsafe(active.stop, self.context.run_id, by)

    async def watch(self, after: int) -> AsyncGenerator[tuple[int, LiveEvent]]:
        """Yield `(number, event)` from position `after` of the text on, until the turn is over. Reasoning is sent from
        its beginning; each piece has its position `at`."""
        self.watchers += 1
        if self._left is not None:
            self._left.cancel()
        events_sent, text_sent, reasoning_sent = 0, after, 0
        try:
            while True:
                self._changed.clear()
                if reasoning_sent < len(self.reasoning):
                    at, reasoning_sent = reasoning_sent, len(self.reasoning)
                    yield text_sent, ("reasoning", {"at": at, "text": self.reasoning[at:]})
                while events_sent < len(self.events):
                    at, event = self.events[events_sent]
                    events_sent += 1
                    if at < after:
                        continue
                    if text_sent < at:  # the text before an event is sent before it
                        piece, text_sent = self.text[text_sent:at], at
                        yield text_sent, ("delta", {"text": piece})
                    yield at, event
                if text_sent < len(self.text):
                    piece, text_sent = self.text[text_sent:], len(self.text)
                    yield text_sent, ("delta", {"text": piece})
                if self.final is not None and events_sent == len(self.events) and text_sent >= len(self.text):
                    yield len(self.text), self.final
                    return
                if self.final is None:
                    await self._changed.wait()
        finally:
            self.watchers -= 1
            self._unwatched()

    def _unwatched(self) -> None:
        """If no watcher is left, stop the turn after DETACH_SECONDS unless one returns."""
        if not self.watchers and self.final is None:
            loop = asyncio.get_running_loop()
            self._left = loop.call_later(settings.DETACH_SECONDS, self.stop, StoppedBy.UNWATCHED)

    async def _run(self, options: TurnOptions) -> None:
        try:
            await self._take_events(options)
        except Exception as error:  # noqa: BLE001 - public_error logs unexpected ones; watchers must be told
            self.failure = public_error(error)
            self.final = error_event(self.failure, self.context.run_id)
        finally:
            if self._left is not None:
                self._left.cancel()
            self._changed.set()
            _live.pop(self.context.run_id, None)

    async def _take_events(self, options: TurnOptions) -> None:
        """Collect the turn's events; the last event of a stopped turn comes from its row. Raises what the turn raises,
        and NotFound if it was deleted."""
        try:
            turn = Turn(self.context, options)
            async with aclosing(turn.events()) as events:
                async for event in events:
                    self.text, self.reasoning = turn.output.text, turn.output.reasoning
                    self._take(event)
        except (RunStopped, Restarting):
            self.final = await active.in_closing_thread(self._stored_event)

    def _take(self, event: Delta | Recalled | ToolUsed | Done) -> None:
        if isinstance(event, Recalled):
            items = [item.as_json() | {"content": item.text} for item in event.injection.recalled]
            self.events.append((len(self.text), ("recalled", {"recalled": items})))
        elif isinstance(event, ToolUsed):
            data = {"name": event.name, "arguments": event.arguments, "result": event.result}
            self.events.append((len(self.text), ("tool", data)))
        elif isinstance(event, Done):
            self.final = ("done", done_json(self.context, event))
        self._changed.set()

    def _stored_event(self) -> LiveEvent:
        context = self.context
        return final_event(run_get(context.owner_id, context.session_id, context.run_id))


_live: dict[UUID, LiveTurn] = {}


def forget(forgotten: Invalidation) -> None:
    """Stop the live turns of a deleted session. If a memory was forgotten, remove the recalled memories from the
    owner's live turns; the answers stay in the transcript. Safe from any thread."""
    for turn in list(_live.values()):
        if turn.context.owner_id != forgotten.owner_id or not forgotten.words_are_gone:
            continue
        if forgotten.session_id is None:  # browsers that reconnect do not get them
            turn.events[:] = [(at, _NOTHING_RECALLED if event[0] == "recalled" else event) for at, event in turn.events]
        elif turn.context.session_id == forgotten.session_id:
            turn.stop()


register_cache(forget)


def find(run_id: UUID) -> LiveTurn | None:
    """Return the live turn in this process, or None."""
    return _live.get(run_id)


def error_event(error: DomainError, run_id: UUID) -> LiveEvent:
    """Return the last event of a turn that ended with an error."""
    return "error", error.as_json()["error"] | {"run_id": str(run_id)}


def final_event(row: Run) -> LiveEvent:
    """Return the last event of a finished turn, from its row."""
    if row.state == Run.State.FAILED:
        return error_event(RunResult.of(row).failure(), row.pk)
    return "done", run_json(row)


async def watch_elsewhere(
    owner_id: UUID, session_id: UUID, run_id: UUID, after: int
) -> AsyncGenerator[tuple[int, LiveEvent]]:
    """Yield the events of a turn that runs in another process, or has ended, from its row. While the database is busy,
    there are none."""
    sent = after
    while True:
        try:
            row = await in_read_thread(run_get, owner_id, session_id, run_id)
            final = await in_read_thread(final_event, row) if row.state != Run.State.RUNNING else None
        except NotFound as error:  # deleted meanwhile
            yield sent, error_event(error, run_id)
            return
        except DatabaseError as error:
            if overloaded(error) is None:
                raise
        else:
            if len(row.text) > sent:
                piece, sent = row.text[sent:], len(row.text)
                yield sent, ("delta", {"text": piece})
            if final is not None:
                yield sent, final
                return
        if active.is_ending():
            return  # watchers reconnect to another process
        await asyncio.sleep(active.FLUSH_SECONDS)
