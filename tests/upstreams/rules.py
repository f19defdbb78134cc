"""What each kind of model server refuses and how it words its errors, as data; the sources are in docs/upstreams.md.
The scripted server in tests/upstreams/server.py enforces the rules."""

import json
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

NINE_ALPHANUMERICS = r"[A-Za-z0-9]{9}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one kind of server.

    `error_form` names the structure of its errors. `reasoning_field` is where it puts the model's reasoning: a field of
    the message, `parts` of its content, or `details` (OpenRouter)."""

    error_form: str = "openai"
    status: int = 400
    refused_fields: frozenset[str] = frozenset()
    refused_message_fields: frozenset[str] = frozenset()
    refused_tool_fields: frozenset[str] = frozenset()  # of a function
    metadata_without_store: bool = True  # accepts `metadata` without `store`
    allows_nulls: bool = True
    system_first: bool = False
    alternate_roles: bool = False
    allows_user_after_tool: bool = True
    allows_empty_assistant: bool = True  # accepts an assistant message without content
    null_content: bool = True  # accepts an assistant message with calls and `null` content
    text_results: bool = False
    id_pattern: str = r".{1,40}"  # of tool call ids it accepts
    only_own_ids: bool = False  # accepts only ids that it created
    id_format: str = "call_{n:024d}"  # of the ids it creates; "" if it creates none
    reasoning_field: str = ""
    requires_reasoning: str = ""  # the assistant messages that must have their reasoning: "all", or those with "calls"
    requires_verbatim: bool = True  # its fields must come back unchanged
    requires_signature: bool = False  # Gemini's
    indexed_calls: bool = True  # chunks of calls have an index
    calls_finish_reason: str = "tool_calls"
    sends_comments: bool = False
    key_header: str = "authorization"
    extra_fields: tuple[tuple[str, Any], ...] = ()  # of a response


RULES: dict[str, Rules] = {
    "openai": Rules(
        metadata_without_store=False, extra_fields=(("system_fingerprint", "fp_1"), ("service_tier", "default"))
    ),
    "azure": Rules(error_form="azure", key_header="api-key", metadata_without_store=False),
    "gemini": Rules(
        error_form="list",
        refused_fields=frozenset(
            {"seed", "store", "metadata", "prompt_cache_key", "frequency_penalty", "top_k", "reasoning"}
        ),
        id_pattern=r".*",
        id_format="",
        requires_signature=True,
        indexed_calls=False,
        calls_finish_reason="stop",
    ),
    "anthropic": Rules(id_pattern=r"[A-Za-z0-9_-]{1,64}", id_format="toolu_{n:020d}", allows_empty_assistant=False),
    "deepseek": Rules(reasoning_field="reasoning_content", requires_reasoning="all", sends_comments=True),
    "mistral": Rules(
        error_form="detail",
        status=422,
        refused_fields=frozenset({"max_completion_tokens", "stream_options", "seed", "user", "store"}),
        refused_message_fields=frozenset({"name", "reasoning_content"}),
        system_first=True,
        allows_user_after_tool=False,
        allows_empty_assistant=False,
        id_pattern=NINE_ALPHANUMERICS,
        id_format="m{n:08d}",
        reasoning_field="parts",
    ),
    "xai": Rules(
        error_form="text", refused_message_fields=frozenset({"name"}), refused_tool_fields=frozenset({"strict"})
    ),
    "groq": Rules(
        refused_fields=frozenset({"metadata"}),
        refused_message_fields=frozenset({"reasoning_content", "reasoning_details"}),
        allows_nulls=False,
        reasoning_field="reasoning",
    ),
    "together": Rules(reasoning_field="reasoning"),
    "openrouter": Rules(
        error_form="raw",
        id_pattern=r".{1,128}",
        reasoning_field="details",
        sends_comments=True,
        extra_fields=(("provider", "Somebody"),),
    ),
    "cohere": Rules(error_form="message"),
    "dashscope": Rules(error_form="dashscope", reasoning_field="reasoning_content"),
    "kimi": Rules(
        id_pattern=r".{1,128}",
        only_own_ids=True,
        id_format="functions.{name}:{n}",
        reasoning_field="reasoning_content",
        requires_reasoning="calls",
        allows_empty_assistant=False,
    ),
    "zai": Rules(
        error_form="number",
        refused_fields=frozenset({"max_completion_tokens", "stream_options", "frequency_penalty", "presence_penalty"}),
        refused_message_fields=frozenset({"name"}),
        refused_tool_fields=frozenset({"strict"}),
        reasoning_field="reasoning_content",
    ),
    "vllm": Rules(
        error_form="int", id_pattern=r".{1,128}", id_format="chatcmpl-tool-{n:032d}", reasoning_field="reasoning"
    ),
    "sglang": Rules(error_form="flat", id_pattern=r".{1,128}", reasoning_field="reasoning_content"),
    # What its own server or that of llama-cpp-python refuses. Ids and null are the latter's, which also ignores
    # `max_completion_tokens`.
    "llamacpp": Rules(
        error_form="int",
        refused_fields=frozenset({"max_completion_tokens"}),
        id_pattern=r".{1,128}",
        id_format="call__0_{name}_cmpl-{n:036d}",
        reasoning_field="reasoning_content",
        text_results=True,
        null_content=False,
    ),
    "ollama": Rules(
        refused_fields=frozenset({"max_completion_tokens"}),
        id_pattern=r".{1,128}",
        text_results=True,
        reasoning_field="reasoning",
    ),
    "lmstudio": Rules(error_form="text", id_pattern=r".{1,128}", id_format="{n}"),
    "strict": Rules(
        error_form="flat",
        system_first=True,
        alternate_roles=True,
        allows_user_after_tool=False,
        allows_empty_assistant=False,
        text_results=True,
        id_pattern=NINE_ALPHANUMERICS,
        id_format="call_{n}",
    ),
}


def error_body(form: str, status: int, message: str, *, code: str | None = None, param: str | None = None) -> Any:
    """Return an error body in a server's form."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    place, quoted = ["body", *([param] if param else [])], json.dumps({"error": {"message": message}})
    forms: dict[str, Any] = {
        "openai": {"error": error},
        "azure": {"error": {**error, "innererror": {"code": "None"}}},
        "list": [{"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}}],
        "text": {"code": code or "Client specified an invalid argument", "error": message},
        "detail": {
            "object": "error",
            "message": {"detail": [{"type": "extra_forbidden", "loc": place, "msg": message}]},
            "type": "invalid_request_error",
            "param": None,
            "code": code,
        },
        "raw": {"error": {"message": "Provider returned error", "code": status, "metadata": {"raw": quoted}}},
        "message": {"message": message, "id": "1"},
        "dashscope": {"error": {**error, "code": code or "invalid_parameter_error"}, "request_id": "1"},
        "number": {"error": {"code": "1210", "message": message}},
        "int": {"error": {"message": message, "type": "BadRequestError", "param": param, "code": status}},
        "flat": {"object": "error", "message": message, "type": "BadRequestError", "param": param, "code": status},
    }
    return forms[form]


def refusal(rules: Rules, body: dict[str, Any]) -> tuple[str, str | None] | None:
    """Return why a server of this kind refuses a request, as (message, param), or None if it accepts it."""
    for name in rules.refused_fields & body.keys():
        return f'Unknown name "{name}": Cannot find field.', name
    if not rules.metadata_without_store and "metadata" in body and not body.get("store"):
        return "The 'metadata' parameter is only allowed when 'store' is enabled.", None
    for name in [] if rules.allows_nulls else [name for name, value in body.items() if value is None]:
        return f"{name} must not be null", name
    if body.get("tools") == []:
        return "tools must not be empty", "tools"
    if not body.get("tools") and body.keys() & {"tool_choice", "parallel_tool_calls"}:
        return "tool_choice is only allowed when tools are given", "tool_choice"
    for tool in body.get("tools", ()):
        for name in rules.refused_tool_fields & tool["function"].keys():
            return f"tools: property '{name}' is unsupported", "tools"
    messages = body["messages"]
    for at, message in enumerate(messages):
        for name in rules.refused_message_fields & message.keys():
            return f"'messages.{at}': property '{name}' is unsupported", "messages"
    return _order(rules, messages) or _calls(rules, messages)


def _order(rules: Rules, messages: list[dict[str, Any]]) -> tuple[str, str | None] | None:
    roles = [message["role"] for message in messages]
    if rules.system_first and {"system", "developer"} & set(roles[1:]):
        return "System message must be at the beginning.", None
    without_calls = [message for message in messages if not message.get("tool_calls")]
    dialogue = [message["role"] for message in without_calls if message["role"] in {"user", "assistant"}]
    if rules.alternate_roles and any(role != ("user", "assistant")[at % 2] for at, role in enumerate(dialogue)):
        return "Conversation roles must alternate user/assistant/user/assistant/...", None
    for before, role in pairwise(roles):
        if not rules.allows_user_after_tool and (before, role) == ("tool", "user"):
            return "Unexpected role 'user' after role 'tool'", None
    for message in messages:
        empty = not message.get("content") and not message.get("tool_calls")
        if message["role"] == "assistant" and empty and not rules.allows_empty_assistant:
            return "An assistant message must not be empty.", None
        if message["role"] == "assistant" and message.get("content", "") is None and not rules.null_content:
            return "Input should be a valid string", None
        if rules.text_results and message["role"] == "tool" and not isinstance(message.get("content"), str):
            return "The content of a tool message must be text.", None
    return None


def _calls(rules: Rules, messages: list[dict[str, Any]]) -> tuple[str, str | None] | None:
    made: list[str] = []
    for message in messages:
        made.extend(call["id"] for call in message.get("tool_calls", ()))
        if message["role"] == "tool" and message["tool_call_id"] not in made:
            return f"The result {message['tool_call_id']} belongs to no call.", None
    for call_id in made:
        if not re.fullmatch(rules.id_pattern, call_id):
            return f"Tool call id was {call_id} but must be {rules.id_pattern}.", None
    if len(made) != len(set(made)):
        return "Tool call ids must be distinct.", None
    results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    if results != made:
        return "Every call is answered directly, in order.", None
    return None
