"""Requests that are not turns (see client_tasks, requests without a user message, completions of a text, embeddings):
one model step, without session, memory or counting, and without the agent's instructions, which are for
conversations."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from gateway.agents.model_choice import agent_target
from gateway.agents.parameters import with_defaults
from gateway.agents.rows import agent_find, agent_settings, require_key
from gateway.agents.settings import AgentSettings
from gateway.upstream import CHAT, COMPLETIONS, EMBEDDINGS, ModelRequest, ModelTarget, is_demo, model
from memories.caller import Caller
from memories.errors import InvalidRequest, ModelNotFound

# An agent's defaults that mean the same in a completion of a text as in a chat.
_OF_TEXTS = frozenset(
    {
        "max_tokens", "temperature", "top_p", "top_k", "min_p", "stop", "seed", "presence_penalty", "frequency_penalty",
        "repetition_penalty", "logit_bias",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRequest:
    """What is asked of the agent's model, as the client wrote it. In a request to /v1/embeddings `agent` may also be
    `upstream/model`."""

    agent: str
    messages: tuple[dict[str, Any], ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    parameters: dict[str, Any]
    request_id: str
    path: str = CHAT


def plain_request(caller: Caller, request: PlainRequest) -> ModelRequest:
    """Return the model request of it. Synchronous: looks at agent and key. Raises ModelNotFound, Unauthorized, and
    InvalidRequest where no embedding model is configured."""
    parameters = request.parameters
    if request.path == EMBEDDINGS and "/" in request.agent:  # no name of an agent has a slash
        target = _named_target(caller, request.agent)
    else:
        agent: AgentSettings = agent_settings(agent_find(caller, request.agent))
        target = agent_target(agent)
        if request.path == EMBEDDINGS:
            target = _embedding_target(target.upstream)
        elif request.path == COMPLETIONS:
            parameters = with_defaults(parameters, {k: v for k, v in agent.parameters.items() if k in _OF_TEXTS})
    return ModelRequest(
        upstream=target.upstream,
        model=target.model,
        fallbacks=target.fallbacks,
        messages=request.messages,
        tools=request.tools,
        parameters=parameters,
        request_id=request.request_id,
        path=request.path,
        owner=str(caller.owner_id),
    )


def _named_target(caller: Caller, name: str) -> ModelTarget:
    """Return the model that `upstream/model` names. Raises ModelNotFound for an upstream that is not there, and for a
    key that is limited to agents; Unauthorized."""
    upstream, _, embedding_model = name.partition("/")
    require_key(caller)
    there = upstream in settings.DAYBOOK_UPSTREAMS or (is_demo() and upstream == "default")
    if caller.agents or not there or not embedding_model:
        raise ModelNotFound(f"There is no model called {name} for this key.", param="model")
    return ModelTarget(upstream, embedding_model)


def _embedding_target(upstream: str) -> ModelTarget:
    if not settings.EMBEDDING_MODEL:
        raise InvalidRequest(
            "No embedding model is configured for agents. Set DAYBOOK_EMBEDDING_MODEL, or name one as upstream/model.",
            param="model",
        )
    return ModelTarget(upstream, settings.EMBEDDING_MODEL)


async def plain_completion(request: ModelRequest) -> dict[str, Any]:
    """Return the upstream's chat.completion. Raises DomainErrors."""
    return await model().complete(request)


async def plain_vectors(request: ModelRequest) -> bytes:
    """Return the upstream's list of vectors as it came, JSON. Raises DomainErrors."""
    return await model().passed(request)


async def plain_chunks(request: ModelRequest) -> AsyncGenerator[dict[str, Any]]:
    """Yield the upstream's chunks. Raises DomainErrors."""
    async with aclosing(model().stream(request)) as stream:
        async for chunk in stream:
            yield chunk
