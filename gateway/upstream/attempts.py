"""One model step with everything that may go wrong: it is repeated after faults that are safe to repeat, and passed on
to the next model that the request names. Failing servers are left alone for a while, and requests wait in a queue if a
server takes only so many at once.

All of this happens only until the first piece of the answer was passed on."""

import asyncio
import logging
import math
import random
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.conf import settings

from gateway.errors import UpstreamUnreachable
from gateway.upstream.answer import Chunk, says_something
from gateway.upstream.at_once import AtOnce
from gateway.upstream.breakers import Circuit
from gateway.upstream.fault_classes import CONNECT, RATE, SILENCE, FaultClass, fault_class
from gateway.upstream.faults import retry_after_seconds
from gateway.upstream.request import CHAT, EMBEDDINGS, ModelRequest, ModelTarget
from gateway.upstream.wire import OpenAIModel, is_demo
from memories.errors import DomainError

logger = logging.getLogger("daybook.upstream")

FIRST_PAUSE = 0.5
"""Most seconds before the first repetition; each further one has twice as many."""
LONGEST_REST = 20.0
"""Most seconds that a server may ask for before it is asked again, where nobody else can answer."""
SHORT_REST = 2.0
"""The same, and the longest wait for a place, where another model can answer."""
QUEUE_SECONDS = 30.0
_LONGEST_OPEN = 300.0
_MOST_HELD = 100  # chunks without content before the first with some

outcomes: Counter[tuple[str, str, str]] = Counter()
"""Attempts of this process by upstream, model and fault ("ok" for none), for gateway.metrics."""


def _jitter(most: float) -> float:
    return random.uniform(0, most)  # noqa: S311 - no secret


class Attempts:
    """The model of this process: OpenAIModel with repetitions and fall-backs. Tests give their own clock, in seconds,
    and their own sleep."""

    def __init__(
        self,
        wire: OpenAIModel,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[float], float] = _jitter,
    ) -> None:
        self.wire, self.sleep, self.clock, self.jitter = wire, sleep, clock, jitter
        self.circuits: defaultdict[tuple[str, str], Circuit] = defaultdict(partial(Circuit.of, clock))
        """By upstream and model."""
        self.places: dict[str, AtOnce] = {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk]:
        tries = _Tries(self, request, streamed=True)
        while True:
            async with tries.attempt() as attempt, attempt.place, aclosing(self.wire.stream(attempt.request)) as chunks:
                held: list[Chunk] = []
                async for chunk in chunks:
                    held.append(chunk)
                    if says_something(chunk) or len(held) == _MOST_HELD:
                        break
                attempt.spoke = bool(held)
                for chunk in held:
                    yield chunk
                async for chunk in chunks:
                    yield chunk
                return

    async def complete(self, request: ModelRequest) -> dict[str, Any]:
        tries = _Tries(self, request, streamed=False)
        while True:
            async with tries.attempt() as attempt, attempt.place:
                return await self.wire.complete(attempt.request)

    async def passed(self, request: ModelRequest) -> bytes:
        tries = _Tries(self, request, streamed=False)
        while True:
            async with tries.attempt() as attempt, attempt.place:
                return await self.wire.passed(attempt.request)

    async def close(self) -> None:
        """Close the connections of this loop's clients."""
        await self.wire.close()

    def place(self, upstream: str, owner: str, *, seconds: float) -> AbstractAsyncContextManager[None]:
        """Return a place among the requests to an upstream; one without a limit has room for all."""
        limit = int((settings.DAYBOOK_UPSTREAMS.get(upstream) or {}).get("at_once") or 0)
        if not limit:
            return nullcontext()
        found = self.places.get(upstream)
        if found is None or found.limit != limit:
            found = self.places[upstream] = AtOnce(limit)
        return found.place(owner, seconds=seconds)


@dataclass(slots=True)
class _Attempt:
    """One request to one model, sent while its place is held. `spoke` is set once a piece of the answer was passed
    on."""

    tries: "_Tries"
    target: ModelTarget
    place: AbstractAsyncContextManager[None]
    spoke: bool = False

    @property
    def request(self) -> ModelRequest:
        return self.tries.limited(self.target)


