"""Model calls outside the main conversation: keywords, compaction, reviews, consolidation, trials of an agent."""

import asyncio
from collections.abc import Sequence
from typing import Any

from django.conf import settings

from gateway.steps import ModelStep, ModelStepResult, stream_step
from gateway.upstream import ModelRequest, ModelTarget


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
    """Return one answer of a model: its text, tool calls, usage and model. It is streamed from the upstream, so that a
    long answer does not exceed the limit of silence. `seconds` limits the total time, including fall-backs;
    `answer_bytes` limits the answer, with 0 for DAYBOOK_ANSWER_BYTES; `owner` is the person the call is for.

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
