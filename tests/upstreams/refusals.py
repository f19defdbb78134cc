"""Refusals as real servers word them, each with the request that causes it and the request that must be sent instead.
The threads in which they were reported are in docs/upstreams.md."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.upstreams.server import Refusal

Body = dict[str, Any]
LOOKUP = {"type": "function", "function": {"name": "lookup", "strict": True, "parameters": {"type": "object"}}}
STRIPPED = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}
HI = {"role": "user", "content": "Hi"}
EITHER = "either"  # streamed or not


def openai(message: str, param: str | None = None, code: str | None = None) -> Body:
    """Return an error in OpenAI's form, which most servers use."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def has(name: str) -> Callable[[Body], bool]:
    """Return a predicate for requests with that field."""
    return lambda body: name in body


def in_messages(name: str) -> Callable[[Body], bool]:
    """Return a predicate for requests with a message that has that field."""
    return lambda body: any(name in message for message in body["messages"])


def in_tools(name: str) -> Callable[[Body], bool]:
    """Return a predicate for requests with a function that has that field."""
    return lambda body: any(name in tool["function"] for tool in body.get("tools", ()))


def extra_forbidden(*locations: list[Any]) -> Body:
    """Return an error in Mistral's form."""
    detail = [
        {"type": "extra_forbidden", "loc": location, "msg": "Extra inputs are not permitted"} for location in locations
    ]
    return {
        "object": "error", "message": {"detail": detail}, "type": "invalid_request_error", "param": None, "code": None
    }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A refusal and the change that works around it.

    `parameters` are the client's, `sent` the fields that the server finally gets (None: the field is absent), and
    `learned` the descriptions of the learned changes."""

    body: Any
    when: Callable[[Body], bool]
    parameters: Body
    sent: Body
    learned: list[str]
    status: int = 400
    streamed: bool | str = EITHER
    messages: tuple[Body, ...] = (HI,)

    def scripted(self) -> Refusal:
        """Return the refusal for the scripted server."""
        return Refusal(body=self.body, when=self.when, status=self.status)


EFFORT_NONE = "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
FUNCTION_TOOLS = "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions."

CASES: dict[str, Case] = {
    "openai: unknown parameter": Case(
        body=openai("Unknown parameter: 'seed'.", "seed", "unknown_parameter"),
        when=has("seed"),
        parameters={"seed": 7, "temperature": 0.2},
        sent={"seed": None, "temperature": 0.2},
        learned=["seed is left out"],
    ),
    "openai: unrecognized argument": Case(
        body=openai("Unrecognized request argument supplied: reasoning_effort"),
        when=has("reasoning_effort"),
        parameters={"reasoning_effort": "high"},
        sent={"reasoning_effort": None},
        learned=["reasoning_effort is left out"],
    ),
    "openai: max_tokens": Case(
        body=openai(
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "max_tokens",
            "unsupported_parameter",
        ),
        when=has("max_tokens"),
        parameters={"max_tokens": 50},
        sent={"max_tokens": None, "max_completion_tokens": 50},
        learned=["max_tokens is sent as max_completion_tokens"],
    ),
    "openai: only the default temperature": Case(
        body=openai(
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is "
            "supported.",
            "temperature",
            "unsupported_value",
        ),
        when=lambda body: body.get("temperature", 1) != 1,
        parameters={"temperature": 0.2},
        sent={"temperature": None},
        learned=["temperature is left out"],
    ),
    "openai: an effort that a model does not have": Case(
        body=openai(
            "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported values are: "
            "'none', 'low', 'medium', 'high', 'xhigh'.",
            "reasoning_effort",
            "unsupported_value",
        ),
        when=lambda body: body.get("reasoning_effort") == "minimal",
        parameters={"reasoning_effort": "minimal"},
        sent={"reasoning_effort": None},
        learned=['reasoning_effort is left out where it is "minimal"'],
    ),
    "vllm: an effort that it does not have": Case(
        body=openai("Input should be 'low', 'medium' or 'high'", "body.reasoning_effort"),
        when=lambda body: body.get("reasoning_effort") == "none",
        parameters={"reasoning_effort": "none"},
        sent={"reasoning_effort": None},
        learned=['reasoning_effort is left out where it is "none"'],
    ),
    "ollama: a model that does not think": Case(
        body=openai('"llama3.1:8b" does not support thinking'),
        when=has("reasoning_effort"),
        parameters={"reasoning_effort": "high", "temperature": 0.2},
        sent={"reasoning_effort": None, "temperature": 0.2},
        learned=["reasoning_effort is left out"],
    ),
    "ollama: a model that has one way to think": Case(
        body=openai('think value "medium" is not supported for this model'),
        when=lambda body: body.get("reasoning_effort") == "medium",
        parameters={"reasoning_effort": "medium"},
        sent={"reasoning_effort": None},
        learned=['reasoning_effort is left out where it is "medium"'],
    ),
    "openai: tools want the effort none": Case(
        body=openai(f"{FUNCTION_TOOLS} {EFFORT_NONE}", "reasoning_effort"),
        when=lambda body: bool(body.get("tools")) and body.get("reasoning_effort") != "none",
        parameters={"tools": [LOOKUP]},
        sent={"tools": [LOOKUP], "reasoning_effort": "none"},
        learned=['reasoning_effort is set to "none" where tools are offered'],
    ),
    "openai: tools want no effort": Case(
        body=openai(f"{FUNCTION_TOOLS} Please use /v1/responses instead.", "reasoning_effort"),
        when=lambda body: bool(body.get("tools")) and "reasoning_effort" in body,
        parameters={"tools": [LOOKUP], "reasoning_effort": "low"},
        sent={"tools": [LOOKUP], "reasoning_effort": None},
        learned=["reasoning_effort is left out where tools are offered"],
    ),
    "openai: a field of a tool": Case(
        body=openai("Unknown parameter: 'tools[0].function.strict'.", "tools[0].function.strict", "unknown_parameter"),
        when=in_tools("strict"),
        parameters={"tools": [LOOKUP]},
        sent={"tools": [STRIPPED]},
        learned=["tools.function.strict is left out"],
    ),
    "openai: a field of a message": Case(
        body=openai("Unknown parameter: 'messages[0].name'.", "messages[0].name", "unknown_parameter"),
        when=in_messages("name"),
        parameters={},
        sent={"messages": [HI]},
        learned=["messages.name is left out"],
        messages=({**HI, "name": "alice"},),
    ),
    "anthropic: deprecated": Case(
        body={"type": "invalid_request_error", "message": "`temperature` is deprecated for this model."},
        when=has("temperature"),
        parameters={"temperature": 0.2},
        sent={"temperature": None},
        learned=["temperature is left out"],
    ),
    "kimi: one temperature": Case(
        body={"error": {"message": "invalid temperature: only 1 is allowed for this model", "type": "x"}},
        when=has("temperature"),
        parameters={"temperature": 0.2},
        sent={"temperature": None},
        learned=["temperature is left out"],
    ),
    "gemini: several at once": Case(
        body=[
            {
                "error": {
                    "code": 400,
                    "message": 'Invalid JSON payload received. Unknown name "prompt_cache_key": Cannot find field.\n'
                    'Invalid JSON payload received. Unknown name "service_tier": Cannot find field.',
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
        when=lambda body: bool({"prompt_cache_key", "service_tier"} & body.keys()),
        parameters={"prompt_cache_key": "a", "service_tier": "flex"},
        sent={"prompt_cache_key": None, "service_tier": None},
        learned=["prompt_cache_key is left out", "service_tier is left out"],
    ),
    "gemini: within a tool": Case(
        body=[
            {"error": {"code": 400, "message": "Unknown name \"strict\" at 'tools[0].function': Cannot find field."}}
        ],
        when=in_tools("strict"),
        parameters={"tools": [LOOKUP]},
        sent={"tools": [STRIPPED]},
        learned=["tools.function.strict is left out"],
    ),
    "groq: did you mean": Case(
        body=openai("property 'service_tier' is unsupported, did you mean 'stop'?"),
        when=has("service_tier"),
        parameters={"service_tier": "flex", "stop": ["."]},
        sent={"service_tier": None, "stop": ["."]},
        learned=["service_tier is left out"],
    ),
    "groq: reasoning of a message": Case(
        body=openai(
            "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property "
            "'reasoning_content' is unsupported)]"
        ),
        when=in_messages("reasoning_content"),
        parameters={},
        sent={"messages": [HI, {"role": "assistant", "content": "Hello."}, HI]},
        learned=["messages.reasoning_content is left out"],
        messages=(HI, {"role": "assistant", "content": "Hello.", "reasoning_content": "Hm."}, HI),
    ),
    "groq: no reasoning in a model": Case(
        body=openai("messages[1].reasoning: reasoning is not supported with this model"),
        when=in_messages("reasoning"),
        parameters={},
        sent={"messages": [HI, {"role": "assistant", "content": "Hello."}, HI]},
        learned=["messages.reasoning is left out"],
        messages=(HI, {"role": "assistant", "content": "Hello.", "reasoning": "Hm."}, HI),
    ),
    "mistral: extra inputs": Case(
        body=extra_forbidden(
            ["body", "parallel_tool_calls"], ["body", "messages", 0, "user", "name"], ["body", "service_tier"]
        ),
        when=lambda body: in_messages("name")(body) or bool({"parallel_tool_calls", "service_tier"} & body.keys()),
        parameters={"parallel_tool_calls": True, "service_tier": "flex", "tools": [LOOKUP]},
        sent={"parallel_tool_calls": None, "service_tier": None, "tools": [LOOKUP], "messages": [HI]},
        learned=["messages.name is left out", "parallel_tool_calls is left out", "service_tier is left out"],
        status=422,
        messages=({**HI, "name": "alice"},),
    ),
    "mistral: usage in a stream": Case(
        body=extra_forbidden(["body", "stream_options", "include_usage"]),
        when=has("stream_options"),
        parameters={},
        sent={"stream_options": None, "stream": True},
        learned=["stream_options.include_usage is left out"],
        status=422,
        streamed=True,
    ),
    "groq: no stream_options": Case(
        body=openai("property 'stream_options' is unsupported, did you mean 'stream'?"),
        when=has("stream_options"),
        parameters={},
        sent={"stream_options": None, "stream": True},
        learned=["stream_options is left out"],
        streamed=True,
    ),
    "xai: its own spelling": Case(
        body={
            "code": "Client specified an invalid argument",
            "error": "Argument not supported on this model: presencePenalty",
        },
        when=has("presence_penalty"),
        parameters={"presence_penalty": 0},
        sent={"presence_penalty": None},
        learned=["presence_penalty is left out"],
    ),
    "xai: a model without a parameter": Case(
        body={"code": "invalid-argument", "error": "Model grok-4.6 does not support parameter presencePenalty."},
        when=has("presence_penalty"),
        parameters={"presence_penalty": 0},
        sent={"presence_penalty": None},
        learned=["presence_penalty is left out"],
    ),
    "dashscope: no thinking in one piece": Case(
        body={
            "error": {
                "code": "invalid_parameter_error",
                "param": None,
                "message": "parameter.enable_thinking must be set to false for non-streaming calls",
                "type": "invalid_request_error",
            },
            "request_id": "1",
        },
        when=lambda body: not body.get("stream") and body.get("enable_thinking") is not False,
        parameters={},
        sent={"stream": True, "stream_options": {"include_usage": True}, "enable_thinking": None},
        learned=["stream is set to true where nothing is streamed"],
        streamed=False,
    ),
    "dashscope: a model that only streams": Case(
        body={
            "error": {
                "code": "invalid_parameter_error",
                "param": None,
                "message": "This model only support stream mode, please enable the stream parameter to access the "
                "model. ",
                "type": "invalid_request_error",
            },
            "request_id": "1",
        },
        when=lambda body: not body.get("stream"),
        parameters={"temperature": 0.2},
        sent={"stream": True, "temperature": 0.2},
        learned=["stream is set to true where nothing is streamed"],
        streamed=False,
    ),
    "codex: it only streams": Case(
        body={"detail": "Stream must be set to true"},
        when=lambda body: not body.get("stream"),
        parameters={},
        sent={"stream": True},
        learned=["stream is set to true where nothing is streamed"],
        streamed=False,
    ),
    "openrouter: the cause of somebody else": Case(
        body={
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {"raw": '{"error": {"message": "Unsupported parameter: \'top_k\'", "param": "top_k"}}'},
            }
        },
        when=has("top_k"),
        parameters={"top_k": 20},
        sent={"top_k": None},
        learned=["top_k is left out"],
    ),
    "sglang: an error with status 200": Case(
        body={"object": "error", "message": "logit_scale is not supported", "type": "BadRequestError", "code": 400},
        when=has("logit_scale"),
        parameters={"logit_scale": 1},
        sent={"logit_scale": None},
        learned=["logit_scale is left out"],
        status=200,
    ),
}

# Refusals that must be forwarded to the client: (its parameters, the refusal).
FORWARDED: dict[str, tuple[Body, Any]] = {
    "response_format": (
        {"response_format": {"type": "json_object"}},
        openai("'response_format' of type 'json_object' is not supported with this model.", "response_format"),
    ),
    "a field of response_format": (
        {"response_format": {"type": "json_schema", "strict": True}},
        openai("Unknown parameter: 'response_format.strict'.", "response_format.strict", "unknown_parameter"),
    ),
    "tool_choice": (
        {"tools": [LOOKUP], "tool_choice": "required", "enable_thinking": True},
        openai("The tool_choice parameter does not support being set to required in thinking mode"),
    ),
    "stop": ({"stop": ["."]}, openai("Unsupported parameter: 'stop'", "stop", "unsupported_parameter")),
    "stop of xai": ({"stop": ["."]}, {"code": "x", "error": "Argument not supported on this model: stop"}),
    "n": ({"n": 2}, openai("Unsupported value: 'n' does not support 2 with this model.", "n", "unsupported_value")),
    "logprobs": ({"logprobs": True}, openai("logprobs is not supported with tools + stream")),
    "tools": (
        {"tools": [LOOKUP]},
        openai("'tools' is not supported with this model.", "tools", "unsupported_parameter"),
    ),
    "a schema's own words": (
        {"tools": [{"type": "function", "function": {"name": "look", "parameters": {"additionalProperties": False}}}]},
        [{"error": {"message": "Unknown name \"additionalProperties\" at 'tools[0].function.parameters'"}}],
    ),
    "one call at a time": (
        {"tools": [LOOKUP], "parallel_tool_calls": False},
        openai("Unknown parameter: 'parallel_tool_calls'.", "parallel_tool_calls", "unknown_parameter"),
    ),
    "a limit without another name": (
        {"max_output_tokens": 5},
        openai("Unknown parameter: 'max_output_tokens'.", "max_output_tokens", "unknown_parameter"),
    ),
    "a wrong value": (
        {"temperature": 9},
        openai("Invalid 'temperature': decimal above maximum value.", "temperature", "decimal_above_max_value"),
    ),
    "a value that nobody has": (
        {"reasoning_effort": "much"},
        openai("Invalid value: 'much'. Supported values are: 'low', 'high'.", "reasoning_effort", "invalid_value"),
    ),
    "one of several values": (
        {"enable_thinking": True},
        openai("enable_thinking must be set to 'on', 'off' or 'auto'"),
    ),
    "parameters that exclude each other": (
        {"temperature": 0.2, "top_p": 0.9},
        openai("`temperature` and `top_p` cannot both be specified for this model. Please use only one."),
    ),
    "a context that is too long": (
        {"max_tokens": 50},
        openai("max_tokens is not supported: maximum context length is 8 tokens", "max_tokens"),
    ),
    "nothing that was sent": ({"seed": 7}, openai("Unknown parameter: 'verbosity'.", "verbosity", "unknown_parameter")),
}  # fmt: skip
