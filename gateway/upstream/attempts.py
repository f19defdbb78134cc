"""Retries, fall-backs, circuit breakers and concurrency limits around a model request. After a fault that is safe to
repeat the same model is asked again; otherwise the request goes to its next fall-back.

All of this happens only until the first piece of the answer has been passed on."""

import asyncio
import logging
import math
import random
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from django.conf import settings

from gateway.errors import UpstreamUnreachable
from gateway.upstream.answer import Chunk, has_content
from gateway.upstream.breakers import Circuit
from gateway.upstream.concurrency import ConcurrencyLimit
from gateway.upstream.fault_classes import CONNECT, RATE, SILENCE, FaultClass, fault_class
from gateway.upstream.faults import retry_after_seconds
from gateway.upstream.request import CHAT, EMBEDDINGS, ModelRequest, ModelTarget
from gateway.upstream.wire import OpenAIModel, is_demo
from memories.errors import DomainError

logger = logging.getLogger("daybook.upstream")

FIRST_PAUSE = 0.5
"""Maximum seconds before the first retry; doubled for each further one."""
MAX_WAIT = 20.0
"""Maximum seconds to wait when the server asks for a pause (Retry-After) and no other model can answer."""
MAX_WAIT_WITH_FALLBACK = 2.0
"""The same, and the maximum wait for a slot, if another model can answer."""
QUEUE_SECONDS = 30.0
_MAX_HOLD = 300.0
_MAX_BUFFERED = 100  # chunks without content before the first with content

outcomes: Counter[tuple[str, str, str]] = Counter()
"""Number of attempts of this process by upstream, model and fault ("ok" for none), for gateway.metrics."""
_jitter: Callable[[float], float] = partial(random.uniform, 0)


class ResilientModel:
    """OpenAIModel with retries and fall-backs. Tests pass their own clock, in seconds, and sleep."""

    def __init__(
        self,
        wire: OpenAIModel,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[float], float] = _jitter,
    ) -> None:
        self.wire, self.sleep, self.clock, self.jitter = wire, sleep, clock, jitter
        self.circuits: defaultdict[tuple[str, str], Circuit] = defaultdict(partial(Circuit, clock))
        """By upstream and model."""
        self.limits: dict[str, ConcurrencyLimit] = {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk]:
        tries = _AttemptSequence(self, request, streamed=True)
        while True:
            async with (
                tries.attempt() as target,
                tries.request_to(target) as attempt,
                aclosing(self.wire.stream(attempt)) as chunks,
            ):
                buffered: list[Chunk] = []
                async for chunk in chunks:
                    buffered.append(chunk)
                    if has_content(chunk) or len(buffered) == _MAX_BUFFERED:
                        break
                if buffered:
                    tries.begin()
                request.log.answered_by = target
                for chunk in buffered:
                    yield chunk
                async for chunk in chunks:
                    yield chunk
                return

    async def complete(self, request: ModelRequest) -> dict[str, Any]:
        tries = _AttemptSequence(self, request, streamed=False)
        while True:
            async with tries.attempt() as target, tries.request_to(target) as attempt:
                return await self.wire.complete(attempt)

    async def embeddings(self, request: ModelRequest) -> bytes:
        tries = _AttemptSequence(self, request, streamed=False)
        while True:
            async with tries.attempt() as target, tries.request_to(target) as attempt:
                return await self.wire.embeddings(attempt)

    async def close(self) -> None:
        await self.wire.close()

    def slot(self, upstream: str, owner: str, *, seconds: float) -> AbstractAsyncContextManager[None]:
        """Return a context manager that holds one of the upstream's request slots, if it has a concurrency limit."""
        maximum = int((settings.DAYBOOK_UPSTREAMS.get(upstream) or {}).get("at_once") or 0)
        if not maximum:
            return nullcontext()
        limit = self.limits.get(upstream)
        if limit is None or limit.limit != maximum:
            limit = self.limits[upstream] = ConcurrencyLimit(maximum)
        return limit.slot(owner, seconds=seconds)


