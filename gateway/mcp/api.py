"""The HTTP edge of `/mcp`: POST one message (or a batch), get one JSON answer. No streams, so GET answers 405; no
sessions, so DELETE does, too. Keys only, and no foreign web page: an Origin must be this host or a trusted one."""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI

from gateway.api.errors import install_handlers
from gateway.authentication import KeyAuth
from gateway.mcp import messages, protocol, tools
from gateway.mcp.messages import Message, RpcError
from gateway.origins import origin_allowed
from memories import tools as memory_tools
from memories.caller import ApiRequest, Caller
from memories.errors import Forbidden
from memories.tools import ToolCall

BOOK_HEADER = "x-daybook-book"
# Statuses of version 2026-07-28; earlier ones answer 200 to whatever could be read.
_STATUS = {messages.METHOD_NOT_FOUND: 404}


class OriginAndKey(KeyAuth):
    """A key, and no Origin but our own and trusted ones. Raises Forbidden, Unauthorized, RateLimited."""

    async def __call__(self, request: HttpRequest) -> Caller:
        origin = request.headers.get("origin", "")
        if origin and not origin_allowed(origin, request.get_host()):
            raise Forbidden("This web page may not use /mcp; DAYBOOK_TRUSTED_ORIGINS names those that may.")
        return await super().__call__(request)


mcp = NinjaAPI(
    title="Model Context Protocol",
    version="1",
    auth=OriginAndKey(),
    urls_namespace="mcp",
    docs_url=None,
    openapi_url=None,
)
install_handlers(mcp)


@mcp.post("")
async def mcp_post(request: ApiRequest) -> HttpResponse:
    """Answer a client's messages; 202 without a body where none of them wants an answer."""
    try:
        received, batch = messages.read_messages(request.body)
    except RpcError as error:
        return _json(error.as_json(error.id), status=400)
    answers = []
    status = 200
    for message in received:
        answer, status = await _answer(request, message)
        if answer is not None:
            answers.append(answer)
    if not answers:
        return HttpResponse(status=202)
    return _json(answers) if batch else _json(answers[0], status=status)


async def _answer(request: ApiRequest, message: Message) -> tuple[dict[str, Any] | None, int]:
    """Return the answer to one message and its status."""
    if message.id is None:
        return None, 202
    envelope = False
    try:
        envelope = protocol.uses_envelope(message, request.headers.get)
        result = await _result(request, message, envelope=envelope)
    except RpcError as error:
        refused_envelope = error.code in {messages.HEADER_MISMATCH, messages.UNSUPPORTED_VERSION}
        status = _STATUS.get(error.code, 400) if envelope or refused_envelope else 200
        return error.as_json(message.id), status
    return messages.result_json(message.id, protocol.in_envelope(result) if envelope else result), 200


async def _result(request: ApiRequest, message: Message, *, envelope: bool) -> dict[str, Any]:
    """Return what a request gets. Raises RpcError."""
    if message.method == "initialize" and not envelope:
        return protocol.initialize(message.params)
    if message.method == "server/discover" and envelope:
        return protocol.discover()
    if message.method == "ping":
        return {}
    if message.method == "tools/list":
        return protocol.tools_listed(tools.offered(request.auth))
    if message.method == "tools/call":
        return await _call(request, message.params)
    raise RpcError(messages.METHOD_NOT_FOUND, "This method is not offered here.")


async def _call(request: ApiRequest, params: dict[str, Any]) -> dict[str, Any]:
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or name not in tools.NAMES:
        raise RpcError(messages.INVALID_PARAMS, "There is no such tool.")
    if not isinstance(arguments, dict):
        raise RpcError(messages.INVALID_PARAMS, "arguments is an object.")
    book = request.headers.get(BOOK_HEADER, "").strip()
    call = ToolCall(id=name, name=name, arguments=json.dumps(arguments))
    return await memory_tools.in_lane_of([call], tools.call_tool, request.auth, book, call)


def _json(data: Any, *, status: int = 200) -> HttpResponse:
    return HttpResponse(json.dumps(data, ensure_ascii=False), content_type="application/json", status=status)
