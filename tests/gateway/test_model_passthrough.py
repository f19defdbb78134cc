"""POST /v1/embeddings and POST /v1/completions are passed through to the model server"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from pytest_django.fixtures import Settings

from gateway import upstream as upstreams
from gateway.models import Message, Run, Session, UsageDay
from gateway.upstream import OpenAIModel, ResilientModel
from gateway.upstream.attempts import outcomes
from memories.database.access import in_thread
from memories.limits import INPUTS
from memories.models import Owner
from tests.conftest import Api
from tests.factories import agent_make, key_make
from tests.upstreams.server import connect_to

pytestmark = [pytest.mark.any_database, pytest.mark.usefixtures("agent")]

EMBEDDINGS, COMPLETIONS = "/v1/embeddings", "/v1/completions"
USAGE = {"prompt_tokens": 4, "total_tokens": 4}
VECTORS = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": "AACAPw=="}],
    "model": "embed-1",
    "usage": USAGE,
    "beside": True,
}
CHOICE = {"index": 0, "text": "b():", "finish_reason": None, "logprobs": None}
COMPLETED = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "small", "choices": [CHOICE]}


@dataclass(slots=True)
class Server(httpx2.AsyncBaseTransport):
    """The transport of a model server. It records the requests and gives the `answers` in turn, repeating the last one.
    An answer is `(status, JSON or lines of a stream)`."""

    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    headers: list[httpx2.Headers] = field(default_factory=list)
    answers: list[tuple[int, Any]] = field(default_factory=list)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append((str(request.url), json.loads(await request.aread())))
        self.headers.append(request.headers)
        status, answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, list):
            text = "".join(f"data: {line if isinstance(line, str) else json.dumps(line)}\n\n" for line in answer)
            return httpx2.Response(status, headers={"content-type": "text/event-stream"}, content=text.encode())
        return httpx2.Response(status, json=answer)

    @property
    def body(self) -> dict[str, Any]:
        return self.requests[-1][1]


@pytest.fixture
def server(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Yield the server behind two upstreams."""
    transport = Server()

    async def at_once(seconds: float) -> None:
        pass

    upstreams.install(ResilientModel(OpenAIModel(), sleep=at_once))
    settings.EMBEDDING_MODEL = "embed-1"
    settings.DAYBOOK_UPSTREAMS = {
        "default": {"url": "http://127.0.0.1:1/v1", "key": "k1"},
        "local": {"url": "http://127.0.0.2:1/v1", "key": "k2"},
    }
    connect_to(transport, monkeypatch)
    yield transport
    outcomes.clear()


def set_options(settings: Settings, **options: Any) -> None:
    configured = settings.DAYBOOK_UPSTREAMS
    settings.DAYBOOK_UPSTREAMS = {**configured, "default": {**configured["default"], "options": options}}


@pytest.mark.parametrize(
    "fields",
    [
        {"input": "Likes tea."},
        {"input": ["Likes tea.", "Likes milk."], "encoding_format": "base64", "dimensions": 4, "user": "u1"},
        {"input": [1, 2, 3] * 2_000},
        {"input": [[1, 2], [3]], "never_heard_of": {"x": 1}},
    ],
)
async def test_embeddings_are_passed_through_unchanged(alice_api: Api, server: Server, fields: dict[str, Any]) -> None:
    server.answers = [(200, VECTORS)]
    status, answer = await alice_api.post(EMBEDDINGS, {"model": "assistant", **fields})
    assert (status, answer) == (200, VECTORS)
    assert server.requests == [("http://127.0.0.1:1/v1/embeddings", {"model": "embed-1", **fields})]


async def test_embeddings_use_the_first_upstream_of_the_agent(alice_api: Api, alice: Owner, server: Server) -> None:
    await in_thread(lambda: agent_make("near", upstream=["local", "default"], model=["a", "b"]))
    server.answers = [(200, VECTORS)]
    assert (await alice_api.post(EMBEDDINGS, {"model": "near", "input": "x"}))[0] == 200
    assert server.requests == [("http://127.0.0.2:1/v1/embeddings", {"model": "embed-1", "input": "x"})]


