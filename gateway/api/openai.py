"""/v1: the OpenAI-compatible API. The request's messages are the whole context; Daybook adds what it injects."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from django.conf import settings
from django.http import HttpResponse, HttpResponseBase
from ninja import Router

from gateway import sse
from gateway.api.errors import as_domain_error
from gateway.authentication import require_writer
from gateway.context import TurnContext
from gateway.errors import SessionBusy
from gateway.identity import text_of
from gateway.models import Agent, Run
from gateway.requests import request_id
from gateway.resolve import V1Request, open_v1, split_system
from gateway.runs import agent_find, require_key
from gateway.turns import Delta, Done, Turn, TurnOptions
from memories.caller import ApiRequest, Caller
from memories.database import in_thread
from memories.errors import InvalidRequest, TooLarge

router = Router()
BUSY_SECONDS = 2.0
_BUSY_POLL = 0.1
# What we take out of a request before its parameters go upstream.
_OURS = frozenset({"model", "messages", "stream", "tools", "metadata", "user", "session_id", "store"})


@router.get("/models")
async def models(request: ApiRequest) -> HttpResponse:
    """The agents this key may use."""
    agents = await in_thread(_agents, request.auth)
    return _json({"object": "list", "data": [_model_json(agent) for agent in agents]})


@router.get("/models/{path:name}")
async def model(request: ApiRequest, name: str) -> HttpResponse:
    """One agent."""
    agent = await in_thread(agent_find, request.auth, name)
    return _json(_model_json(agent))


@router.post("/chat/completions")
async def chat_completions(request: ApiRequest) -> HttpResponseBase:
    """A chat completion, streamed or not."""
    caller: Caller = request.auth
    require_writer(caller)
    body = parse_body(request.body)
    options = _options(body)
    v1_request = _v1_request(request, body)
    context = await _open(caller, v1_request)
    turn = Turn(context, options)
    if not options.stream:
        return _headed(_json(await _whole(turn)), context)
    stream = _stream(turn, include_usage=bool((body.get("stream_options") or {}).get("include_usage")))
    return _headed(sse.response(stream), context)


def parse_body(raw: bytes) -> dict[str, Any]:
    """The checked JSON body. Raises InvalidRequest, TooLarge."""
    try:
        body = json.loads(raw)
    except (ValueError, UnicodeDecodeError):
        raise InvalidRequest("The body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise InvalidRequest("The body is a JSON object.")
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise InvalidRequest("`model` names an agent.", param="model")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise InvalidRequest("`messages` is a list with at least one message.", param="messages")
    for index, message in enumerate(messages):
        _check_message(message, f"messages[{index}]")
    return body


def _check_message(message: Any, where: str) -> None:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise InvalidRequest(f"{where} is an object with a role.", param=where)
    if message["role"] not in {"system", "developer", "user", "assistant", "tool", "function"}:
        raise InvalidRequest(f"{where}.role is not one of system, developer, user, assistant, tool.", param=where)
    content = message.get("content")
    if content is not None and not isinstance(content, str | list):
        raise InvalidRequest(f"{where}.content is text or a list of parts.", param=where)
    if message["role"] != "user":
        return
    if isinstance(content, list) and any(not isinstance(part, dict) for part in content):
        raise InvalidRequest(f"{where}.content holds a part that is no object.", param=where)
    text = text_of(content)
    if not text.strip() and not (isinstance(content, list) and content):
        raise InvalidRequest("The message is empty. Write something first.", param=where)
    if len(text) > settings.DAYBOOK_MAX_MESSAGE:
        raise TooLarge(
            f"A message has at most {settings.DAYBOOK_MAX_MESSAGE} characters; this one has {len(text)}. Send it in parts.",
            param=where,
            limit=settings.DAYBOOK_MAX_MESSAGE,
        )


def _v1_request(request: ApiRequest, body: dict[str, Any]) -> V1Request:
    metadata = body.get("metadata") if isinstance(body.get("metadata"), dict) else {}
    client_system, messages = split_system(body["messages"])
    if not any(message["role"] == "user" for message in messages):
        raise InvalidRequest("`messages` needs a user message.", param="messages")
    return V1Request(
        agent=body["model"],
        messages=messages,
        client_system=client_system,
        session_ref=str(
            request.headers.get("x-daybook-session")
            or (metadata or {}).get("session_id")
            or request.headers.get("x-openwebui-chat-id")
            or ""
        ),
        temporary=str((metadata or {}).get("temporary", "")).lower() == "true",
        idempotency_key=request.headers.get("idempotency-key", ""),
        is_retry=request.headers.get("x-stainless-retry-count", "0") not in {"", "0"},
        request_id=request_id.get(),
    )


def _options(body: dict[str, Any]) -> TurnOptions:
    tools = body.get("tools")
    return TurnOptions(
        stream=bool(body.get("stream")),
        parameters={key: value for key, value in body.items() if key not in _OURS},
        client_tools=tuple(tool for tool in tools if isinstance(tool, dict)) if isinstance(tools, list) else (),
    )


async def _open(caller: Caller, v1_request: V1Request) -> TurnContext:
    """Open the run; while another one of its session is open wait a little, then go on as a fork."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return await in_thread(open_v1, caller, v1_request, fork_if_busy=time.monotonic() >= deadline)
        except SessionBusy:
            await asyncio.sleep(_BUSY_POLL)


