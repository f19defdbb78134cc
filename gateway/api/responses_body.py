"""Translates the body of POST /v1/responses to that of a chat completion."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.api.openai_body import CompletionBody, completion_body, read_object, require_type, typed_field
from gateway.api.responses_items import flat_name, is_read_by_server, read_items, system_messages
from gateway.client_tasks import CODEX_METADATA
from gateway.runs.responses import SYSTEM, SYSTEM_FROM
from memories.errors import DomainError, InvalidRequest
from memories.limits import SHORT_LENGTH

# Unsupported parameters, with the alternative to name when a request is refused because of them.
_REFUSED = {
    "background": "Use a stream: it stays open as long as the model works.",
    "conversation": "Name a session with `metadata.session_id`, or send `previous_response_id`.",
    "prompt": "Write `instructions` instead.",
    "context_management": "Send `truncation: auto`, or shorten the conversation.",
    "max_tool_calls": "Leave it out.",
}
# Parameters that are handled here or ignored. All others go to the model server.
_HANDLED = frozenset(
    {*_REFUSED, "input", "instructions", "previous_response_id", "store", "tools", "tool_choice", "text", "reasoning"}
    | {"max_output_tokens", "include", "truncation", "stream_options", "client_metadata", "parallel_tool_calls"}
)
ECHOED: dict[str, Any] = {
    "frequency_penalty": 0.0,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": None,
    "store": True,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": None,
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
"""The parameters of a request that its response repeats, with their defaults."""
_TYPES = {"stream": bool, "store": bool, "reasoning": dict, "text": dict, "tools": list}
_MAX_STORED_CHARS = 20_000  # of a value as JSON
_FUNCTION_FIELDS = ("name", "description", "parameters", "strict")
_LOGPROBS = "message.output_text.logprobs"
_ENCRYPTED_REASONING = "reasoning.encrypted_content"

Names = Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesBody:
    """A validated request. `chat` is the body of a chat completion without messages; `echo` has the parameters that the
    response repeats. `names` has the `(name, namespace)` of each tool that the model sees under another name, by that
    name. With `encrypted_reasoning`, reasoning items have an `encrypted_content`. `client_metadata` is sent by Codex
    and not passed on."""

    items: list[dict[str, Any]]
    instructions: str
    previous_response_id: str
    store: bool
    truncate: bool
    chat: dict[str, Any]
    echo: dict[str, Any]
    names: Names
    encrypted_reasoning: bool
    client_metadata: dict[str, Any]

    def without_store(self) -> "ResponsesBody":
        """Return the request with `store` set to False."""
        return replace(self, store=False, echo={**self.echo, "store": False})

    def to_store(self, system_from: Sequence[str]) -> dict[str, Any] | None:
        """Return the parameters to store with the run, or None if the response should not be stored. Very long values
        are left out, and so are the tools except for `names`. `system_from` are the responses before this one whose
        system messages belong to the conversation; those of this request are stored, too."""
        given = {name: value for name, value in self.echo.items() if name != "tools" and value != ECHOED[name]}
        more = {"names": dict(self.names), SYSTEM: system_messages(self.items), SYSTEM_FROM: list(system_from)}
        given |= {name: value for name, value in more.items() if value}
        stored = {name: value for name, value in given.items() if len(json.dumps(value)) <= _MAX_STORED_CHARS}
        return stored if self.store else None

    def completion(self, messages: list[dict[str, Any]]) -> CompletionBody:
        """Return the request as a chat completion with these messages. Raises InvalidRequest, TooLarge."""
        system = [{"role": "system", "content": self.instructions}] if self.instructions else []
        try:
            body = completion_body({**self.chat, "messages": [*system, *messages]})
        except DomainError as error:
            if (error.param or "").startswith("messages"):
                error.param = "input"
            raise
        metadata = {**self.client_metadata, **body.metadata}
        return replace(body, metadata=metadata, functions_only=True, searched=any(map(is_read_by_server, self.items)))


def read_responses_body(raw: bytes) -> ResponsesBody:
    """Parse and validate a body. Raises InvalidRequest."""
    body = read_object(raw)
    for name, instead in _REFUSED.items():
        if body.get(name) not in (None, False, [], {}):
            raise InvalidRequest(f"`{name}` is not supported. {instead}", param=name)
    for name, kind in _TYPES.items():
        typed_field(body, name, kind)
    if body.get("truncation") not in (None, "auto", "disabled"):
        raise InvalidRequest("`truncation` must be one of auto, disabled.", param="truncation")
    for name in ("instructions", "previous_response_id"):
        require_type(body.get(name) or "", str, name)
    if len(body.get("previous_response_id") or "") > SHORT_LENGTH:
        raise InvalidRequest("`previous_response_id` must be the id of a response.", param="previous_response_id")
    has_previous = bool(body.get("previous_response_id"))
    sent = body["client_metadata"] if isinstance(body.get("client_metadata"), dict) else {}
    tools, names = _tools(body.get("tools"))
    return ResponsesBody(
        items=[] if has_previous and not body.get("input") else read_items(body.get("input")),
        instructions=body.get("instructions") or "",
        previous_response_id=body.get("previous_response_id") or "",
        store=body.get("store") is not False,
        truncate=body.get("truncation") == "auto",
        chat={name: value for name, value in body.items() if name not in _HANDLED} | _translated(body, tools),
        echo=ECHOED | {name: body[name] for name in ECHOED if body.get(name) is not None},
        names=names,
        encrypted_reasoning=_includes(body, _ENCRYPTED_REASONING),
        client_metadata={CODEX_METADATA: sent[CODEX_METADATA]} if CODEX_METADATA in sent else {},
    )


def _translated(body: dict[str, Any], tools: list[dict[str, Any]]) -> dict[str, Any]:
    chat: dict[str, Any] = {"max_completion_tokens": body.get("max_output_tokens")}
    if reasoning := body.get("reasoning"):
        chat["reasoning_effort"] = reasoning.get("effort")
    if text := body.get("text"):
        chat |= {"response_format": _response_format(text.get("format")), "verbosity": text.get("verbosity")}
    if body.get("top_logprobs") or _includes(body, _LOGPROBS):
        chat["logprobs"] = True
    choice = _tool_choice(body.get("tool_choice"))
    if body.get("tools") and not tools and choice not in (None, "auto", "none"):
        raise InvalidRequest("`tool_choice` requires a tool that is not supported.", param="tool_choice")
    chat |= {"tools": tools, "tool_choice": choice, "parallel_tool_calls": body.get("parallel_tool_calls")}
    return {name: value for name, value in chat.items() if value not in (None, [])}


def _includes(body: dict[str, Any], name: str) -> bool:
    include = body.get("include")
    return isinstance(include, list) and name in include


def _response_format(given: Any) -> dict[str, Any] | None:
    if not isinstance(given, dict) or given.get("type") in (None, "text"):
        return None
    if given["type"] == "json_schema":
        schema = {name: value for name, value in given.items() if name != "type" and value is not None}
        return {"type": "json_schema", "json_schema": schema}
    return given


def _tools(given: Sequence[Any] | None) -> tuple[list[dict[str, Any]], Names]:
    """Return a client's tools as those of a chat completion, and `names`. Tools that run on servers are left out."""
    tools: list[dict[str, Any]] = []
    names: dict[str, tuple[str, str]] = {}
    for index, entry in enumerate(given or ()):
        require_type(entry, dict, f"tools[{index}]")
        members = entry.get("tools") if entry.get("type") == "namespace" else None
        for tool in members if isinstance(members, list) else (entry,):
            if isinstance(tool, dict) and (translate := _BY_TYPE.get(str(tool.get("type")))):
                name = require_type(tool.get("name"), str, f"tools[{index}].name")
                namespace = str(entry.get("name", "")) if members else ""
                model_name = flat_name(namespace, name)
                if model_name != name:
                    names[model_name] = (name, namespace)
                tools.append(translate({**tool, "name": model_name}))
    return tools, names


