"""Requests that are not turns (tasks of clients, requests without a user message, text completions, embeddings): one
model step without session, memory, counting, and without the agent's instructions, which are for conversations."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseError

from gateway.agents.configuration import prices, prices_of
from gateway.agents.model_choice import agent_target
from gateway.agents.parameters import with_defaults
from gateway.agents.rows import agent_find, agent_settings, require_key
from gateway.limits.allowances import NO_ALLOWANCE, Allowance, allowed
from gateway.limits.spending import ModelUse, Spender, spending_store
from gateway.models import Run
from gateway.requests import request_id
from gateway.runs.candidates import find_session
from gateway.runs.client_tools import ClientCalls, tool_names
from gateway.runs.context import RunOutput
from gateway.runs.fingerprint import last_asked
from gateway.runs.requested import V1Request
from gateway.runs.summaries import is_about_a_conversation, summary_note
from gateway.steps import ModelStep, complete_step, step_use, stream_step
from gateway.turns.events import Delta, Done
from gateway.upstream import CHAT, COMPLETIONS, EMBEDDINGS, ModelRequest, ModelTarget, is_demo, model
from gateway.upstream.answer import choices_of
from gateway.upstream.in_process import IN_PROCESS
from gateway.upstream.outgoing import content_text
from gateway.upstream.usage import usage_of
from memories.caller import Caller
from memories.database.access import in_patient_thread, in_read_thread
from memories.errors import DomainError, InvalidRequest, ModelNotFound
from memories.ids import uuid7
from memories.tokens import text_tokens

logger = logging.getLogger("daybook.usage")
_NEAR = 2_000  # bytes at both ends of an answer that are searched for its usage
# An agent's defaults that mean the same in a text completion as in a chat.
_OF_TEXTS = frozenset(
    {
        "max_tokens", "temperature", "top_p", "top_k", "min_p", "stop", "seed", "presence_penalty", "frequency_penalty",
        "repetition_penalty", "logit_bias",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRequest:
    """A request for an agent's model, as the client wrote it; for embeddings `agent` may also be `upstream/model`."""

    agent: str
    messages: tuple[dict[str, Any], ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    parameters: dict[str, Any]
    path: str = CHAT
    functions_only: bool = False  # see ModelRequest


@dataclass(slots=True, kw_only=True)
class PlainCall:
    """A plain request that was admitted. One of the functions below sends it, once; it ends with `close`."""

    request: ModelRequest
    caller: Caller
    spender: Spender
    allowance: Allowance = NO_ALLOWANCE
    # The conversation in the request. The answer may be a summary of it.
    about: V1Request | None = None

    async def close(self, use: ModelUse | None) -> None:
        """End the request: count its usage, record the summary that its answer may be, and release its place."""
        try:
            if use is not None:
                await asyncio.shield(in_patient_thread(spending_store, self.spender, [use]))
                await self._note_summary(use.said)
        except DatabaseError:
            logger.exception("What a plain request took could not be stored.")
        finally:
            self.allowance.leave()

    async def _note_summary(self, answer: str) -> None:
        if self.about is None or not is_about_a_conversation(self.about.messages, answer):
            return
        try:
            finding = await in_read_thread(find_session, self.caller, self.about)
            if session_id := finding.session_id or finding.parent:
                await asyncio.shield(in_patient_thread(summary_note, self.caller.owner_id, session_id, answer))
        except (DomainError, DatabaseError) as error:  # the answer is given all the same
            logger.warning("A client's summary of its conversation was not noted: %s.", type(error).__name__)


async def open_plain(caller: Caller, asked: PlainRequest) -> PlainCall:
    """Admit a plain request. Raises RateLimited, and the errors of `plain_call`."""
    async with allowed(caller) as allowance:
        call = await in_read_thread(plain_call, caller, asked, request_id.get())
        call.allowance = allowance
        return call


def plain_call(caller: Caller, request: PlainRequest, request_id: str) -> PlainCall:
    """Return its model request. Synchronous; checks agent and key. Raises ModelNotFound, Unauthorized, and
    InvalidRequest if no embedding model is configured."""
    parameters, agent_name = request.parameters, request.agent
    if request.path == EMBEDDINGS and "/" in request.agent:  # no name of an agent has a slash
        target, agent_name, known = _named_target(caller, request.agent), "", prices()
    else:
        row = agent_find(caller, request.agent)
        agent, known = agent_settings(row), prices_of(row)
        target = agent_target(agent)
        if request.path == EMBEDDINGS:
            target = _embedding_target(target.upstream)
        elif request.path == COMPLETIONS:
            parameters = with_defaults(parameters, {k: v for k, v in agent.parameters.items() if k in _OF_TEXTS})
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
    about = None
    if request.path == CHAT and last_asked(request.messages) >= 0:
        about = V1Request(agent=request.agent, messages=request.messages, client_system="")
    return PlainCall(request=model_request, caller=caller, spender=spender, about=about)


def _named_target(caller: Caller, name: str) -> ModelTarget:
    """Return the model that `upstream/model` names. Raises ModelNotFound for an unknown upstream, and for a key that is
    limited to agents; Unauthorized."""
    upstream, _, embedding_model = name.partition("/")
    require_key(caller)
    there = upstream in settings.DAYBOOK_UPSTREAMS or (is_demo() and upstream == "default")
    if caller.limits or not there or not embedding_model:
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
        use = _use(call.request, answer, map(_text_in, choices_of(answer)))
        return answer
    finally:
        await call.close(use)


async def plain_vectors(call: PlainCall) -> bytes:
    """Return the upstream's list of vectors as unchanged JSON. Raises DomainErrors."""
    use = None
    try:
        answer = await model().embeddings(call.request)
        use = _use(call.request, {"usage": usage_in(answer)}, ())
        return answer
    finally:
        await call.close(use)


async def plain_chunks(call: PlainCall) -> AsyncGenerator[dict[str, Any]]:
    """Yield the upstream's chunks. Raises DomainErrors."""
    told: dict[str, Any] = {}
    said: list[str] | None = None
    try:
        async with aclosing(model().stream(call.request)) as stream:
            async for chunk in stream:
                told |= {name: chunk[name] for name in ("model", "usage") if chunk.get(name)}
                said = said or []
                said.extend(map(_text_in, choices_of(chunk)))
                yield chunk
    finally:
        await call.close(None if said is None else _use(call.request, told, said))


async def plain_events(call: PlainCall, *, stream: bool) -> AsyncGenerator[Delta | Done]:
    """Ask the model, and yield its answer as a turn does. Raises DomainErrors."""
    request, deadline = call.request, asyncio.get_running_loop().time() + settings.RUN_SECONDS
    step = ModelStep(deadline=deadline, bytes_left=settings.ANSWER_BYTES)
    theirs = tool_names(request.tools) if request.tools else None
    calls = ClientCalls(uuid7(), start=0, theirs=theirs, ours=())
    try:
        async with aclosing((stream_step if stream else complete_step)(request, step)) as choices:
            async for choice, text in choices:
                yield Delta(text, choice, step.around, calls.news(step.calls))
    finally:
        await call.close(step_use(request, step))
    if pieces := calls.news(step.calls, ended=True):
        yield Delta("", {}, step.around, pieces)
    result = step.result()
    shown = [made.as_json() for made in calls.shown(step.calls, result.calls).values()]
    yield Done(
        state=Run.State.AWAITING_CLIENT_TOOLS if shown else Run.State.COMPLETED,
        output=RunOutput(text=result.text, usage=result.usage, model=result.model),
        client_calls=shown,
        turns_since_review=0,
        new_text=result.text,
        new_usage=result.usage,
        choice=result.choice,
        around=result.around,
        finish_reason=result.finish_reason,
    )


def _use(request: ModelRequest, told: dict[str, Any], said: Iterable[str]) -> ModelUse:
    """Return the usage of a request: that of its answer, or else an estimate from both texts."""
    usage, (_, asked), whole = usage_of(told), request.answered_by, "".join(said)
    name = told.get("model")
    if not usage and request.path != CHAT:
        given = request.parameters.get("prompt" if request.path == COMPLETIONS else "input")
        usage = {"prompt_tokens": _tokens_of(given), "completion_tokens": text_tokens(whole)}
    return ModelUse(
        asked=asked, model=name if isinstance(name, str) else "", usage=usage, given=request.messages, said=whole
    )


def _tokens_of(given: Any) -> int:
    """Return the estimated tokens of a text, a list of tokens, or a list of those."""
    if isinstance(given, list):
        return len(given) if given and isinstance(given[0], int) else sum(map(_tokens_of, given))
    return text_tokens(given) if isinstance(given, str) else 0


def _text_in(choice: dict[str, Any]) -> str:
    message = choice.get("message") or choice.get("delta") or {}
    content = message.get("content") if isinstance(message, dict) else ""
    return content_text(content) or content_text(choice.get("text"))


def usage_in(answer: bytes) -> Any:
    """Return the usage near the beginning or the end of a JSON answer, which is not parsed as a whole; {} if there is
    none."""
    for piece in (answer[-_NEAR:], answer[:_NEAR]):
        if (at := piece.rfind(b'"usage"')) >= 0 and (begin := piece.find(b"{", at)) >= 0:
            text = piece[begin:].decode(errors="replace")
            with contextlib.suppress(ValueError, RecursionError):
                return json.JSONDecoder().raw_decode(text)[0]
    return {}
