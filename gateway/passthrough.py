"""Requests that are not turns: client tasks, requests without a user message, text completions, embeddings. Each is one
model request without session, memory, counting, and the agent's instructions, which are for conversations."""

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseError

from gateway.agents.configuration import prices, prices_of
from gateway.agents.model_choice import agent_target
from gateway.agents.rows import agent_find, agent_settings, require_key
from gateway.agents.settings import with_defaults
from gateway.limits.allowances import NO_ALLOWANCE, Allowance, allowed
from gateway.limits.spending import ModelUse, Spender, spending_store
from gateway.messages import content_text, last_user_index
from gateway.models import Run
from gateway.requests import request_id
from gateway.runs.candidates import find_continuation
from gateway.runs.client_tools import ClientCalls
from gateway.runs.context import RunOutput
from gateway.runs.requested import V1Request
from gateway.runs.summaries import may_be_summary, summary_store
from gateway.steps import ModelStep, complete_step, name_in, step_use, stream_step
from gateway.tool_calls import tool_names
from gateway.turns.events import Delta, Done
from gateway.upstream import CHAT, COMPLETIONS, EMBEDDINGS, ModelRequest, ModelTarget, is_demo, model
from gateway.upstream.answer import choices_of
from gateway.upstream.in_process import IN_PROCESS
from gateway.upstream.usage import newer_usage, usage_of
from memories.caller import Caller
from memories.database.access import in_patient_thread, in_read_thread
from memories.errors import DomainError, InvalidRequest, ModelNotFound
from memories.ids import uuid7
from memories.tokens import text_tokens

