"""The HTTP endpoint `/mcp`: a POST with a message or a batch gets one JSON answer. There are no streams and no
sessions, so GET and DELETE get 405. Requests need a key or the access token of a connected app. An Origin header must
name this host or a trusted origin."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI

from gateway.api.errors import error_response, install_handlers
from gateway.api.openai_body import parse_async
from gateway.api.responding import json_response
from gateway.authentication import KeyAuth, caller_by_key, caller_by_token, given_key, require_json
from gateway.mcp import prompts, protocol, resources, tools
from gateway.mcp.protocol import Message, RpcError
from gateway.oauth.addresses import challenge, resource_of
from gateway.oauth.tokens import is_access_token
from gateway.requests import header_text, origin_allowed
from memories import tools as memory_tools
from memories.caller import ApiRequest, Caller
from memories.database.access import in_read_thread
from memories.errors import DomainError, Forbidden, Unauthorized
from memories.tools import ToolCall

BOOK_HEADER = "x-daybook-book"
# Called with the book that the client named, or "".
READ_METHODS: dict[str, Callable[[Caller, str | None, dict[str, Any]], dict[str, Any]]] = {
    "resources/list": resources.listed,
    "resources/read": resources.read,
    "prompts/get": prompts.prompt,
}
SINGLE_PAGE_LISTS: dict[str, Callable[[Caller], dict[str, Any]]] = {
    "tools/list": lambda caller: {"tools": tools.offered(caller)},
    "prompts/list": lambda _: {"prompts": prompts.PROMPTS},
    "resources/templates/list": lambda _: {"resourceTemplates": resources.TEMPLATES},
}


class InsufficientScope(Forbidden):
    """The app lacks a right. Its client may ask the person for it."""


class OriginAndKey(KeyAuth):
    """Checks the Origin, and authenticates a key or the access token of a connected app. Raises Forbidden,
    Unauthorized, RateLimited."""

    async def __call__(self, request: HttpRequest) -> Caller:
        origin = request.headers.get("origin", "")
        if origin and not origin_allowed(origin, request.get_host()):
            raise Forbidden("This web page may not use /mcp; DAYBOOK_TRUSTED_ORIGINS names those that may.")
        plain = given_key(request.headers.get)
        if is_access_token(plain):
            caller = await caller_by_token(plain, resource_of(request), request.headers.get)
        else:  # uncached, since tools/list does not check the key again
            caller = await caller_by_key(request, cached=False)
        require_json(request)
        return caller


mcp = NinjaAPI(
    title="Model Context Protocol",
    version="1",
    auth=OriginAndKey(),
    urls_namespace="mcp",
    docs_url=None,
    openapi_url=None,
)
install_handlers(mcp)


@mcp.exception_handler(Unauthorized)
@mcp.exception_handler(InsufficientScope)
def challenged(request: HttpRequest, error: Unauthorized | InsufficientScope) -> HttpResponse:
    """Return a 401 or 403 that tells the client where to sign in, and which scopes it needs."""
    if isinstance(error, InsufficientScope):
        reason = "insufficient_scope"
    else:
        reason = "invalid_token" if given_key(request.headers.get) else ""
    response = error_response(error, request.path_info)
    response["WWW-Authenticate"] = challenge(request, reason)
    return response


@mcp.post("")
async def mcp_post(request: ApiRequest) -> HttpResponse:
    """Answer a client's messages, or return an empty 202 if all of them are notifications."""
    try:
        received, batch = await parse_async(protocol.read_messages, request.body)
    except RpcError as error:
        return json_response(error.as_json(error.id), status=400)
    answers = []
    status = 200
    for message in received:
        answer, status = await _answer(request, message)
        if answer is not None:
            answers.append(answer)
    if not answers:
        return HttpResponse(status=202)
    return json_response(answers) if batch else json_response(answers[0], status=status)


async def _answer(request: ApiRequest, message: Message) -> tuple[dict[str, Any] | None, int]:
    if message.id is None:
        return None, 202
    envelope = False
    try:
        envelope = protocol.uses_envelope(message, request.headers.get)
        result = await _result(request, message, envelope=envelope)
    except RpcError as error:
        # Error statuses are those of version 2026-07-28. Earlier versions use 200 for any valid message.
        refused_envelope = error.code in {protocol.HEADER_MISMATCH, protocol.UNSUPPORTED_VERSION}
        error_status = 404 if error.code == protocol.METHOD_NOT_FOUND else 400
        status = error_status if envelope or refused_envelope else 200
        if envelope and error.code == protocol.RESOURCE_NOT_FOUND:  # only in earlier versions
            error.code = protocol.INVALID_PARAMS
        return error.as_json(message.id), status
    return {"jsonrpc": "2.0", "id": message.id, "result": protocol.in_envelope(result) if envelope else result}, 200


async def _result(request: ApiRequest, message: Message, *, envelope: bool) -> dict[str, Any]:
    """Return the result of a request. Raises RpcError."""
    if message.method == "initialize" and not envelope:
        return protocol.initialize(message.params)
    if message.method == "server/discover" and envelope:
        return protocol.discover()
    if message.method == "ping":
        return {}
    if listed := SINGLE_PAGE_LISTS.get(message.method):
        if message.params.get("cursor") is not None:  # there is a single page
            raise protocol.wrong_cursor()
        return {**listed(request.auth), **protocol.cache_fields()}
    if message.method == "tools/call":
        return await _call(request, message.params)
    if method := READ_METHODS.get(message.method):
        return await in_read_thread(method, request.auth, _book(request), message.params)
    raise RpcError(protocol.METHOD_NOT_FOUND, "This method is not supported.")


async def _call(request: ApiRequest, params: dict[str, Any]) -> dict[str, Any]:
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or name not in tools.NAMES:
        raise RpcError(protocol.INVALID_PARAMS, "There is no such tool.")
    if not isinstance(arguments, dict):
        raise RpcError(protocol.INVALID_PARAMS, "arguments must be an object.")
    if request.auth.app and request.auth.read_only and memory_tools.TOOLS[name].writes:
        raise InsufficientScope("This app may only read. Connect it again to let it write.")
    call = ToolCall(id=name, name=name, arguments=json.dumps(arguments))
    return await memory_tools.run_in_lane(
        [call], tools.call_tool, request.auth, _book(request), call, await _vectors(request, call)
    )


async def _vectors(request: ApiRequest, call: ToolCall) -> Mapping[str, Sequence[float]]:
    """Return the vectors of a call's search query; none if the caller may not use the book."""
    try:
        book = request.auth.limits.book_name(_book(request))
    except DomainError:
        return {}  # call_tool refuses the call with an MCP error
    return await memory_tools.searched_vectors([call], request.auth.owner_id, book)


def _book(request: ApiRequest) -> str | None:
    """Return the book named in the request's header."""
    return header_text(request.headers.get(BOOK_HEADER, "")).strip() or None