async def test_embeddings_accept_an_upstream_and_model_name(alice_api: Api, server: Server) -> None:
    server.answers = [(200, VECTORS)]
    assert (await alice_api.post(EMBEDDINGS, {"model": "local/org/embed", "input": "x"}))[0] == 200
    assert server.requests == [("http://127.0.0.2:1/v1/embeddings", {"model": "org/embed", "input": "x"})]


@pytest.mark.parametrize("name", ["elsewhere/embed", "local/", "/embed", "nobody"])
async def test_embeddings_of_an_unknown_model_are_not_found(alice_api: Api, server: Server, name: str) -> None:
    status, answer = await alice_api.post(EMBEDDINGS, {"model": name, "input": "x"})
    assert (status, answer["error"]["code"], answer["error"]["param"]) == (404, "model_not_found", "model")
    assert server.requests == []


async def test_a_limited_key_may_name_agents_only(alice: Owner, server: Server) -> None:
    api = Api((await in_thread(lambda: key_make(alice, agents=["assistant"])))[1])
    server.answers = [(200, VECTORS)]
    status, answer = await api.post(EMBEDDINGS, {"model": "default/embed-1", "input": "x"})
    assert (status, answer["error"]["code"]) == (404, "model_not_found")
    assert (await api.post(EMBEDDINGS, {"model": "assistant", "input": "x"}))[0] == 200


@pytest.mark.parametrize(("path", "name"), [(EMBEDDINGS, "input"), (COMPLETIONS, "prompt")])
async def test_a_read_only_key_is_refused(alice: Owner, server: Server, path: str, name: str) -> None:
    api = Api((await in_thread(lambda: key_make(alice, read_only=True)))[1])
    status, answer = await api.post(path, {"model": "assistant", name: "x"})
    assert (status, answer["error"]["code"], server.requests) == (403, "forbidden", [])


async def test_without_an_embedding_model_the_error_names_the_setting(
    alice_api: Api, server: Server, settings: Settings
) -> None:
    settings.EMBEDDING_MODEL = ""
    status, answer = await alice_api.post(EMBEDDINGS, {"model": "assistant", "input": "x"})
    assert (status, answer["error"]["code"]) == (400, "invalid_request")
    assert "DAYBOOK_EMBEDDING_MODEL" in answer["error"]["message"]


@pytest.mark.parametrize("fields", [["x"] * (INPUTS + 1), [[1]] * (INPUTS + 1), "", [], None, {"a": 1}, 5])
async def test_the_size_of_the_input_is_limited(alice_api: Api, server: Server, fields: Any) -> None:
    status, answer = await alice_api.post(EMBEDDINGS, {"model": "assistant", "input": fields})
    assert (status, answer["error"]["param"], server.requests) == (400, "input", [])


@pytest.mark.parametrize(("path", "name"), [(EMBEDDINGS, "input"), (COMPLETIONS, "prompt")])
async def test_a_refusal_keeps_its_code_and_param(alice_api: Api, server: Server, path: str, name: str) -> None:
    said = {"message": "dimensions is not supported for this model", "code": "unsupported", "param": "dimensions"}
    server.answers = [(400, {"error": said})]
    status, answer = await alice_api.post(path, {"model": "assistant", name: "x", "dimensions": 7})
    error = answer["error"]
    assert (status, error["code"], error["param"], len(server.requests)) == (400, "unsupported", "dimensions", 1)


async def test_an_error_body_with_status_200_is_an_error(alice_api: Api, server: Server) -> None:
    server.answers = [(200, {"error": {"message": "too long", "code": "context_length_exceeded"}})]
    status, answer = await alice_api.post(EMBEDDINGS, {"model": "assistant", "input": "x"})
    assert (status, answer["error"]["code"]) == (400, "context_length_exceeded")
    server.answers = [(200, {"choices": []})]
    assert (await alice_api.post(EMBEDDINGS, {"model": "assistant", "input": "x"}))[0] == 502


@pytest.mark.parametrize(
    ("path", "fields", "answer"), [(EMBEDDINGS, {"input": "x"}, VECTORS), (COMPLETIONS, {"prompt": "x"}, COMPLETED)]
)
async def test_a_fault_is_retried_and_a_refused_parameter_is_dropped(
    alice_api: Api, server: Server, path: str, fields: dict[str, Any], answer: dict[str, Any]
) -> None:
    refused = {"message": "Unrecognized request argument supplied: user", "param": "user"}
    server.answers = [(503, {}), (400, {"error": refused}), (200, answer)]
    for _ in range(2):  # a field dropped here is not remembered as unsupported
        server.answers = [(503, {}), (400, {"error": refused}), (200, answer)]
        assert (await alice_api.post(path, {"model": "assistant", **fields, "user": "u1"}))[0] == 200
        assert ["user" in body for _, body in server.requests[-3:]] == [True, True, False]