class _AttemptSequence:
    """The attempts of one request, in order."""

    def __init__(self, model: ResilientModel, request: ModelRequest, *, streamed: bool) -> None:
        self._model, self._request, self._streamed = model, request, streamed
        targets = ModelTarget(request.upstream, request.model, request.fallbacks).all
        # The demo model never falls back to a real one: that would hide that an upstream is not configured.
        self._targets = targets[:1] if is_demo() else targets
        self._position = 0
        self._retries = 0
        self._fault: DomainError | None = None
        self._begun = False  # whether a piece of the answer was passed on
        self._circuit, self._probes = Circuit(model.clock), (False, False)  # of the current attempt
        self._deadline = model.clock() + (request.seconds or settings.RUN_SECONDS)

    @asynccontextmanager
    async def attempt(self) -> AsyncGenerator[ModelTarget]:
        """Run the next attempt: yield the model to ask. A fault meanwhile is swallowed if another attempt may follow,
        and raised otherwise."""
        target = self._choose()
        started_at = self._model.clock()
        self._probes = self._circuit.enter()
        try:
            yield target
        except DomainError as error:
            kind = fault_class(error)
            outcome = (not kind.unhealthy, kind is not CONNECT) if kind.about_server else (None, None)
            self._circuit.leave(self._probes, ok=outcome[0], connected=outcome[1], begun=self._begun)
            self._record(target, kind.name, started_at)
            pause = self._pause_after(error, kind)
            if pause is None:
                raise
            self._fault = error
        except BaseException:
            self._circuit.leave(self._probes, ok=None, connected=None, begun=self._begun)
            raise
        else:
            pause = 0.0
            self._circuit.leave(self._probes, ok=True, connected=True, begun=self._begun)
            self._request.log.answered_by = target
            self._record(target, "", started_at)
        if pause:
            await self._model.sleep(pause)

    def begin(self) -> None:
        """Note that the answer has begun: others need not wait for the end of a probe."""
        self._begun = True
        self._circuit.begin(self._probes)

    def _choose(self) -> ModelTarget:
        """Return the next model to ask. Raises the last fault, or UpstreamUnreachable, if all breakers are open."""
        while True:
            target = self._targets[self._position]
            counted = self._counted_as(target)
            self._circuit = self._model.circuits[counted.upstream, counted.model]
            seconds = self._circuit.seconds(alone=not self._has_fallback)
            if not seconds:
                return target
            self._record(target, "open", self._model.clock())
            if not self._has_fallback:
                raise self._fault or UpstreamUnreachable(
                    "The model server could not be reached several times. Requests to it pause for a few seconds.",
                    retry_after=math.ceil(seconds),
                )
            self._advance()

    def _pause_after(self, error: DomainError, kind: FaultClass) -> float | None:
        """Choose the next attempt and return the seconds to wait before it, or None if there is no further attempt."""
        requested = retry_after_seconds(error)
        pause = requested + self._model.jitter(FIRST_PAUSE * 2**self._retries)
        max_wait = MAX_WAIT_WITH_FALLBACK if self._has_fallback else MAX_WAIT
        short_enough = requested <= max_wait and pause < self._seconds_left
        # A silent server may still be working on an answer that costs money, so rather ask another one.
        maybe_working = kind is SILENCE and (self._has_fallback or not self._streamed)
        if self._retries < kind.retries and short_enough and not maybe_working and not self._begun:
            self._retries += 1
            return pause
        if kind.rest_seconds or (kind is RATE and requested):
            self._circuit.any_fault.hold(kind.rest_seconds or min(requested, _MAX_HOLD))
        if self._has_fallback and kind.fall_back and self._seconds_left > 0 and not self._begun:
            self._advance()
            return 0.0
        return None

    @asynccontextmanager
    async def request_to(self, target: ModelTarget) -> AsyncGenerator[ModelRequest]:
        """Yield the request to the model of this attempt while a slot of its upstream is held, which embeddings need
        not. The remaining time is divided among the remaining targets: each has its share to start answering. A stream
        that has started may use all of the remaining time."""
        wait = min(MAX_WAIT_WITH_FALLBACK if self._has_fallback else QUEUE_SECONDS, self._seconds_left)
        is_answer = self._request.path != EMBEDDINGS
        slot = self._model.slot(target.upstream, self._request.owner, seconds=wait) if is_answer else nullcontext()
        async with slot:
            left = max(self._seconds_left, 0.001)
            share = left / (len(self._targets) - self._position)
            yield replace(
                self._request,
                upstream=target.upstream,
                model=target.model,
                fallbacks=(),
                seconds=left if self._streamed else share,
                first_byte=share if self._has_fallback else 0.0,
            )

    @property
    def _seconds_left(self) -> float:
        return self._deadline - self._model.clock()

    @property
    def _has_fallback(self) -> bool:
        return self._position + 1 < len(self._targets)

    def _advance(self) -> None:
        self._position, self._retries = self._position + 1, 0

    def _counted_as(self, target: ModelTarget) -> ModelTarget:
        """Return the key under which faults are counted. A server without /completions may still be healthy for chats.
        Clients choose names of embedding models freely, so all of an upstream's are counted together."""
        path = self._request.path
        if path == CHAT:
            return target
        return ModelTarget(target.upstream, path if path == EMBEDDINGS else f"{target.model} {path}")

    def _record(self, target: ModelTarget, fault: str, started_at: float) -> None:
        """Count an attempt, and log it unless the first one succeeded. An empty `fault` means success."""
        counted = self._counted_as(target)
        outcomes[counted.upstream, counted.model, fault or "ok"] += 1
        if not fault and not self._request.log.attempts:
            return
        seconds = round(self._model.clock() - started_at, 3)
        entry = {"upstream": target.upstream, "model": target.model, "fault": fault, "seconds": seconds}
        self._request.log.attempts.append(entry)
        if fault and fault != "open":
            logger.info("%s of upstream %s: %s after %s s", target.model, target.upstream, fault, seconds)
