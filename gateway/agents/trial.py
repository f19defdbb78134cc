"""A trial of an agent: one message, one model step, as in the first turn of a temporary session. No memory is read or
written, no session, run or message is stored, and nothing is counted."""

import asyncio
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from gateway.agents.rows import agent_settings
from gateway.models import Agent
from gateway.steps import Step, StepResult, complete_step
from gateway.upstream import ModelRequest

SECONDS = 60
MOST = 8000  # characters of a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What the model answered. `usage` holds the figures it gave, `seconds` how long it took."""

    answer: str
    model: str
    usage: dict[str, Any]
    finish_reason: str
    seconds: float


def trial_request(agent: Agent, message: str, *, request_id: str) -> ModelRequest:
    """The one request of a trial: the saved instructions and the message. Without our tools, which are about memory."""
    checked = agent_settings(agent)
    instructions = [{"role": "system", "content": checked.instructions}] if checked.instructions else []
    return ModelRequest(
        upstream=checked.upstream,
        model=checked.model or settings.DAYBOOK_MODEL,
        messages=(*instructions, {"role": "user", "content": message}),
        request_id=request_id,
    )


async def trial_run(request: ModelRequest) -> Trial:
    """Ask once, for at most SECONDS. Raises DomainErrors."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    step = Step(deadline=started + min(SECONDS, settings.RUN_SECONDS), bytes_left=settings.ANSWER_BYTES)
    async for _ in complete_step(request, step):
        pass
    result: StepResult = step.result()
    return Trial(
        answer=result.text,
        model=result.model or request.model,
        usage=result.usage,
        finish_reason=result.finish_reason,
        seconds=loop.time() - started,
    )
