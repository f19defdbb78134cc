"""Requests that are not turns (see client_tasks, and requests without a user message): one model step, without session,
memory or counting, and without the agent's instructions, which are for conversations."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from gateway.agents.model_choice import agent_target
from gateway.agents.rows import agent_find, agent_settings
from gateway.agents.settings import AgentSettings
from gateway.upstream import ModelRequest, model
from memories.caller import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRequest:
    """What is asked of the agent's model, as the client wrote it."""

    agent: str
    messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...]
    parameters: dict[str, Any]
    request_id: str


def plain_request(caller: Caller, request: PlainRequest) -> ModelRequest:
    """Return the model request of it. Synchronous: looks at agent and key. Raises ModelNotFound, Unauthorized."""
    checked: AgentSettings = agent_settings(agent_find(caller, request.agent))
    target = agent_target(checked)
    return ModelRequest(
        upstream=target.upstream,
        model=target.model,
        fallbacks=target.fallbacks,
        messages=request.messages,
        tools=request.tools,
        parameters=request.parameters,
        request_id=request.request_id,
        owner=str(caller.owner_id),
    )


async def plain_completion(request: ModelRequest) -> dict[str, Any]:
    """Return the upstream's chat.completion. Raises DomainErrors."""
    return await model().complete(request)


async def plain_chunks(request: ModelRequest) -> AsyncGenerator[dict[str, Any]]:
    """Yield the upstream's chunks. Raises DomainErrors."""
    async with aclosing(model().stream(request)) as stream:
        async for chunk in stream:
            yield chunk
