"""Adds to the OpenAPI document of an API what its operations do not declare.

Errors: one schema, one response per status, and the statuses that each operation can answer. Answers: a named schema
per type, and headers. `described` is for operations that parse their bodies themselves."""

import json
from collections.abc import Collection, Iterable, Sequence
from http import HTTPStatus
from itertools import chain
from typing import Any

from ninja import NinjaAPI
from ninja.errors import ValidationError, ValidationErrorContext
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from gateway.api.anthropic_errors import is_anthropic
from gateway.limits.rate_headers import ANTHROPIC_HEADERS, OPENAI_HEADERS


def header_parameter(name: str, description: str, **schema: Any) -> dict[str, Any]:
    """Return an optional header of requests."""
    text = {"type": "string", **schema}
    return {"name": name, "in": "header", "required": False, "schema": text, "description": description}


def whole(**properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has all of these properties."""
    return {"type": "object", "required": [*properties], "properties": properties}


_SCHEMA = "Error"
_ERROR_FIELDS = whole(
    message={"type": "string", "description": "What is wrong, for people."},
    type={"type": "string", "description": "The kind of error."},
    param={"type": ["string", "null"], "description": "The field or parameter that is wrong."},
    code={"type": "string", "description": "What is wrong, for programs; codes do not change."},
    details={"type": "object", "description": "Figures and names that belong to the code."},
)
_ONLY_THESE = {"additionalProperties": False}
_ERROR = whole(error=_ERROR_FIELDS | _ONLY_THESE) | {**_ONLY_THESE, "title": "Error"}
_MEANING = {
    400: "The request is not valid.",
    401: "There is no key and no login, or the key is unknown.",
    403: "The key or login may not do this.",
    404: "What the request names does not exist for this key or login.",
    408: "The body did not arrive in time.",
    409: "It conflicts with the present state: changed meanwhile, in use, already decided, or no room left.",
    413: "The body, a text or a list is larger than the gateway takes.",
    415: "The media type of the body is not supported.",
    422: "The scan refused the text.",
    429: "A limit of this key or the model server: requests, concurrent answers, or tokens or money of the day.",
    500: "Something went wrong in the gateway; the log has the details under the answer's x-request-id.",
    502: "The model server cannot be reached, or gave no usable answer.",
    503: "The database is busy, or too much is going on.",
    504: "The model server took too long.",
}
_ALWAYS = (400, 401, 403, 413, 429, 500, 503)  # any request may have a key and, even if not expected, a body
_OF_WRITES = (404, 408, 409, 415, 422)
_OF_MODELS = (502, 504)
_RETRY = {"Retry-After": {"description": "Seconds to wait, if known.", "schema": {"type": "string"}}}
_SIGN_IN = {"WWW-Authenticate": {"description": "How to authenticate.", "schema": {"type": "string"}}}
_HEADERS = {401: _SIGN_IN, 429: _RETRY, 503: _RETRY}
_WRITE_METHODS = frozenset({"post", "put", "patch", "delete"})
_TURN_PATHS = ("/turns", "/results")
_RUN_PATHS = (*_TURN_PATHS, "/events", "/v1/chat/completions", "/v1/responses", "/v1/messages")
_REFERENCE = "#/components/schemas/{model}"
_JSON = "application/json"
_TEXT = {"type": "string"}
_USER = header_parameter(
    "X-Daybook-User", "With a trusted key: your id for the person this request is about.", maxLength=255
)
_IF_MATCH = header_parameter(
    "If-Match",
    "The ETag of the version you read. The change is only made if that is still the current version.",
    maxLength=100,
)
_ETAG = {"description": "The version of this object, for If-Match.", "schema": _TEXT}
_REQUEST_ID = {"x-request-id": "Identifies this request in the log. Your own x-request-id is used."}
_RUN_HEADERS = {"x-daybook-session": "The id of the session.", "x-daybook-run": "The id of the turn."}
_RENAMED = {413: "RequestEntityTooLarge", 422: "UnprocessableEntity"}  # named differently since Python 3.13
_REFERENCES = frozenset({"book", "session_id"})
"""Query parameters that refer to something which may not exist."""


class DocumentedAPI(NinjaAPI):
    """A NinjaAPI whose OpenAPI document has all answers of each operation, including errors. With `etags`, the names of
    the views whose answers have an ETag, and `if_match`, of those that honour If-Match, it also has the headers of the
    native API."""

    def __init__(self, *, etags: Collection[str] = (), if_match: Collection[str] = (), **options: Any) -> None:
        super().__init__(**options)
        self._etags, self._if_match = etags, if_match

    def validation_error_from_error_contexts(
        self, error_contexts: list[ValidationErrorContext[Any]]
    ) -> ValidationError:
        """Return only the first error, which is all that an answer shows. There is an error for each unknown key of a
        body: ninja would create an object for each, pydantic's JSON takes a tenth of the time."""
        context = error_contexts[0]
        text = context.pydantic_validation_error.json(include_url=False, include_context=False, include_input=False)
        first, end = json.JSONDecoder().raw_decode(text, 1)
        loc = tuple(first["loc"])
        if first["type"] == "string_type" and loc[-1] == "str" and text[end] == ",":
            # A field that takes a text or a list: of a list, report what is wrong with it, not that it is no text.
            second, _ = json.JSONDecoder().raw_decode(text, end + 1)
            if tuple(second["loc"][: len(loc) - 1]) == loc[:-1] and second["type"] != "list_type":
                first, loc = second, (*loc[:-1], *second["loc"][len(loc) :])
        loc = context.model.__ninja_flatten_map_reverse__.get(loc, loc)
        return ValidationError([first | {"loc": (context.model.__ninja_param_source__, *loc)}])

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """Return the name of the view, which stays the same if the view moves to another module."""
        return operation.view_func.__name__.rstrip("_")

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        document = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
        if self._etags:
            _document_answers(document, self._etags, self._if_match)
        document_errors(document)
        return document

    def addresses(self) -> list[str]:
        """Return the method and path of each operation, such as `POST /v1/embeddings`."""
        paths = self.get_openapi_schema()["paths"]
        return [f"{method.upper()} {path}" for path, operations in paths.items() for method in operations]


def _document_answers(document: dict[str, Any], etags: Collection[str], if_match: Collection[str]) -> None:
    """Add headers, and give the schemas of answers names. Ninja writes them out in each operation."""
    schemas = document["components"]["schemas"]
    for operation in chain.from_iterable(path.values() for path in document["paths"].values()):
        name = operation["operationId"]
        operation["parameters"].extend([_USER, *([_IF_MATCH] if name in if_match else [])])
        for response in operation["responses"].values():
            if name in etags:
                response["headers"] = {"ETag": _ETAG}
            content = response.get("content", {}).get(_JSON, {})
            title = content.get("schema", {}).pop("title", "")
            if title and title != "Response":  # that of ninja's own model around a union
                schemas[title] = {**content["schema"], "title": title}
                content["schema"] = {"$ref": _REFERENCE.format(model=title)}


def document_errors(document: dict[str, Any]) -> None:
    """Add the error schema, a response per status, and to each operation the responses that it can give."""
    components = document["components"]
    components.setdefault("schemas", {})[_SCHEMA] = _ERROR
    components["responses"] = {_name(status): _response(status) for status in _MEANING}
    headers = _REQUEST_ID | _RUN_HEADERS | OPENAI_HEADERS | ANTHROPIC_HEADERS
    components["headers"] = {name: {"description": words, "schema": _TEXT} for name, words in headers.items()}
    components["responses"][_name(429)]["headers"] |= _headers(OPENAI_HEADERS)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            names = dict(_REQUEST_ID)
            if path.endswith(_RUN_PATHS):
                names |= _RUN_HEADERS
            if path.startswith("/v1/") or path.endswith(_TURN_PATHS):  # answers of models have a key's limits
                names |= ANTHROPIC_HEADERS if is_anthropic(path) else OPENAI_HEADERS
            for answer in operation["responses"].values():
                answer["headers"] = answer.get("headers", {}) | _headers(names)
            for status in _statuses(path, method, operation):
                reference = {"$ref": f"#/components/responses/{_name(status)}"}
                operation["responses"].setdefault(status, reference)


def _headers(names: Iterable[str]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _statuses(path: str, method: str, operation: dict[str, Any]) -> list[int]:
    statuses = set(_ALWAYS)
    names = {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"}
    if "{" in path or names & _REFERENCES:
        statuses.add(404)
    if method in _WRITE_METHODS:
        statuses.update(_OF_WRITES)
    if method == "post" and (path.endswith(_TURN_PATHS) or path.startswith("/v1/")):
        statuses.update(_OF_MODELS)
    return sorted(statuses)


def described(
    *,
    body: dict[str, Any] | None = None,
    answer: dict[str, Any] | None = None,
    event: dict[str, Any] | None = None,
    error: dict[str, Any] | None = None,
    parameters: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Return the `openapi_extra` of an operation from the JSON Schemas of its body, its JSON answer, the data of its
    server-sent events, and its errors if they have another format than usual. `parameters` are OpenAPI parameters."""
    content = {_JSON: {"schema": answer}} if answer else {}
    if event:
        content["text/event-stream"] = {"schema": _events(event)}
    responses: dict[int, Any] = {200: {"content": content}}
    if error:
        responses |= {status: _response(status, error) for status in (*_ALWAYS, *_OF_WRITES, *_OF_MODELS)}
    extra: dict[str, Any] = {"responses": responses}
    if body:
        extra["requestBody"] = {"required": True, "content": {_JSON: {"schema": body}}}
    if parameters:
        extra["parameters"] = list(parameters)
    return extra


def _events(data: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the events of a stream. An error after the first event is sent as the last event."""
    content = {"anyOf": [data, {"$ref": f"#/components/schemas/{_SCHEMA}"}]}
    encoded = {"type": "string", "contentMediaType": "application/json", "contentSchema": content}
    data_schema = {"anyOf": [encoded, {"const": "[DONE]"}]}
    return {"type": "object", "required": ["data"], "properties": {"event": {"type": "string"}, "data": data_schema}}


def _name(status: int) -> str:
    """Return the name of a component. It must not depend on the version of Python."""
    return _RENAMED.get(status) or HTTPStatus(status).phrase.title().replace(" ", "").replace("-", "")


def _response(status: int, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    schema = schema or {"$ref": f"#/components/schemas/{_SCHEMA}"}
    response: dict[str, Any] = {"description": _MEANING[status], "content": {_JSON: {"schema": schema}}}
    response["headers"] = _headers(_REQUEST_ID) | _HEADERS.get(status, {})
    return response