async def test_the_options_of_the_upstream_apply(alice_api: Api, server: Server, settings: Settings) -> None:
    set_options(settings, drop=["user"], rename={"seed": "random_seed"}, set={"top_p": 1}, headers={"x-team": "tea"})
    fields = {"model": "assistant", "user": "u1", "seed": 7}
    server.answers = [(200, COMPLETED)]
    await alice_api.post(COMPLETIONS, {**fields, "prompt": "x"})
    assert server.body == {"model": "gpt-4o-mini", "prompt": "x", "random_seed": 7, "top_p": 1}
    server.answers = [(200, VECTORS)]
    await alice_api.post(EMBEDDINGS, {**fields, "input": "x"})
    assert server.body == {"model": "embed-1", "input": "x", "random_seed": 7}  # `set` applies to text generation only
    assert [headers["x-team"] for headers in server.headers] == ["tea", "tea"]


FILL = {"prompt": "def a():\n    return ", "suffix": "\n\nprint(a())", "max_tokens": 9, "never_heard_of": [1]}


async def test_a_completion_is_passed_through_unchanged(alice_api: Api, server: Server, alice: Owner) -> None:
    defaults = {"temperature": 0, "max_tokens": 500, "reasoning_effort": "low", "parallel_tool_calls": False}
    await in_thread(lambda: agent_make(parameters=defaults, instructions="Be kind.", frozen_char_limit=0))
    server.answers = [(200, {**COMPLETED, "usage": USAGE, "system_fingerprint": "fp"})]
    response = await alice_api.raw("POST", COMPLETIONS, {"model": "assistant", **FILL})
    assert json.loads(response.content) == {
        **COMPLETED, "usage": USAGE, "system_fingerprint": "fp", "model": "assistant"
    }  # fmt: skip
    sent = {"model": "gpt-4o-mini", **FILL, "temperature": 0}  # the agent's defaults that apply to completions
    assert server.requests == [("http://127.0.0.1:1/v1/completions", sent)]
    assert "x-daybook-session" not in response.headers
    assert not await in_thread(lambda: Session.objects.exists() or Run.objects.exists() or Message.objects.exists())


async def test_a_completion_is_counted_under_any_model_name(alice_api: Api, server: Server) -> None:
    server.answers = [(200, [{**COMPLETED, "usage": USAGE, "model": "small\x00\ud800"}, "[DONE]"])]
    _, text = await alice_api.stream(COMPLETIONS, {"model": "assistant", **FILL, "stream": True})
    assert text.endswith("data: [DONE]\n\n")
    assert (await in_thread(UsageDay.objects.get)).model == "small?"


@pytest.mark.parametrize("include_usage", [True, False])
async def test_a_completion_is_streamed(alice_api: Api, server: Server, include_usage: bool) -> None:
    last = {**COMPLETED, "choices": [], "usage": USAGE}
    end = {**COMPLETED, "choices": [{**CHOICE, "text": "", "finish_reason": "stop"}]}
    server.answers = [(200, [COMPLETED, end, last, "[DONE]"])]
    body = {"model": "assistant", **FILL, "stream": True, "stream_options": {"include_usage": include_usage}}
    status, text = await alice_api.stream(COMPLETIONS, body)
    lines = [line.removeprefix("data: ") for line in text.split("\n") if line]
    chunks = [json.loads(line) for line in lines[:-1]]
    expected = [COMPLETED, end, *([last] if include_usage else [])]
    assert (status, lines[-1]) == (200, "[DONE]")
    assert chunks == [{**chunk, "model": "assistant"} for chunk in expected]
    assert server.body == {
        "model": "gpt-4o-mini", **FILL, "stream": True, "stream_options": {"include_usage": True}
    }  # fmt: skip


