"""Asking a model outside the main conversation: keywords, compaction, reviews, consolidation, trials of an agent."""

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
    """One answer of a model: its text, tool calls, usage and the model that gave it. It is streamed from the upstream,
    so that the limit of silence does not end a long answer. `seconds` is the longest time in all, the target's
    fall-backs included; `answer_bytes` the largest answer, DAYBOOK_ANSWER_BYTES where it is 0; `owner` is for whom it
    is asked.

    Raises DomainErrors: UpstreamTimeout when the time is over, UpstreamSilent after too long a silence, RateLimited,
    TooLarge and the other errors of the upstream."""
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
