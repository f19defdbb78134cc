"""A trial of an agent: one message, one model step, as in the first turn of a temporary session. No memory is read or
written, no session, run or message is stored, and nothing is counted."""

import time
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from gateway.agents.model_choice import agent_target
from gateway.agents.rows import agent_settings
from gateway.model_call import ask
from gateway.models import Agent
from gateway.upstream import ModelTarget

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRequest:
    """What a trial asks: the saved instructions and the message. Without our tools, which are about memory."""

    target: ModelTarget
    parameters: dict[str, Any]
    messages: tuple[dict[str, Any], ...]
    request_id: str


def trial_request(agent: Agent, message: str, *, request_id: str) -> TrialRequest:
    """Return the one request of a trial of the agent as it is saved."""
    checked = agent_settings(agent)
    instructions = [{"role": "system", "content": checked.instructions}] if checked.instructions else []
    return TrialRequest(
        target=agent_target(checked),
        parameters=checked.parameters,
        messages=(*instructions, {"role": "user", "content": message}),
        request_id=request_id,
    )


async def trial_run(request: TrialRequest) -> Trial:
    """Ask once, for at most SECONDS. Raises DomainErrors."""
    started = time.monotonic()
    seconds = min(SECONDS, settings.RUN_SECONDS)
    result = await ask(
        request.target, request.messages, seconds=seconds, parameters=request.parameters, request_id=request.request_id
    )
    return Trial(
        answer=result.text,
        model=result.model or request.target.model,
        usage=result.usage,
        finish_reason=result.finish_reason,
        seconds=time.monotonic() - started,
    )
