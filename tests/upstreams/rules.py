"""What each kind of model server refuses and how it says so, as data; the sources are in docs/upstreams.md. A scripted
server (tests/upstreams/server.py) enforces them."""

import json
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

NINE = r"[A-Za-z0-9]{9}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """One kind of server. `form` is how it words an error, `reasoning` where it puts what the model thought: a field of
    the message, `parts` of its content, or `details` (OpenRouter)."""

    form: str = "openai"
    status: int = 400
    fields: frozenset[str] = frozenset()  # of a request, refused
    message_fields: frozenset[str] = frozenset()  # refused
    tool_fields: frozenset[str] = frozenset()  # of a function, refused
    metadata_without_store: bool = True  # taken without `store`
    nulls: bool = True  # taken
    system_first: bool = False
    alternate: bool = False
    user_after_tool: bool = True  # taken
    empty_said: bool = True  # an assistant message that says nothing is taken
    null_content: bool = True  # so is one that calls, with `null` as its text
    text_results: bool = False
    ids: str = r".{1,40}"  # of calls, as it takes them
    own_ids: bool = False  # takes its own ids only
    makes: str = "call_{n:024d}"  # its own ids; "" for none
    reasoning: str = ""
    demands: str = ""  # reasoning of each message of the assistant that was said with it: "all", or those with "calls"
    verbatim: bool = True  # what it gave must come back as it was
    signature: bool = False  # Gemini's
    numbered: bool = True  # pieces of calls carry an index
    stops: str = "tool_calls"  # its finish_reason of calls
    comments: bool = False
    header: str = "authorization"
    extra: tuple[tuple[str, Any], ...] = ()  # of an answer


RULES: dict[str, Rules] = {
    "openai": Rules(metadata_without_store=False, extra=(("system_fingerprint", "fp_1"), ("service_tier", "default"))),
    "azure": Rules(form="azure", header="api-key", metadata_without_store=False),
    "gemini": Rules(
        form="list",
        fields=frozenset({"seed", "store", "metadata", "prompt_cache_key", "frequency_penalty", "top_k", "reasoning"}),
        ids=r".*",
        makes="",
        signature=True,
        numbered=False,
        stops="stop",
    ),
    "anthropic": Rules(ids=r"[A-Za-z0-9_-]{1,64}", makes="toolu_{n:020d}", empty_said=False),
    "deepseek": Rules(reasoning="reasoning_content", demands="all", comments=True),
    "mistral": Rules(
        form="detail",
        status=422,
        fields=frozenset({"max_completion_tokens", "stream_options", "seed", "user", "store"}),
        message_fields=frozenset({"name", "reasoning_content"}),
        system_first=True,
        user_after_tool=False,
        empty_said=False,
        ids=NINE,
        makes="m{n:08d}",
        reasoning="parts",
    ),
    "xai": Rules(form="text", message_fields=frozenset({"name"}), tool_fields=frozenset({"strict"})),
    "groq": Rules(
        fields=frozenset({"metadata"}),
        message_fields=frozenset({"reasoning_content", "reasoning_details"}),
        nulls=False,
        reasoning="reasoning",
    ),
    "together": Rules(reasoning="reasoning"),
    "openrouter": Rules(
        form="raw", ids=r".{1,128}", reasoning="details", comments=True, extra=(("provider", "Somebody"),)
    ),
    "cohere": Rules(form="message"),
    "dashscope": Rules(form="dashscope", reasoning="reasoning_content"),
    "kimi": Rules(
        ids=r".{1,128}",
        own_ids=True,
        makes="functions.{name}:{n}",
        reasoning="reasoning_content",
        demands="calls",
        empty_said=False,
    ),
    "zai": Rules(
        form="number",
        fields=frozenset({"max_completion_tokens", "stream_options", "frequency_penalty", "presence_penalty"}),
        message_fields=frozenset({"name"}),
        tool_fields=frozenset({"strict"}),
        reasoning="reasoning_content",
    ),
    "vllm": Rules(form="int", ids=r".{1,128}", makes="chatcmpl-tool-{n:032d}", reasoning="reasoning"),
    "sglang": Rules(form="flat", ids=r".{1,128}", reasoning="reasoning_content"),
    # What its own server or that of llama-cpp-python refuses; ids and null as the latter has them, which also
    # ignores `max_completion_tokens`.
    "llamacpp": Rules(
        form="int",
        fields=frozenset({"max_completion_tokens"}),
        ids=r".{1,128}",
        makes="call__0_{name}_cmpl-{n:036d}",
        reasoning="reasoning_content",
        text_results=True,
        null_content=False,
    ),
    "ollama": Rules(
        fields=frozenset({"max_completion_tokens"}), ids=r".{1,128}", text_results=True, reasoning="reasoning"
    ),
    "lmstudio": Rules(form="text", ids=r".{1,128}", makes="{n}"),
    "strict": Rules(
        form="flat",
        system_first=True,
        alternate=True,
        user_after_tool=False,
        empty_said=False,
        text_results=True,
        ids=NINE,
        makes="call_{n}",
    ),
}


def worded(form: str, status: int, message: str, *, code: str | None = None, param: str | None = None) -> Any:
    """An error body in a server's form."""
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
    """Why a server of this kind refuses a request, as (message, param); None where it takes it."""
    for name in rules.fields & body.keys():
        return f'Unknown name "{name}": Cannot find field.', name
    if not rules.metadata_without_store and "metadata" in body and not body.get("store"):
        return "The 'metadata' parameter is only allowed when 'store' is enabled.", None
    for name in [] if rules.nulls else [name for name, value in body.items() if value is None]:
        return f"{name} must not be null", name
    if body.get("tools") == []:
        return "tools must not be empty", "tools"
    if not body.get("tools") and body.keys() & {"tool_choice", "parallel_tool_calls"}:
        return "tool_choice is only allowed when tools are given", "tool_choice"
    for tool in body.get("tools", ()):
        for name in rules.tool_fields & tool["function"].keys():
            return f"tools: property '{name}' is unsupported", "tools"
    messages = body["messages"]
    for at, message in enumerate(messages):
        for name in rules.message_fields & message.keys():
            return f"'messages.{at}': property '{name}' is unsupported", "messages"
    return _order(rules, messages) or _calls(rules, messages)


def _order(rules: Rules, messages: list[dict[str, Any]]) -> tuple[str, str | None] | None:
    roles = [message["role"] for message in messages]
    if rules.system_first and {"system", "developer"} & set(roles[1:]):
        return "System message must be at the beginning.", None
    heard = [message for message in messages if not message.get("tool_calls")]
    spoken = [message["role"] for message in heard if message["role"] in {"user", "assistant"}]
    if rules.alternate and any(role != ("user", "assistant")[at % 2] for at, role in enumerate(spoken)):
        return "Conversation roles must alternate user/assistant/user/assistant/...", None
    for before, role in pairwise(roles):
        if not rules.user_after_tool and (before, role) == ("tool", "user"):
            return "Unexpected role 'user' after role 'tool'", None
    for message in messages:
        empty = not message.get("content") and not message.get("tool_calls")
        if message["role"] == "assistant" and empty and not rules.empty_said:
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
        if not re.fullmatch(rules.ids, call_id):
            return f"Tool call id was {call_id} but must be {rules.ids}.", None
    if len(made) != len(set(made)):
        return "Tool call ids must be distinct.", None
    results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    if results != made:
        return "Every call is answered directly, in order.", None
    return None