logger = logging.getLogger("daybook.usage")
_USAGE_BYTES = 2_000  # bytes at both ends of an answer that are searched for the usage
_USAGE = re.compile(rb'"usage"\s*:\s*(?=\{)')
# An agent's default parameters that mean the same in text completions as in chats
_TEXT_PARAMETERS = frozenset(
    {
        "max_tokens", "temperature", "top_p", "top_k", "min_p", "stop", "seed", "presence_penalty", "frequency_penalty",
        "repetition_penalty", "logit_bias",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRequest:
    """A client's request for an agent's model. For embeddings `agent` may also be `upstream/model`."""

    agent: str
    messages: tuple[dict[str, Any], ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    parameters: dict[str, Any]
    path: str = CHAT
    functions_only: bool = False  # see ModelRequest


@dataclass(slots=True, kw_only=True)
class PlainCall:
    """An admitted plain request. One of the functions below sends it, once, and ends it with `close`."""

    request: ModelRequest
    caller: Caller
    spender: Spender
    allowance: Allowance = NO_ALLOWANCE
    # The conversation in the request. The answer may be a summary of it.
    conversation: V1Request | None = None

    async def close(self, use: ModelUse | None) -> None:
        """End the request: count its usage, record its answer if it may be a summary, and release its slot."""
        try:
            if use is not None:
                await asyncio.shield(in_patient_thread(spending_store, self.spender, [use]))
                await self._store_summary(use.text)
        except DatabaseError:
            logger.exception("The usage of a plain request could not be stored.")
        finally:
            self.allowance.leave()

    async def _store_summary(self, answer: str) -> None:
        if self.conversation is None or not may_be_summary(self.conversation.messages, answer):
            return
        try:
            continuation = await in_read_thread(find_continuation, self.conversation)
            if session_id := continuation.session_id:
                await asyncio.shield(in_patient_thread(summary_store, self.caller.owner_id, session_id, answer))
        except (DomainError, DatabaseError) as error:  # must not fail the answer
            logger.warning("A client's summary of its conversation was not noted: %s.", type(error).__name__)


async def open_plain(caller: Caller, request: PlainRequest) -> PlainCall:
    """Admit a plain request. Raises RateLimited, and the errors of `plain_call`."""
    async with allowed(caller) as allowance:
        call = await in_read_thread(plain_call, caller, request, request_id.get())
        call.allowance = allowance
        return call


def plain_call(caller: Caller, request: PlainRequest, request_id: str) -> PlainCall:
    """Return the call for a request after checking agent and key. Synchronous. Raises ModelNotFound, Unauthorized, and
    InvalidRequest if no embedding model is configured."""
    parameters, agent_name = request.parameters, request.agent
    if request.path == EMBEDDINGS and "/" in request.agent:  # agent names contain no slash
        target, agent_name, known = _named_target(caller, request.agent), "", prices()
    else:
        row = agent_find(caller, request.agent)
        agent, known = agent_settings(row), prices_of(row)
        target = agent_target(agent)
        if request.path == EMBEDDINGS:
            target = _embedding_target(target.upstream)
        elif request.path == COMPLETIONS:
            parameters = with_defaults(parameters, {k: v for k, v in agent.parameters.items() if k in _TEXT_PARAMETERS})
    model_request = ModelRequest(
        upstream=target.upstream,
        model=target.model,
        fallbacks=target.fallbacks,
        messages=request.messages,
        tools=request.tools,
        parameters=parameters,
        request_id=request_id,
        path=request.path,
        owner=str(caller.owner_id),
        functions_only=request.functions_only,
    )
    spender = Spender(owner_id=caller.owner_id, key_id=caller.key_id, agent=agent_name, prices=known)
    conversation = None
    if request.path == CHAT and last_user_index(request.messages) >= 0:
        conversation = V1Request(caller=caller, agent=request.agent, messages=request.messages, client_system="")
    return PlainCall(request=model_request, caller=caller, spender=spender, conversation=conversation)


def _named_target(caller: Caller, name: str) -> ModelTarget:
    """Return the model that `upstream/model` names. Raises Unauthorized, and ModelNotFound for an unknown upstream or a
    limited key."""
    upstream, _, embedding_model = name.partition("/")
    require_key(caller)
    exists = upstream in settings.DAYBOOK_UPSTREAMS or (is_demo() and upstream == "default")
    if caller.limits or not exists or not embedding_model:
        raise ModelNotFound(f"There is no model called {name} for this key.", param="model")
    return ModelTarget(upstream, embedding_model)


def _embedding_target(upstream: str) -> ModelTarget:
    if not settings.EMBEDDING_MODEL:
        raise InvalidRequest(
            "No embedding model is configured for agents. Set DAYBOOK_EMBEDDING_MODEL, or name one as upstream/model.",
            param="model",
        )
    return ModelTarget(IN_PROCESS if settings.EMBEDDING_PATH else upstream, settings.EMBEDDING_MODEL)


async def plain_completion(call: PlainCall) -> dict[str, Any]:
    """Return the upstream's chat.completion. Raises DomainErrors."""
    use = None
    try:
        answer = await model().complete(call.request)
        use = _model_use(call.request, answer, map(_text_in, choices_of(answer)))
        return answer
    finally:
        await call.close(use)


async def plain_vectors(call: PlainCall) -> bytes:
    """Return the upstream's JSON list of vectors, unchanged. Raises DomainErrors."""
    use = None
    try:
        answer = await model().embeddings(call.request)
        use = _model_use(call.request, {"usage": usage_in(answer)}, ())
        return answer
    finally:
        await call.close(use)


async def plain_chunks(call: PlainCall) -> AsyncGenerator[dict[str, Any]]:
    """Yield the upstream's chunks. Raises DomainErrors."""
    fields: dict[str, Any] = {"usage": {}}
    texts: list[str] | None = None
    try:
        async with aclosing(model().stream(call.request)) as stream:
            async for chunk in stream:
                fields["model"] = chunk.get("model") or fields.get("model")
                fields["usage"] = newer_usage(fields["usage"], usage_of(chunk))
                texts = texts or []
                texts.extend(map(_text_in, choices_of(chunk)))
                yield chunk
    finally:
        await call.close(None if texts is None else _model_use(call.request, fields, texts))


async def plain_events(call: PlainCall, *, stream: bool) -> AsyncGenerator[Delta | Done]:
    """Ask the model and yield its answer as the events of a turn. Raises DomainErrors."""
    request, deadline = call.request, asyncio.get_running_loop().time() + settings.RUN_SECONDS
    step = ModelStep(deadline=deadline, bytes_left=settings.ANSWER_BYTES)
    client_names = tool_names(request.tools) if request.tools else None
    calls = ClientCalls(uuid7(), start=0, client_names=client_names, own=())
    try:
        async with aclosing((stream_step if stream else complete_step)(request, step)) as choices:
            async for choice, text in choices:
                yield Delta(text, choice, step.around, calls.new_pieces(step.calls))
    finally:
        await call.close(step_use(request, step))
    if pieces := calls.new_pieces(step.calls, ended=True):
        yield Delta("", {}, step.around, pieces)
    result = step.result()
    client_calls = [made.as_json() for made in calls.by_model_id(step.calls, result.calls).values()]
    yield Done(
        state=Run.State.AWAITING_CLIENT_TOOLS if client_calls else Run.State.COMPLETED,
        output=RunOutput(text=result.text, usage=result.usage, model=result.model),
        client_calls=client_calls,
        turns_since_review=0,
        new_text=result.text,
        new_usage=result.usage,
        choice=result.choice,
        around=result.around,
        finish_reason=result.finish_reason,
    )


def _model_use(request: ModelRequest, answer: dict[str, Any], texts: Iterable[str]) -> ModelUse:
    """Return the usage in an answer or, if it has none, an estimate from the request and the answer's texts."""
    usage, (_, requested), text = usage_of(answer), request.answered_by, "".join(texts)
    if not usage and request.path != CHAT:
        prompt = request.parameters.get("prompt" if request.path == COMPLETIONS else "input")
        usage = {"prompt_tokens": _tokens_of(prompt), "completion_tokens": text_tokens(text)}
    model = name_in(answer.get("model"))
    return ModelUse(requested=requested, model=model, usage=usage, messages=request.messages, text=text)


def _tokens_of(given: Any) -> int:
    """Return the estimated tokens of a text, a list of tokens, or a list of those."""
    if isinstance(given, list):
        return len(given) if given and isinstance(given[0], int) else sum(map(_tokens_of, given))
    return text_tokens(given) if isinstance(given, str) else 0


def _text_in(choice: dict[str, Any]) -> str:
    message = choice.get("message") or choice.get("delta") or {}
    return content_text(message.get("content")) or content_text(choice.get("text"))


def usage_in(answer: bytes) -> Any:
    """Return the usage near the beginning or the end of a JSON answer, which is not parsed as a whole, or {}."""
    for piece in (answer[-_USAGE_BYTES:], answer[:_USAGE_BYTES]):
        for found in reversed([*_USAGE.finditer(piece)]):
            with contextlib.suppress(ValueError, RecursionError):
                return json.JSONDecoder().raw_decode(piece[found.end() :].decode(errors="replace"))[0]
    return {}
