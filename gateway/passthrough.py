"""Requests that are no turn (client_chores, or nobody says anything): one model step, without session, memory or
counting, and without the agent's instructions, which are for conversations."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from gateway.agents.rows import agent_find, agent_settings
from gateway.agents.settings import AgentSettings
from gateway.steps import next_chunk
from gateway.upstream import ModelRequest, model
from memories.caller import Caller
from memories.errors import UpstreamTimeout


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRequest:
    """What is asked of the agent's model, as the client wrote it."""

    agent: str
    messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...]
    parameters: dict[str, Any]
    request_id: str


def plain_request(caller: Caller, request: PlainRequest) -> ModelRequest:
    """The model request of it. Synchronous: looks at agent and key. Raises ModelNotFound, Unauthorized."""
    checked: AgentSettings = agent_settings(agent_find(caller, request.agent))
    return ModelRequest(
        upstream=checked.upstream,
        model=checked.model or settings.DAYBOOK_MODEL,
        messages=request.messages,
        tools=request.tools,
        parameters=request.parameters,
        request_id=request.request_id,
    )


async def plain_completion(request: ModelRequest) -> dict[str, Any]:
    """The upstream's chat.completion. Raises DomainErrors."""
    try:
        async with asyncio.timeout(settings.RUN_SECONDS):
            return await model().complete(request)
    except TimeoutError:
        raise UpstreamTimeout("The model server took too long to answer.") from None


async def plain_chunks(request: ModelRequest) -> AsyncGenerator[dict[str, Any]]:
    """The upstream's chunks. Raises DomainErrors."""
    deadline = asyncio.get_running_loop().time() + settings.RUN_SECONDS
    async with aclosing(model().stream(request)) as stream:
        while True:
            chunk = await next_chunk(stream, deadline)
            if chunk is None:
                return
            yield chunk