class _Tries:
    """The attempts of one request, in their order."""

    def __init__(self, way: Attempts, request: ModelRequest, *, streamed: bool) -> None:
        self._way, self._request, self._streamed = way, request, streamed
        targets = ModelTarget(request.upstream, request.model, request.fallbacks).all
        # The demo model never replaces a real one: it would hide that an upstream is not configured.
        self._targets = targets[:1] if is_demo() else targets
        self._at = 0
        self._repeats = 0
        self._fault: DomainError | None = None
        self._deadline = way.clock() + (request.seconds or settings.RUN_SECONDS)

    @asynccontextmanager
    async def attempt(self) -> AsyncGenerator[_Attempt]:
        """Make the next attempt. A fault within it is dropped if another attempt may follow, and raised otherwise."""
        target, circuit = self._choose()
        started = self._way.clock()
        wait = min(SHORT_REST if self._others else QUEUE_SECONDS, self._left)
        place = self._way.place(target.upstream, self._request.owner, seconds=wait)
        attempt, probes = _Attempt(self, target, place), circuit.enter()
        told = False
        try:
            yield attempt
        except DomainError as error:
            kind = fault_class(error)
            told = kind.told
            self._note(target, kind.name, started)
            if told:
                circuit.ended(probes, well=not kind.counts, connected=kind is not CONNECT)
            pause = self._pause_after(error, kind, circuit, spoke=attempt.spoke)
            if pause is None:
                raise
            self._fault = error
        else:
            told, pause = True, 0.0
            circuit.ended(probes, well=True, connected=True)
            self._note_answer(target, started)
        finally:
            if not told:
                circuit.left(probes)
        if pause:
            await self._way.sleep(pause)

    def _choose(self) -> tuple[ModelTarget, Circuit]:
        """Return the next model to ask. Raises the last fault, or UpstreamUnreachable, if there is none."""
        while True:
            target = self._targets[self._at]
            counted = self._counted_as(target)
            circuit = self._way.circuits[counted.upstream, counted.model]
            seconds = circuit.seconds(alone=not self._others)
            if not seconds:
                return target, circuit
            self._note(target, "open", self._way.clock())
            if not self._others:
                raise self._fault or UpstreamUnreachable(
                    "The model server could not be reached several times. It is left alone for a few seconds.",
                    retry_after=math.ceil(seconds),
                )
            self._go_on()

    def _pause_after(self, error: DomainError, kind: FaultClass, circuit: Circuit, *, spoke: bool) -> float | None:
        """Choose the next attempt and return the seconds to wait before it; None if there is no other attempt."""
        rest = retry_after_seconds(error)
        pause = rest + self._way.jitter(FIRST_PAUSE * 2**self._repeats)
        patient = rest <= (SHORT_REST if self._others else LONGEST_REST) and pause < self._left
        # A silent server may still work on an answer that has to be paid for, so another one is asked first.
        working = kind is SILENCE and (self._others or not self._streamed)
        if self._repeats < kind.repeats and patient and not working and not spoke:
            self._repeats += 1
            return pause
        if kind.rests or (kind is RATE and rest):
            circuit.any_fault.rest(kind.rests or min(rest, _LONGEST_OPEN))
        if self._others and kind.elsewhere and self._left > 0 and not spoke:
            self._go_on()
            return 0.0
        return None

    def limited(self, target: ModelTarget) -> ModelRequest:
        """Return the request for one target. Where others are left each gets its share of the time to begin; once it
        has begun a stream may take all of it."""
        left = max(self._left, 0.001)
        share = left / (len(self._targets) - self._at)
        return replace(
            self._request,
            upstream=target.upstream,
            model=target.model,
            fallbacks=(),
            seconds=left if self._streamed else share,
            first_byte=share if self._others else 0.0,
        )

    @property
    def _left(self) -> float:
        return self._deadline - self._way.clock()

    @property
    def _others(self) -> bool:
        return self._at + 1 < len(self._targets)

    def _go_on(self) -> None:
        self._at, self._repeats = self._at + 1, 0

    def _note_answer(self, target: ModelTarget, started: float) -> None:
        self._request.course.by = target
        if self._request.course.attempts:
            self._note(target, "", started)
        else:
            self._count(target, "ok")

    def _counted_as(self, target: ModelTarget) -> ModelTarget:
        """Return the name under which faults are counted. A server without /completions may still be healthy for chats.
        Clients choose the names of embedding models freely, so those of one upstream are counted together."""
        path = self._request.path
        if path == CHAT:
            return target
        return ModelTarget(target.upstream, path if path == EMBEDDINGS else f"{target.model} {path}")

    def _count(self, target: ModelTarget, outcome: str) -> None:
        counted = self._counted_as(target)
        outcomes[counted.upstream, counted.model, outcome] += 1

    def _note(self, target: ModelTarget, fault: str, started: float) -> None:
        self._count(target, fault or "ok")
        seconds = round(self._way.clock() - started, 3)
        entry = {"upstream": target.upstream, "model": target.model, "fault": fault, "seconds": seconds}
        self._request.course.attempts.append(entry)
        if fault and fault != "open":
            logger.info("%s of upstream %s: %s after %s s", target.model, target.upstream, fault, seconds)