async def _whole(turn: Turn) -> dict[str, Any]:
    async with aclosing(turn.events()) as events:
        async for event in events:
            if isinstance(event, Done):
                return _completion_json(turn.context, event)
    raise InvalidRequest("The model gave no answer.")


def _completion_json(context: TurnContext, done: Done) -> dict[str, Any]:
    """The upstream's completion with our names, the sum of usage, and the client's own tool calls only."""
    answer = {**done.choice}
    answer |= {
        "id": f"chatcmpl-{context.run_id.hex}",
        "object": "chat.completion",
        "model": context.agent.name,
    }
    answer.setdefault("created", int(time.time()))
    choices = [dict(choice) for choice in answer.get("choices", [])]
    first = choices[0]
    message = {**(first.get("message") or {}), "content": done.said.text or None}
    message.pop("tool_calls", None)
    if done.client_calls:
        message["tool_calls"] = done.client_calls
    first |= {"message": message, "finish_reason": _finish_reason(done)}
    answer |= {"choices": choices, "usage": {**(answer.get("usage") or {}), **done.said.usage}}
    return answer


def _finish_reason(done: Done) -> str:
    if done.state == Run.State.AWAITING_CLIENT_TOOLS:
        return "tool_calls"
    return done.finish_reason if done.finish_reason != "tool_calls" else "stop"


async def _stream(turn: Turn, *, include_usage: bool) -> AsyncGenerator[bytes]:
    head = {
        "id": f"chatcmpl-{turn.context.run_id.hex}",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": turn.context.agent.name,
    }
    # The head of every chunk is the same: it is written once, and only what changes is encoded per chunk.
    opening = b"data: " + json.dumps(head, separators=(",", ":")).encode()[:-1] + b',"choices":['
    first = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
    yield opening + _dump(first) + b"]}\n\n"
    try:
        async with aclosing(turn.events()) as events:
            async for event in events:
                if isinstance(event, Delta):
                    yield opening + _dump(_chunk_choice(event)) + b"]}\n\n"
                elif isinstance(event, Done):
                    if event.client_calls:
                        calls = [{"index": index, **call} for index, call in enumerate(event.client_calls)]
                        yield (
                            opening
                            + _dump({"index": 0, "delta": {"tool_calls": calls}, "finish_reason": None})
                            + b"]}\n\n"
                        )
                    yield (
                        opening + _dump({"index": 0, "delta": {}, "finish_reason": _finish_reason(event)}) + b"]}\n\n"
                    )
                    if include_usage:
                        yield sse.data_line({**head, "choices": [], "usage": event.said.usage})
    except Exception as error:
        yield sse.data_line(as_domain_error(error).as_json())
        return
    yield sse.DONE_LINE


def _chunk_choice(event: Delta) -> dict[str, Any]:
    delta = {
        key: value for key, value in (event.choice.get("delta") or {}).items() if key not in {"tool_calls", "role"}
    }
    return {**event.choice, "delta": delta, "finish_reason": None}


def _dump(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _headed(response: Any, context: TurnContext) -> HttpResponseBase:
    response["x-daybook-session"] = str(context.session_id)
    response["x-daybook-run"] = str(context.run_id)
    return response  # type: ignore[no-any-return]


def _agents(caller: Caller) -> list[Agent]:
    require_key(caller)
    agents = Agent.objects.order_by("name")
    return [agent for agent in agents if not caller.agents or agent.name in caller.agents]


def _model_json(agent: Agent) -> dict[str, Any]:
    return {
        "id": agent.name,
        "object": "model",
        "created": int(agent.created_at.timestamp()),
        "owned_by": "daybook",
    }


def _json(data: Any) -> HttpResponse:
    return HttpResponse(json.dumps(data, ensure_ascii=False), content_type="application/json")