def _function(tool: dict[str, Any]) -> dict[str, Any]:
    function = {name: tool[name] for name in _FUNCTION_FIELDS if tool.get(name) is not None}
    return {"type": "function", "function": function}


def _custom(tool: dict[str, Any]) -> dict[str, Any]:
    custom = {name: tool[name] for name in ("name", "description") if tool.get(name) is not None}
    if isinstance(form := tool.get("format"), dict):
        grammar = {name: value for name, value in form.items() if name != "type"}
        custom["format"] = {"type": "grammar", "grammar": grammar} if form.get("type") == "grammar" else form
    return {"type": "custom", "custom": custom}


_BY_TYPE: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"function": _function, "custom": _custom}


def _tool_choice(given: Any) -> Any:
    if given is None or isinstance(given, str):
        return given
    kind = str(given.get("type")) if isinstance(given, dict) else ""
    if kind in _BY_TYPE:
        return _tool_reference(given)
    if kind == "allowed_tools" and isinstance(given.get("tools"), list):
        allowed = [
            _tool_reference(tool)
            for tool in given["tools"]
            if isinstance(tool, dict) and str(tool.get("type")) in _BY_TYPE
        ]
        return {"type": kind, kind: {"mode": given.get("mode", "auto"), "tools": allowed}}
    raise InvalidRequest(f"`tool_choice` of type {kind[:40]} is not supported.", param="tool_choice")


def _tool_reference(tool: dict[str, Any]) -> dict[str, Any]:
    return {"type": tool["type"], tool["type"]: {"name": flat_name(tool.get("namespace"), str(tool.get("name", "")))}}
