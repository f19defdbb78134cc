"""Model servers' errors: parsed in every form, reported without keys and addresses."""

import json
from typing import Any

import httpx2
import pytest
from pytest_django.fixtures import Settings

from gateway.errors import RequestRefused, UpstreamRefused, UpstreamUnreachable
from gateway.models import Agent, Run
from gateway.upstream import ModelRequest, OpenAIModel
from gateway.upstream.error_body import read_error
from gateway.upstream.fault_classes import fault_class
from gateway.upstream.faults import refusal_error
from memories.database.access import in_thread
from memories.errors import DomainError, RateLimited
from memories.models import Memory
from tests.conftest import Api
from tests.gateway.v1 import answer_text, ask, streamed_and_not
from tests.scripted_model import Says, ScriptedModel, calls
from tests.upstreams.rules import RULES, error_body
from tests.upstreams.server import KEY, Serve, Step

pytestmark = pytest.mark.any_database

TEXT = "That is not allowed."
CONTEXT_ERROR = "context_length_exceeded"


@pytest.mark.parametrize("form", sorted({rules.error_form for rules in RULES.values()}))
def test_every_error_form_is_read(form: str) -> None:
    assert TEXT in read_error(json.dumps(error_body(form, 400, TEXT))).message


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (error_body("openai", 400, TEXT, code="unsupported", param="max_tokens"), "unsupported", "max_tokens"),
        (error_body("openai", 400, TEXT, code="context_length_exceeded"), CONTEXT_ERROR, None),
        (error_body("flat", 400, "maximum context length is 8"), CONTEXT_ERROR, None),
        (error_body("detail", 422, TEXT, param="stream_options"), "", "stream_options"),
        ({"object": "error", "message": TEXT, "type": "invalid_request_message_order", "code": "3230"}, "3230", None),
        ({"error": {"code": "content_filter", "message": TEXT, "param": "prompt"}}, "content_filter", "prompt"),
        ({"error": {"message": TEXT, "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, "content_filter", None),
        ({"error": {"code": 400, "message": TEXT, "type": "exceed_context_size_error"}}, CONTEXT_ERROR, None),
        (error_body("openai", 400, "litellm.ContextWindowExceededError: too much", code="400"), CONTEXT_ERROR, None),
        (error_body("text", 400, "The model is loaded with context length of only 4096 tokens"), CONTEXT_ERROR, None),
        (error_body("text", 422, "`inputs` tokens + `max_new_tokens` must be <= 4096"), CONTEXT_ERROR, None),
        ({"object": "error", "message": TEXT, "code": 400}, "", None),
        ({"detail": [{"loc": ["body", "tools", 0], "msg": TEXT}]}, "", "tools.0"),
        ({"error": {"message": TEXT, "code": {"no": "code"}, "param": ["x"]}}, "", None),
        ({"error": {"message": TEXT, "code": "a code with blanks"}}, "", None),
        (TEXT, "", None),
    ],
)  # fmt: skip
def test_code_and_param_are_found(body: Any, code: str, param: str | None) -> None:
    error = read_error(json.dumps(body) if not isinstance(body, str) else body)
    assert (error.code, error.param) == (code, param)
    assert error.message


# vLLM (three), Ollama, Bedrock, xAI, Anthropic, MiniMax, DashScope, GitHub Copilot
TOO_LONG = [
    "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "The model's context length is only 4096 tokens.",
    "Input length (5000) exceeds model's maximum context length (4096).",
    "prompt too long; exceeded max context length by 904 tokens",
    "Input is too long for requested model.",
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "invalid params, context window exceeds limit (2013)",
    "Range of input length should be [1, 129024]",
    "prompt token count of 140000 exceeds the limit of 128000",
]


@pytest.mark.parametrize("message", TOO_LONG)
def test_a_context_that_is_too_long_is_recognised(message: str) -> None:
    assert read_error({"error": {"message": message, "code": None}}).code == CONTEXT_ERROR


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe", "null", "[]", "[[[[1]]]]", "5", '{"error": 5}', '{"error": []}', "{" * 100]
)
def test_bodies_without_an_error_can_be_read(body: Any) -> None:
    assert read_error(body).code == ""


@pytest.mark.parametrize(
    "secret",
    ["https://10.0.0.7:8080/v1/models", "sk-proj-abcdef012345", "Bearer abcdefg", "AIzaSyA1234567890123", "my-own-key"],
)
def test_keys_and_addresses_are_never_quoted(secret: str) -> None:
    message = read_error({"error": f"Wrong: {secret} was refused."}, secrets=["my-own-key", ""]).message
    assert secret.removeprefix("Bearer ") not in message
    assert message.startswith("Wrong: ")
    assert message.endswith("was refused.")


async def test_a_refusal_keeps_code_and_param(serve: Serve, alice_api: Api, agent: Agent) -> None:
    server = serve("openai")
    server.script(Step(refused=TEXT, code="unsupported_value", param="stop"))
    answer = await ask(alice_api, "Hi", stop=["."])
    error = answer.json["error"]
    assert answer.status == 400
    assert (error["type"], error["code"], error["param"]) == (
        "invalid_request_error",
        "unsupported_value",
        "stop",
    )
    assert (await in_thread(Run.objects.get)).error["code"] == "unsupported_value"


# Anthropic, OpenAI, DashScope, Kimi; xAI, Gemini
NO_CREDIT: list[tuple[int, Any]] = [
    (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low to "
                                      "access the Anthropic API. Please go to Plans & Billing."}}),
    (400, {"error": {"message": "litellm.BadRequestError: AnthropicException - Your credit balance is too low to "
                     "access the Anthropic API.", "code": "400"}}),
    (429, {"error": {"message": "Your account is not active, please check your billing details.",
                     "type": "billing_not_active", "code": "billing_not_active"}}),
    (400, {"error": {"code": "Arrearage", "message": "Access denied, please make sure your account is in good "
                     "standing.", "type": "Arrearage"}}),
    (429, {"error": {"message": "Your account is suspended, please check your plan and billing details",
                     "type": "exceeded_current_quota_error"}}),
]  # fmt: skip
WRONG_KEY: list[tuple[int, Any]] = [
    (400, {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: xa***Ab. You can "
           "obtain an API key from https://console.x.ai."}),
    (400, [{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.",
                      "status": "INVALID_ARGUMENT"}}]),
    (400, [{"error": {"code": 400, "message": "API key expired. Please renew the API key.",
                      "status": "INVALID_ARGUMENT"}}]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [(*row, "The model server says that its account has no credit left.") for row in NO_CREDIT]
    + [(*row, "The model server refused the gateway's key.") for row in WRONG_KEY],
)
async def test_a_key_or_credit_that_is_missing_is_never_the_clients_error(
    serve: Serve, status: int, body: Any, message: str
) -> None:
    serve("openai").always_answer(status, json.dumps(body))
    error = await failure(streamed=True)
    assert (str(error), fault_class(error).name) == (message, "locked")


