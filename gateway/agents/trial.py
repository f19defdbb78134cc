"""Runs trials of an agent: one message and one model step, as in the first turn of a temporary session. A trial reads
and writes no memory, stores no session, run or message, and does not count towards limits."""

import time
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from gateway.agents.model_choice import agent_target
from gateway.agents.rows import agent_settings
from gateway.model_call import ask
from gateway.models import Agent

SECONDS = 60
MAX_CHARS = 8000  # maximum length of a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The model's answer, its usage, and its duration in seconds."""

    answer: str
    model: str
    usage: dict[str, Any]
    finish_reason: str
    seconds: float


async def trial_run(agent: Agent, message: str, *, request_id: str) -> Trial:
    """Send a message to the agent as saved, for at most SECONDS, with its instructions but without our tools, which are
    about memory. Raises DomainErrors."""
    checked = agent_settings(agent)
    target = agent_target(checked)
    instructions = [{"role": "system", "content": checked.instructions}] if checked.instructions else []
    started = time.monotonic()
    result = await ask(
        target,
        [*instructions, {"role": "user", "content": message}],
        seconds=min(SECONDS, settings.RUN_SECONDS),
        parameters=checked.parameters,
        request_id=request_id,
    )
    return Trial(
        answer=result.text,
        model=result.model or target.model,
        usage=result.usage,
        finish_reason=result.finish_reason,
        seconds=time.monotonic() - started,
    )