@pytest.mark.parametrize("messages", ["hello", [{"role": "user", "content": "hello"}], {"a": 1}, [1]])
async def test_messages_of_a_completion_are_ignored(alice_api: Api, server: Server, messages: Any) -> None:
    server.answers = [(200, COMPLETED)]
    status, _ = await alice_api.post(COMPLETIONS, {"model": "assistant", "prompt": "a", "messages": messages})
    assert (status, "messages" in server.body) == (200, False)


async def test_an_unstreamed_completion_is_sent_as_one_chunk(alice_api: Api, server: Server) -> None:
    server.answers = [(200, COMPLETED)]
    _, text = await alice_api.stream(COMPLETIONS, {"model": "assistant", "prompt": "x", "stream": True})
    first, *_ = [line.removeprefix("data: ") for line in text.split("\n") if line]
    assert json.loads(first) == {**COMPLETED, "model": "assistant"}


async def test_a_completion_falls_back_until_text_was_sent(alice_api: Api, server: Server, alice: Owner) -> None:
    await in_thread(lambda: agent_make(upstream=["default", "local"], model=["a", "b"]))
    server.answers = [(401, {}), (200, [COMPLETED, "[DONE]"])]
    status, text = await alice_api.stream(COMPLETIONS, {"model": "assistant", "prompt": "x", "stream": True})
    assert (status, "b():" in text) == (200, True)
    assert [(url, body["model"]) for url, body in server.requests] == [
        ("http://127.0.0.1:1/v1/completions", "a"), ("http://127.0.0.2:1/v1/completions", "b")
    ]  # fmt: skip


async def test_a_server_without_completions_is_still_used_for_chat(
    alice_api: Api, server: Server, alice: Owner
) -> None:
    await in_thread(lambda: agent_make(upstream=["default", "local"], model=["a", "b"]))
    server.answers = [(404, {}), (200, COMPLETED)]
    assert (await alice_api.post(COMPLETIONS, {"model": "assistant", "prompt": "x"}))[0] == 200
    server.answers = [(200, {**COMPLETED, "choices": [{"index": 0, "message": {"content": "Hi."}}]})]
    await alice_api.post(
        "/v1/chat/completions", {"model": "assistant", "messages": [{"role": "system", "content": "x"}]}
    )
    assert [body["model"] for _, body in server.requests] == ["a", "b", "a"]


async def test_model_names_made_up_by_clients_are_not_kept(alice_api: Api, server: Server) -> None:
    server.answers = [(200, VECTORS)]
    for number in range(3):
        assert (await alice_api.post(EMBEDDINGS, {"model": f"local/x{number}", "input": "x"}))[0] == 200
    model = upstreams.model()
    assert isinstance(model, ResilientModel)
    assert [*model.circuits] == [("local", "/embeddings")]
    assert not any("x1" in model for _, model, _ in outcomes)


async def test_a_broken_stream_ends_with_an_error(alice_api: Api, server: Server) -> None:
    server.answers = [(200, [COMPLETED])]
    _, text = await alice_api.stream(COMPLETIONS, {"model": "assistant", "prompt": "x", "stream": True})
    last = [line for line in text.split("\n") if line][-1]
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "upstream_error"


@pytest.mark.parametrize("model", ["nobody", "default/small"])
async def test_completions_need_an_agent(alice_api: Api, server: Server, model: str) -> None:
    status, answer = await alice_api.post(COMPLETIONS, {"model": model, "prompt": "x"})
    assert (status, answer["error"]["code"], server.requests) == (404, "model_not_found", [])


@pytest.mark.parametrize("prompt", [5, {"a": 1}, ["x"] * (INPUTS + 1)])
async def test_the_size_of_the_prompt_is_limited(alice_api: Api, server: Server, prompt: Any) -> None:
    status, answer = await alice_api.post(COMPLETIONS, {"model": "assistant", "prompt": prompt})
    assert (status, answer["error"]["param"], server.requests) == (400, "prompt", [])


async def test_requests_count_against_the_rate_limit_of_the_key(alice: Owner, server: Server) -> None:
    api = Api((await in_thread(lambda: key_make(alice, requests_per_minute=1)))[1])
    server.answers = [(200, VECTORS)]
    send: Callable[[], Any] = lambda: api.post(EMBEDDINGS, {"model": "assistant", "input": "x"})  # noqa: E731
    assert [(await send())[0] for _ in range(2)] == [200, 429]