ERRORS: list[tuple[int, Any, type[DomainError]]] = [
    (429, {"error": {"message": "No.", "code": "insufficient_quota"}}, UpstreamRefused),
    (429, {"error": {"message": "No.", "code": "rate_limit_exceeded"}}, RateLimited),
    (402, {"error": {"message": "Insufficient Balance"}}, UpstreamRefused),
    (413, {"error": "prompt is too long"}, RequestRefused),
    (400, {"error": {"message": "No."}}, RequestRefused),
    (401, {"error": "Unauthorized"}, UpstreamRefused),
    (404, {"error": {"message": "No."}}, UpstreamRefused),
    (500, {"error": {"message": "No."}}, UpstreamRefused),
    (503, {"error": {"message": "Loading model", "code": 503}}, UpstreamRefused),
    (200, {"error": {"message": "maximum context length is 8", "code": 400}}, RequestRefused),
    (200, {"object": "error", "message": "No.", "code": 400}, RequestRefused),
    (200, [{"error": {"message": "No.", "code": 429}}], RateLimited),
    (200, {"error": {"message": "CUDA error"}}, UpstreamUnreachable),
    (200, {"error": {"message": "Failed to call a function.", "code": "tool_use_failed"}}, RequestRefused),
]


async def failure(*, streamed: bool) -> DomainError:
    messages = ({"role": "user", "content": "Hi"},)
    wire, request = OpenAIModel(), ModelRequest(upstream="default", model="m", messages=messages)
    answer = read_stream(wire, request) if streamed else wire.complete(request)
    with pytest.raises(DomainError) as raised:
        await answer
    return raised.value


async def read_stream(wire: OpenAIModel, request: ModelRequest) -> list[Any]:
    return [chunk async for chunk in wire.stream(request)]


@pytest.mark.parametrize(("status", "body", "kind"), ERRORS)
@streamed_and_not
async def test_errors_are_mapped_to_their_types(
    serve: Serve, status: int, body: Any, kind: type[DomainError], streamed: bool
) -> None:
    serve("openai").always_answer(status, json.dumps(body))
    error = await failure(streamed=streamed)
    assert type(error) is kind
    assert status == 200 or error.details["status"] in {status, 402}, "a 429 may mean that there is no credit left"


@pytest.mark.parametrize(
    ("body", "kind"), [(body, kind) for status, body, kind in ERRORS if status == 200 and isinstance(body, dict)]
)
async def test_errors_within_a_stream_are_mapped_to_their_types(
    serve: Serve, body: Any, kind: type[DomainError]
) -> None:
    serve("openai").always_answer(200, f'data: {{"choices": []}}\n\ndata: {json.dumps(body)}\n\n')
    assert type(await failure(streamed=True)) is kind


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            '{"error": {"code": 500, "message": "Failed to parse tool call arguments."}}',
            ": Failed to parse tool call arguments.",
        ),
        (f'{{"error": "No memory at http://10.0.0.7/ with {KEY}"}}', ": No memory at … with …"),
        ("<html><h1>Bad Gateway</h1></html>", "."),
        ("", "."),
    ],
)
async def test_a_server_error_is_reported_with_its_reason(serve: Serve, body: str, reason: str) -> None:
    serve("openai").always_answer(500, body)
    for streamed in (False, True):
        assert str(await failure(streamed=streamed)) == f"The model server answered with an error (500){reason}"


