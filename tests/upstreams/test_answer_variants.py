"""Servers' variants translated for clients to OpenAI's form: finish reasons, thinking, choice indexes, errors within a
stream, unknown models."""

import json
from typing import Any

import pytest

from gateway.models import Agent, Run
from memories.database.access import in_thread
from tests.conftest import Api
from tests.gateway.v1 import Answer, ask, stream, streamed_and_not
from tests.upstreams.server import RuledServer

pytestmark = pytest.mark.any_database

FINISH_REASONS = {
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


def answer_with(server: RuledServer, *choices: dict[str, Any], streamed: bool, lines: tuple[str, ...] = ()) -> None:
    """Make the server answer with these choices, in one chunk each or in one document. `said` is a choice's delta or
    message."""
    if not streamed:
        whole = [{**choice, "message": choice["said"]} for choice in choices]
        server.always_answer(200, json.dumps({"id": "1", "choices": whole}))
        return
    chunks = [{"id": "1", "choices": [{**choice, "delta": choice["said"]}]} for choice in choices]
    events = [*(f"data: {json.dumps(chunk)}" for chunk in chunks), *lines, "data: [DONE]"]
    server.always_answer(200, "".join(f"{event}\n\n" for event in events))


async def client_answer(api: Api, *, streamed: bool) -> tuple[str, str]:
    """Return the text and finish reason that the client gets."""
    if not streamed:
        answer = await ask(api, "Hi")
        assert answer.status == 200, answer.json
        return answer.text, answer.json["choices"][0]["finish_reason"]
    choices = [choice for chunk in await stream(api, "Hi") for choice in chunk["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices), choices[-1]["finish_reason"]


@streamed_and_not
@pytest.mark.parametrize(("given", "end"), FINISH_REASONS.items())
async def test_finish_reasons_are_translated_for_clients(
    given: str, end: str, streamed: bool, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    answer_with(server, {"index": 0, "said": {"content": "Well"}, "finish_reason": given}, streamed=streamed)
    assert await client_answer(alice_api, streamed=streamed) == ("Well", end)
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
async def test_the_other_apis_translate_finish_reasons_too(
    given: str, anthropic: str, response: str, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    answer_with(server, {"index": 0, "said": {"content": "Well"}, "finish_reason": given}, streamed=False)
    messages = [{"role": "user", "content": "Hi"}]
    _, message = await alice_api.post("/v1/messages", {"model": "assistant", "max_tokens": 9, "messages": messages})
    assert message["stop_reason"] == anthropic
    _, created = await alice_api.post("/v1/responses", {"model": "assistant", "input": "Hi"})
    assert (created["status"], created["incomplete_details"]) == ("incomplete", {"reason": response})


@streamed_and_not
@pytest.mark.parametrize("given", ["MALFORMED_FUNCTION_CALL", "malformed_function_call", "UNEXPECTED_TOOL_CALL"])
async def test_a_call_that_the_server_could_not_parse_is_an_error(
    given: str, streamed: bool, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    answer_with(server, {"index": 0, "said": {"content": ""}, "finish_reason": given}, streamed=streamed)
    answer = await ask(alice_api, "Hi", stream=streamed)
    assert (answer.status, answer.code) == (400, "tool_use_failed")


THOUGHTS: list[dict[str, Any]] = [
    {"thinking": "They greet me."},
    {"thinking": [{"type": "text", "text": "They greet me."}]},
    {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "They greet me."}]}]},
    {"content": [{"type": "thinking", "thinking": "They greet me."}]},
    {"reasoning_content": "They greet me."},
]


@streamed_and_not
@pytest.mark.parametrize("thought", THOUGHTS)
async def test_thinking_is_found_in_any_field(
    thought: dict[str, Any], streamed: bool, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    content = [*thought.get("content", ()), {"type": "text", "text": "Hello."}] if "content" in thought else "Hello."
    if streamed:
        parts = [{"said": thought}, {"said": {"content": "Hello."}}, {"said": {}, "finish_reason": "stop"}]
        answer_with(server, *({"index": 0, **part} for part in parts), streamed=True)
    else:
        choice = {"index": 0, "said": {**thought, "content": content}, "finish_reason": "stop"}
        answer_with(server, choice, streamed=False)
    text, _ = await client_answer(alice_api, streamed=streamed)
    run = await in_thread(Run.objects.get)
    assert (run.text, run.reasoning) == ("Hello.", "They greet me.")
    assert streamed or "thinking" not in text


@pytest.mark.parametrize("thinking", ["They greet me.", [{"type": "text", "text": "They greet me."}]])
async def test_thinking_among_the_parts_of_a_content_reaches_clients(
    thinking: Any, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    part, end = {"type": "thinking", "thinking": thinking}, {"index": 0, "said": {}, "finish_reason": "stop"}
    deltas = [{"content": [part]}, {"content": [{"type": "text", "text": "Hello."}]}]
    answer_with(server, *({"index": 0, "said": delta} for delta in deltas), end, streamed=True)
    received = [choice["delta"] for chunk in await stream(alice_api, "Hi") for choice in chunk["choices"]]
    assert [delta["reasoning_content"] for delta in received if "reasoning_content" in delta] == ["They greet me."]
    assert "".join(delta.get("content") or "" for delta in received) == "Hello."  # no delta's content is a list

    body = {"model": "assistant", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    _, events = await alice_api.stream("/v1/messages", body)
    assert '"type": "thinking_delta", "thinking": "They greet me."' in events
    _, events = await alice_api.stream("/v1/responses", {"model": "assistant", "input": "Hi", "stream": True})
    assert "response.reasoning_text.delta" in events

    message = {"content": [part, {"type": "text", "text": "Hello."}]}
    answer_with(server, {"index": 0, "said": message, "finish_reason": "stop"}, streamed=False)
    whole = (await ask(alice_api, "Hi")).json["choices"][0]["message"]
    assert (whole["content"], whole["reasoning_content"]) == ("Hello.", "They greet me.")


# MiniMax (QuantumNous/new-api#5833), Perplexity
@pytest.mark.parametrize("delta", [{}, {"delta": {}}, {"delta": None}, {"delta": {"role": "assistant", "content": ""}}])
async def test_a_message_that_repeats_the_whole_stream_is_left_out(
    delta: dict[str, Any], server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    whole = {"role": "assistant", "reasoning_content": "They greet me.", "content": "Hello."}
    last = {"index": 0, "finish_reason": "stop", "message": whole, **delta}
    choices = [{"index": 0, "delta": {name: whole[name]}} for name in ("reasoning_content", "content")]
    events = [f"data: {json.dumps({'choices': [choice]})}" for choice in (*choices, last)]
    server.always_answer(200, "".join(f"{event}\n\n" for event in (*events, "data: [DONE]")))
    received = [choice for chunk in await stream(alice_api, "Hi") for choice in chunk["choices"]]
    assert all("message" not in choice for choice in received)
    run = await in_thread(Run.objects.get)
    assert (run.text, run.reasoning) == ("Hello.", "They greet me.")
    body = {"model": "assistant", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    _, text = await alice_api.stream("/v1/messages", body)
    assert text.count("They greet me.") == 1


@streamed_and_not
@pytest.mark.parametrize("index", [0, 1, "0", "1", None, 7])
async def test_the_only_choice_is_the_answer_whatever_its_index(
    index: Any, streamed: bool, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    parts = [{"said": {"content": "Hello."}}, {"said": {"content": " Bye."}, "finish_reason": "stop"}]
    parts = parts if streamed else [{"said": {"content": "Hello. Bye."}, "finish_reason": "stop"}]
    answer_with(server, *({"index": index, **part} for part in parts), streamed=streamed)
    assert await client_answer(alice_api, streamed=streamed) == ("Hello. Bye.", "stop")
    assert (await in_thread(Run.objects.get)).text == "Hello. Bye."


@pytest.mark.parametrize("role", ["model", None, 7])  # Gemini's, behind proxies
async def test_an_answer_has_the_role_and_the_index_that_clients_expect(
    role: Any, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    answer_with(server, {"said": {"role": role, "content": "Hello."}, "finish_reason": "stop"}, streamed=False)
    title = "### Task:\nGenerate a concise title for the chat.\n<chat_history>\nUSER: Hi\n</chat_history>"
    for headers in ({}, {"X-OpenWebUI-Task": "title_generation"}):
        (choice,) = (await ask(alice_api, title, headers=headers)).json["choices"]
        assert (choice["index"], choice["message"]["role"]) == (0, "assistant")


async def test_several_requested_choices_keep_their_index(server: RuledServer, alice_api: Api, agent: Agent) -> None:
    parts = [{"index": at, "said": {"content": text}, "finish_reason": "STOP"} for at, text in (("1", "B"), (0, "A"))]
    answer_with(server, *parts, streamed=True)
    chunks = await stream(alice_api, "Hi", n=2)
    received = [(choice["index"], choice["delta"].get("content")) for chunk in chunks for choice in chunk["choices"]]
    assert {(1, "B"), (0, "A")} <= set(received)


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
async def test_an_error_event_is_an_error_whatever_its_data(
    name: str, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    event, words = ERRORS[name]
    answer_with(server, {"index": 0, "said": {"content": "Well"}}, streamed=True, lines=(event,))
    status, text = await alice_api.stream(
        "/v1/chat/completions",
        {"model": "assistant", "messages": [{"role": "user", "content": "Hi"}], "stream": True},
    )
    assert status == 200
    assert words in text, text
    assert "<html>" not in text
    assert (await in_thread(Run.objects.get)).state == "failed"


async def test_other_events_are_no_errors(server: RuledServer, alice_api: Api, agent: Agent) -> None:
    answer_with(
        server,
        {"index": 0, "said": {"content": "Well"}, "finish_reason": "stop"},
        streamed=True,
        lines=("event: error\n\nevent: ping\ndata: {}",),
    )
    assert await client_answer(alice_api, streamed=True) == ("Well", "stop")


# LiteLLM (BerriAI/litellm#8821, #3142, continuedev/continue#11177), OpenRouter (RightNow-AI/openfang#697), DeepSeek
# (deepwn/addi#13), Mistral (tmc/langchaingo#1233), in this order
UNKNOWN_MODEL: list[Any] = [
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


@pytest.mark.parametrize("body", UNKNOWN_MODEL)
async def test_an_unknown_model_is_recognised_whatever_the_status(
    body: Any, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    server.always_answer(400, json.dumps(body))
    answer: Answer = await ask(alice_api, "Hi")
    assert answer.status == 502
    assert answer.json["error"]["message"] == "The model server does not know this model."


# FastAPI, Go, llama.cpp, Azure, OpenAI, Express, LM Studio, a proxy, TGI
WRONG_ADDRESS = [
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
UNKNOWN_MODEL_404 = [
    "model 'x' not found",
    "The model `x` does not exist.",
    "models/x is not found for API version v1main",
    "The API deployment for this resource does not exist.",
    "No endpoints found for x.",
]


@pytest.mark.parametrize("body", WRONG_ADDRESS)
async def test_a_wrong_address_is_not_reported_as_an_unknown_model(
    body: str, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    server.always_answer(404, body)
    answer: Answer = await ask(alice_api, "Hi")
    assert answer.json["error"]["message"] == "The model server has nothing at this address."


@pytest.mark.parametrize("body", UNKNOWN_MODEL_404)
async def test_an_unknown_model_is_not_reported_as_a_wrong_address(
    body: str, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    server.always_answer(404, json.dumps({"error": {"message": body}}))
    answer: Answer = await ask(alice_api, "Hi")
    assert answer.json["error"]["message"] == "The model server does not know this model."


async def test_a_refusal_that_mentions_models_is_the_clients_error(
    server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    body = {"error": {"message": "Invalid value for 'seed': not valid for this model", "param": "seed"}}
    server.always_answer(400, json.dumps(body))
    assert (await ask(alice_api, "Hi")).status == 400
