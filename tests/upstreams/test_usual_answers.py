"""What servers write in their own way, told to clients as OpenAI does: why an answer ended, thinking, numbers of
choices, errors within a stream, models that are not there"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.models import Agent, Run
from memories.database.access import in_thread
from tests.conftest import Api
from tests.gateway.v1 import Answer, ask, stream
from tests.upstreams.server import RuledServer

Serve = Callable[[str], RuledServer]
ways = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])

ENDS = {
    "sensitive": "content_filter",  # Z.ai
    "SAFETY": "content_filter",  # Gemini behind proxies, like the next four
    "RECITATION": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "MAX_TOKENS": "length",
    "STOP": "stop",
    "model_length": "length",  # Mistral
    "model_context_window_exceeded": "length",  # Z.ai, Anthropic
    "max_tokens": "length",  # Anthropic behind proxies, like the next two
    "refusal": "content_filter",
    "end_turn": "stop",
    "guardrail_intervened": "content_filter",  # Bedrock
    "eos_token": "stop",  # TGI
    "length": "length",
    "stop": "stop",
    "something_new": "something_new",
}


@pytest.fixture
def server(serve: Serve) -> RuledServer:
    return serve("openai")


def answers(server: RuledServer, *choices: dict[str, Any], streamed: bool, lines: tuple[str, ...] = ()) -> None:
    """Let the server give one choice (a delta, or a message, under `said`) after the other, or all in one document."""
    if not streamed:
        whole = [{**choice, "message": choice["said"]} for choice in choices]
        server.answers(200, json.dumps({"id": "1", "choices": whole}))
        return
    chunks = [{"id": "1", "choices": [{**choice, "delta": choice["said"]}]} for choice in choices]
    events = [*(f"data: {json.dumps(chunk)}" for chunk in chunks), *lines, "data: [DONE]"]
    server.answers(200, "".join(f"{event}\n\n" for event in events))


async def told(api: Api, *, streamed: bool) -> tuple[str, str]:
    """Text and end of an answer, as the client is told them."""
    if not streamed:
        answer = await ask(api, "Hi")
        assert answer.status == 200, answer.json
        return answer.text, answer.json["choices"][0]["finish_reason"]
    choices = [choice for chunk in await stream(api, "Hi") for choice in chunk["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices), choices[-1]["finish_reason"]


@ways
@pytest.mark.parametrize(("given", "end"), ENDS.items())
async def test_an_end_has_the_name_that_clients_know(
    given: str, end: str, streamed: bool, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    answers(server, {"index": 0, "said": {"content": "Well"}, "finish_reason": given}, streamed=streamed)
    assert await told(alice_api, streamed=streamed) == ("Well", end)
    run = await in_thread(Run.objects.get)
    assert run.trace.get("finish_reason") == (None if end == "stop" else end)


@pytest.mark.parametrize(
    ("given", "anthropic", "response"),
    [
        ("sensitive", "refusal", "content_filter"),
        ("model_length", "max_tokens", "max_output_tokens"),
        ("SAFETY", "refusal", "content_filter"),
    ],
)
async def test_the_other_apis_know_it_too(
    given: str, anthropic: str, response: str, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    answers(server, {"index": 0, "said": {"content": "Well"}, "finish_reason": given}, streamed=False)
    messages = [{"role": "user", "content": "Hi"}]
    _, said = await alice_api.post("/v1/messages", {"model": "assistant", "max_tokens": 9, "messages": messages})
    assert said["stop_reason"] == anthropic
    _, made = await alice_api.post("/v1/responses", {"model": "assistant", "input": "Hi"})
    assert (made["status"], made["incomplete_details"]) == ("incomplete", {"reason": response})


@ways
@pytest.mark.parametrize("given", ["MALFORMED_FUNCTION_CALL", "malformed_function_call", "UNEXPECTED_TOOL_CALL"])
async def test_a_call_that_its_server_could_not_read_is_no_answer(
    given: str, streamed: bool, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    answers(server, {"index": 0, "said": {"content": ""}, "finish_reason": given}, streamed=streamed)
    answer = await ask(alice_api, "Hi", stream=streamed)
    assert (answer.status, answer.code) == (400, "tool_use_failed")


THOUGHTS: list[dict[str, Any]] = [
    {"thinking": "They greet me."},
    {"thinking": [{"type": "text", "text": "They greet me."}]},
    {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "They greet me."}]}]},
    {"content": [{"type": "thinking", "thinking": "They greet me."}]},
    {"reasoning_content": "They greet me."},
]


@ways
@pytest.mark.parametrize("thought", THOUGHTS)
async def test_thinking_is_kept_in_whichever_field_it_comes(
    thought: dict[str, Any], streamed: bool, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    content = [*thought.get("content", ()), {"type": "text", "text": "Hello."}] if "content" in thought else "Hello."
    if streamed:
        parts = [{"said": thought}, {"said": {"content": "Hello."}}, {"said": {}, "finish_reason": "stop"}]
        answers(server, *({"index": 0, **part} for part in parts), streamed=True)
    else:
        said = {"index": 0, "said": {**thought, "content": content}, "finish_reason": "stop"}
        answers(server, said, streamed=False)
    text, _ = await told(alice_api, streamed=streamed)
    run = await in_thread(Run.objects.get)
    assert (run.text, run.reasoning) == ("Hello.", "They greet me.")
    assert streamed or "thinking" not in text


@ways
@pytest.mark.parametrize("index", [0, 1, "0", "1", None, 7])
async def test_the_only_choice_is_the_answer_whatever_its_number(
    index: Any, streamed: bool, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    parts = [{"said": {"content": "Hello."}}, {"said": {"content": " Bye."}, "finish_reason": "stop"}]
    parts = parts if streamed else [{"said": {"content": "Hello. Bye."}, "finish_reason": "stop"}]
    answers(server, *({"index": index, **part} for part in parts), streamed=streamed)
    assert await told(alice_api, streamed=streamed) == ("Hello. Bye.", "stop")
    assert (await in_thread(Run.objects.get)).text == "Hello. Bye."


async def test_of_several_choices_that_were_asked_for_each_keeps_its_number(
    server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    parts = [{"index": at, "said": {"content": text}, "finish_reason": "STOP"} for at, text in (("1", "B"), (0, "A"))]
    answers(server, *parts, streamed=True)
    chunks = await stream(alice_api, "Hi", n=2)
    said = [(choice["index"], choice["delta"].get("content")) for chunk in chunks for choice in chunk["choices"]]
    assert {(1, "B"), (0, "A")} <= set(said)


WORDS = "The model is overloaded"
ERRORS = {
    "json without `error`": (f'event: error\ndata: {{"message": "{WORDS}", "code": 529}}', WORDS),
    "a detail": (f'event: error\ndata: {{"detail": "{WORDS}"}}', WORDS),
    "usual": (f'event: error\ndata: {{"error": {{"message": "{WORDS}"}}}}', WORDS),
    "plain words": (f"event: error\ndata: {WORDS}", WORDS),
    "a text": (f'event:error\r\ndata:"{WORDS}"', WORDS),
    "a page of a proxy": ("event: error\ndata: <html><h1>502</h1></html>", "broke off with an error."),
    "a number": ("event: error\ndata: 500", "broke off with an error."),
    "llama.cpp before September 2025": (f'error: {{"code": 500, "message": "{WORDS}"}}', WORDS),
}


@pytest.mark.parametrize("name", ERRORS)
async def test_an_error_event_is_an_error_whatever_it_holds(
    name: str, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    event, words = ERRORS[name]
    answers(server, {"index": 0, "said": {"content": "Well"}}, streamed=True, lines=(event,))
    status, text = await alice_api.stream(
        "/v1/chat/completions",
        {"model": "assistant", "messages": [{"role": "user", "content": "Hi"}], "stream": True},
    )
    assert status == 200
    assert words in text, text
    assert "<html>" not in text
    assert (await in_thread(Run.objects.get)).state == "failed"


async def test_an_event_of_another_kind_says_nothing_of_errors(
    server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    answers(
        server,
        {"index": 0, "said": {"content": "Well"}, "finish_reason": "stop"},
        streamed=True,
        lines=("event: error\n\nevent: ping\ndata: {}",),
    )
    assert await told(alice_api, streamed=True) == ("Well", "stop")


# LiteLLM (BerriAI/litellm#8821, #3142, continuedev/continue#11177), OpenRouter (RightNow-AI/openfang#697), DeepSeek
# (deepwn/addi#13), Mistral (tmc/langchaingo#1233), in this order
NO_MODEL: list[Any] = [
    {"error": {"message": {"error": "/chat/completions: Invalid model name passed in model=x. Call "
                           "`/v1/models` to view available models for your key."},
               "type": "None", "param": "None", "code": "400"}},
    {"error": {"message": "400: {'error': 'Invalid model name passed in model=x'}", "type": "None", "code": 400}},
    {"error": "/chat/completions: Invalid model name passed in model=x. Call `/v1/models` to view available models."},
    {"detail": {"error": "Invalid model name passed in model=x"}},
    {"error": {"message": "x is not a valid model ID", "code": 400}, "user_id": "user_1"},
    {"error": {"message": "Model Not Exist", "type": "invalid_request_error", "param": None,
               "code": "invalid_request_error"}},
    {"object": "error", "message": "Invalid model: x", "type": "invalid_model", "param": None, "code": "1500"},
    {"error": {"message": "The model `x` does not exist", "type": "invalid_request_error", "code": "model_not_found"}},
]  # fmt: skip


@pytest.mark.parametrize("says", NO_MODEL)
async def test_an_unknown_model_is_that_whatever_its_status(
    says: Any, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    server.answers(400, json.dumps(says))
    answer: Answer = await ask(alice_api, "Hi")
    assert answer.status == 502
    assert answer.json["error"]["message"] == "The model server does not know this model."


# FastAPI, Go, llama.cpp, Azure, OpenAI, Express, LM Studio, a proxy, TGI
NOTHING_THERE = [
    '{"detail": "Not Found"}',
    "404 page not found",
    '{"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}',
    '{"error": {"code": "404", "message": "Resource not found"}}',
    '{"error": {"message": "Invalid URL (POST /chat/completions)", "type": "invalid_request_error", "code": null}}',
    "<!DOCTYPE html><html><body><pre>Cannot POST /chat/completions</pre></body></html>",
    '{"error": "Unexpected endpoint or method. (POST /chat/completions)"}',
    "<html>\r\n<head><title>404 Not Found</title></head></html>",
    "",
]  # fmt: skip
# Ollama, vLLM, Gemini, Azure, OpenRouter
NO_SUCH_MODEL = [
    "model 'x' not found",
    "The model `x` does not exist.",
    "models/x is not found for API version v1main",
    "The API deployment for this resource does not exist.",
    "No endpoints found for x.",
]


@pytest.mark.parametrize("says", NOTHING_THERE)
async def test_a_wrong_address_is_not_told_as_an_unknown_model(
    says: str, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    server.answers(404, says)
    answer: Answer = await ask(alice_api, "Hi")
    assert answer.json["error"]["message"] == "The model server has nothing at this address."


@pytest.mark.parametrize("says", NO_SUCH_MODEL)
async def test_an_unknown_model_is_not_told_as_a_wrong_address(
    says: str, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    server.answers(404, json.dumps({"error": {"message": says}}))
    answer: Answer = await ask(alice_api, "Hi")
    assert answer.json["error"]["message"] == "The model server does not know this model."


async def test_a_refusal_that_speaks_of_models_is_the_client_s(
    server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    says = {"error": {"message": "Invalid value for 'seed': not valid for this model", "param": "seed"}}
    server.answers(400, json.dumps(says))
    assert (await ask(alice_api, "Hi")).status == 400