async def test_parameters_that_no_endpoint_supports_are_the_clients_error(serve: Serve) -> None:
    """OpenRouter reports them like a missing model."""
    words = "No endpoints found that can handle the requested parameters."
    serve("openrouter").always_answer(404, json.dumps({"error": {"message": words, "code": 404}}))
    error = await failure(streamed=True)
    assert (error.http_status, fault_class(error).name) == (400, "refusal")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            403,
            {
                "error": {
                    "code": 403,
                    "message": "m requires moderation. Your input was flagged.",
                    "metadata": {"reasons": ["violence"], "flagged_input": "A fight"},
                }
            },
        ),
        (400, {"error": {"code": "data_inspection_failed", "message": "Inappropriate content."}}),
    ],
    ids=["OpenRouter", "DashScope"],
)
async def test_a_filter_is_the_clients_error(serve: Serve, status: int, body: Any) -> None:
    """A client must not lock a model for the others."""
    serve("openai").always_answer(status, json.dumps(body))
    error = await failure(streamed=True)
    assert (error.as_json()["error"]["code"], fault_class(error).name) == ("content_filter", "refusal")


# OpenRouter, llama.cpp (two), Ollama, DeepSeek, OpenAI, vLLM, xAI
NO_PICTURES = [
    (404, "No endpoints found that support image input"),
    (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
    (500, 'Failed to parse messages: Unsupported content part type: "image_url"; messages = []'),
    (400, "this model does not support image input"),
    (400, "Failed to deserialize the JSON body: messages[1]: unknown variant `image_url`, expected `text`"),
    (400, "Invalid content type. image_url is only supported by certain models."),
    (400, "/models/DeepSeek-V3 is not a multimodal model"),
    (400, "Image inputs are not supported by this model."),
]


@pytest.mark.parametrize(("status", "message"), NO_PICTURES)
async def test_a_model_without_pictures_is_neither_missing_nor_broken(serve: Serve, status: int, message: str) -> None:
    """Another model may answer. This one is not withheld from people who send no pictures."""
    serve("openai").always_answer(status, json.dumps({"error": {"message": message, "code": status}}))
    error = await failure(streamed=True)
    kind = fault_class(error)
    assert (kind.name, kind.fall_back, kind.unhealthy, kind.retries) == ("media", True, False, 0)
    assert (error.http_status, error.as_json()["error"]["code"]) == (400, "invalid_request")


def test_a_wait_in_the_body_is_used_if_there_is_none_in_the_headers() -> None:
    """Gemini sends no Retry-After."""
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}, None, {"retryDelay": 5}]
    body = json.dumps([{"error": {"code": 429, "message": "Quota exceeded.", "details": details}}]).encode()
    for headers, seconds in (({}, 35), ({"Retry-After": "7"}, 7)):
        response = httpx2.Response(429, headers=headers, request=httpx2.Request("POST", "http://m"), content=body)
        error = refusal_error(response, response.content)
        assert error.details["retry_after"] == seconds


async def test_too_many_steps_are_reported_as_such(
    alice_api: Api, agent: Agent, model: ScriptedModel, settings: Settings
) -> None:
    settings.RUN_STEPS = 2
    step = calls(("search_memories", '{"query": "tea"}'))
    model.script(step, step)
    answer = await ask(alice_api, "Hi")
    error = answer.json["error"]
    assert (answer.status, error["code"], error["details"]["reason"]) == (502, "upstream_error", "too_many_steps")
    assert "too many steps (2)" in error["message"]


@streamed_and_not
async def test_the_text_of_the_last_step_is_the_answer_whatever_it_calls(
    alice_api: Api, agent: Agent, model: ScriptedModel, settings: Settings, streamed: bool
) -> None:
    """The last step is offered no tools of ours, but some models call them because the conversation contains calls."""
    settings.RUN_STEPS = 2
    search, add = ("search_memories", '{"query": "tea"}'), ("add_memory", '{"content": "Likes tea."}')
    model.script(calls(search), Says(pieces=("You like tea.",), calls=(add,)))
    assert await answer_text(alice_api, "Hi", streamed=streamed) == "You like tea."
    run = await in_thread(Run.objects.get)
    assert (run.state, run.text, await in_thread(Memory.objects.exists)) == ("completed", "You like tea.", False)
    last = await in_thread(run.messages.latest, "seq")
    assert (last.role, last.text, last.calls) == ("assistant", "You like tea.", [])
