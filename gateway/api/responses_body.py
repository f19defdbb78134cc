"""The body of POST /v1/responses, translated into that of a chat completion."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.api.openai_body import CompletionBody, checked, completion_body, read_object
from gateway.api.responses_items import flat_name, read_items
from gateway.client_tasks import CODEX_METADATA
from memories.errors import DomainError, InvalidRequest
from memories.limits import TOOLS

# Parameters that are not supported, with what to do instead. A request that uses them is refused.
_REFUSED = {
    "background": "Ask for a stream: it stays alive as long as the model works.",
    "conversation": "Name a session with `metadata.session_id`, or send `previous_response_id`.",
    "prompt": "Write `instructions` instead.",
    "context_management": "Send `truncation: auto`, or shorten the conversation.",
    "max_tool_calls": "Leave it out.",
}
# Parameters that are read here or ignored. All others go to the model server.
_TAKEN = frozenset(
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
"""What a response repeats of its request, with the values of what the request leaves out."""
_KINDS = {"stream": bool, "store": bool, "reasoning": dict, "text": dict, "tools": list}
_LONGEST_KEPT = 20_000  # characters of JSON
_OF_FUNCTIONS = ("name", "description", "parameters", "strict")
_LOGPROBS = "message.output_text.logprobs"
_SEALED = "reasoning.encrypted_content"
_LONGEST_ID = 255

Names = Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesBody:
    """What a client asks for. `chat` is the body of a chat completion without its messages, `echo` what the response
    repeats. `names` holds `(name, namespace)` of tools that the model knows by another name, by that name. With
    `sealed`, items of reasoning carry an `encrypted_content`. `client_metadata` is from Codex and is not passed on."""

    items: list[dict[str, Any]]
    instructions: str
    previous_response_id: str
    store: bool
    truncate: bool
    chat: dict[str, Any]
    echo: dict[str, Any]
    names: Names
    sealed: bool
    client_metadata: dict[str, Any]

    def unstored(self) -> "ResponsesBody":
        """Return the request as one that is not to be stored."""
        return replace(self, store=False, echo={**self.echo, "store": False})

    def kept(self) -> dict[str, Any] | None:
        """Return what is stored of the request, without very long values; None if it should not be stored. Of the tools
        only `names` is kept."""
        said = {name: value for name, value in self.echo.items() if name != "tools" and value != ECHOED[name]}
        said |= {"names": dict(self.names)} if self.names else {}
        kept = {name: value for name, value in said.items() if len(json.dumps(value)) <= _LONGEST_KEPT}
        return kept if self.store else None

    def completion(self, messages: list[dict[str, Any]]) -> CompletionBody:
        """Return the request with its whole conversation. Raises InvalidRequest, TooLarge."""
        system = [{"role": "system", "content": self.instructions}] if self.instructions else []
        try:
            body = completion_body({**self.chat, "messages": [*system, *messages]})
        except DomainError as error:
            if (error.param or "").startswith("messages"):
                error.param = "input"
            raise
        return replace(body, metadata={**self.client_metadata, **body.metadata}, functions_only=True)


def read_responses_body(raw: bytes) -> ResponsesBody:
    """Raises InvalidRequest."""
    body = read_object(raw)
    for name, instead in _REFUSED.items():
        if body.get(name) not in (None, False, [], {}):
            raise InvalidRequest(f"`{name}` is not offered here. {instead}", param=name)
    for name, kind in _KINDS.items():
        checked(body, name, kind)
    if body.get("truncation") not in (None, "auto", "disabled"):
        raise InvalidRequest("`truncation` is one of auto, disabled.", param="truncation")
    for name in ("instructions", "previous_response_id"):
        if not isinstance(body.get(name) or "", str):
            raise InvalidRequest(f"`{name}` is text.", param=name)
    if len(body.get("previous_response_id") or "") > _LONGEST_ID:
        raise InvalidRequest("`previous_response_id` is the id of a response.", param="previous_response_id")
    goes_on = bool(body.get("previous_response_id"))
    tools, names = _tools(body.get("tools"))
    return ResponsesBody(
        items=[] if goes_on and not body.get("input") else read_items(body.get("input")),
        instructions=body.get("instructions") or "",
        previous_response_id=body.get("previous_response_id") or "",
        store=body.get("store") is not False,
        truncate=body.get("truncation") == "auto",
        chat={name: value for name, value in body.items() if name not in _TAKEN} | _translated(body, tools),
        echo=ECHOED | {name: body[name] for name in ECHOED if body.get(name) is not None},
        names=names,
        sealed=_includes(body, _SEALED),
        client_metadata=_client_metadata(body.get("client_metadata")),
    )


def _translated(body: dict[str, Any], tools: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"max_completion_tokens": body.get("max_output_tokens")}
    if reasoning := body.get("reasoning"):
        found["reasoning_effort"] = reasoning.get("effort")
    if text := body.get("text"):
        found |= {"response_format": _response_format(text.get("format")), "verbosity": text.get("verbosity")}
    if body.get("top_logprobs") or _includes(body, _LOGPROBS):
        found["logprobs"] = True
    choice = _tool_choice(body.get("tool_choice"))
    if body.get("tools") and not tools and choice not in (None, "auto", "none"):
        raise InvalidRequest("`tool_choice` demands a tool that is not offered here.", param="tool_choice")
    found |= {"tools": tools, "tool_choice": choice, "parallel_tool_calls": body.get("parallel_tool_calls")}
    return {name: value for name, value in found.items() if value not in (None, [])}


def _includes(body: dict[str, Any], name: str) -> bool:
    include = body.get("include")
    return isinstance(include, list) and name in include


def _client_metadata(given: Any) -> dict[str, Any]:
    return {CODEX_METADATA: given[CODEX_METADATA]} if isinstance(given, dict) and CODEX_METADATA in given else {}


def _response_format(given: Any) -> dict[str, Any] | None:
    if not isinstance(given, dict) or given.get("type") in (None, "text"):
        return None
    if given["type"] == "json_schema":
        schema = {name: value for name, value in given.items() if name != "type" and value is not None}
        return {"type": "json_schema", "json_schema": schema}
    return given


def _tools(given: Sequence[Any] | None) -> tuple[list[dict[str, Any]], Names]:
    """Return a client's tools as those of a chat completion, and their names. Tools of other servers are left out."""
    found: list[dict[str, Any]] = []
    names: dict[str, tuple[str, str]] = {}
    for index, tool in enumerate(given or ()):
        if not isinstance(tool, dict):
            raise InvalidRequest(f"tools[{index}] is an object.", param=f"tools[{index}]")
        of_namespace = tool.get("tools") if tool.get("type") == "namespace" else None
        for one in of_namespace if isinstance(of_namespace, list) else (tool,):
            if isinstance(one, dict) and (translate := _BY_TYPE.get(str(one.get("type")))):
                name, namespace = one.get("name"), str(tool.get("name", "")) if of_namespace else ""
                if not isinstance(name, str):
                    raise InvalidRequest(f"tools[{index}].name is text.", param=f"tools[{index}].name")
                known_as = flat_name(namespace, name)
                if known_as != name:
                    names[known_as] = (name, namespace)
                found.append(translate({**one, "name": known_as}))
    if len(found) > TOOLS:
        raise InvalidRequest(f"A request has at most {TOOLS} tools.", param="tools")
    return found, names


def _function(tool: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {name: tool[name] for name in _OF_FUNCTIONS if tool.get(name) is not None}}


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
        return _chosen(given)
    if kind == "allowed_tools" and isinstance(given.get("tools"), list):
        allowed = [
            _chosen(tool) for tool in given["tools"] if isinstance(tool, dict) and str(tool.get("type")) in _BY_TYPE
        ]
        return {"type": kind, kind: {"mode": given.get("mode", "auto"), "tools": allowed}}
    raise InvalidRequest(f"`tool_choice` of type {kind[:40]} is not offered here.", param="tool_choice")


def _chosen(tool: dict[str, Any]) -> dict[str, Any]:
    return {"type": tool["type"], tool["type"]: {"name": flat_name(tool.get("namespace"), str(tool.get("name", "")))}}
