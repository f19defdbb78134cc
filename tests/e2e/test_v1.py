"""/v1 and other endpoints with the real OpenAI SDK, real servers, and a scripted model server."""

import asyncio
import contextlib
import http.client
import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest
import websockets

from tests.e2e.conftest import migrated_storage
from tests.e2e.running import RunningDaybook, manage, running_daybook
from tests.upstream_server import UpstreamServer, serving_upstream
from tests.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.any_database]
KEY = "dbk_" + "e2e-v1-" * 4
MAX_BODY = 1_000_000
AGENTS = """
agents:
  assistant:
    instructions: You are terse.
    tools: [{type: memory}]
    inject_memories: true
  plain:
    instructions: Be plain.
"""
USER: Any = {"role": "user", "content": "Hi"}
LOOKUP: Any = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}


@dataclass(frozen=True, slots=True)
class Stage:
    """A Daybook, its model server, and clients for it."""

    daybook: RunningDaybook
    upstream: UpstreamServer
    variables: dict[str, str]

    @property
    def url(self) -> str:
        return f"{self.daybook.address}v1"

    def client(self, **more: Any) -> openai.OpenAI:
        return openai.OpenAI(base_url=self.url, api_key=KEY, **{"max_retries": 0, "timeout": 30, **more})

    def api(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, dict[str, str]]:
        """Send a request to the native API, or a raw one; return status, JSON and headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.daybook.port, timeout=30)
        all_headers = {"Authorization": f"Bearer {KEY}", **headers}
        raw = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
        if raw is not None:
            all_headers.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, raw, all_headers)
            response = connection.getresponse()
            data = response.read()
            return response.status, json.loads(data) if data else None, {k.lower(): v for k, v in response.getheaders()}
        finally:
            connection.close()

    def turn(self, run: str, session: str) -> dict[str, Any]:
        return dict(self.api("GET", f"/api/sessions/{session}/turns/{run}")[1])

    def messages(self, session: str) -> list[tuple[str, str]]:
        listed = self.api("GET", f"/api/sessions/{session}/messages")[1]["data"]
        return [(row["role"], row["content"]) for row in listed]

    def sessions(self) -> list[dict[str, Any]]:
        return list(self.api("GET", "/api/sessions")[1]["data"])


@pytest.fixture(scope="module", params=["daphne", "uvicorn"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder: Path = tmp_path_factory.mktemp(request.param)
    (folder / "agents.yaml").write_text(AGENTS)
    with serving_upstream() as upstream, migrated_storage(folder / "home") as storage:
        variables = storage | {
            "OPENAI_BASE_URL": upstream.url,
            "OPENAI_API_KEY": "sk-upstream",
            "DAYBOOK_API_KEY": KEY,
            "DAYBOOK_AGENTS": str(folder / "agents.yaml"),
            "DAYBOOK_SERVER": request.param,
            "DAYBOOK_MAX_BODY": str(MAX_BODY),
            "DAYBOOK_UPSTREAM_IDLE_SECONDS": "1",
            "DAYBOOK_UPSTREAM_FIRST_BYTE_SECONDS": "1",
        }
        with running_daybook(folder / "home", variables) as daybook:
            yield Stage(daybook, upstream, variables)


@pytest.fixture
def stage(running: Stage) -> Iterator[Stage]:
    yield running
    running.upstream.reset()


def test_models_and_completions_with_the_sdk(stage: Stage) -> None:
    client = stage.client()
    assert {model.id for model in client.models.list()} == {"assistant", "plain"}
    assert client.models.retrieve("assistant").owned_by == "daybook"
    stage.upstream.script({"text": ["Hel", "lo."]}, {"text": ["Hel", "lo."]})
    whole = client.chat.completions.with_raw_response.create(model="assistant", messages=[USER])
    answer = whole.parse()
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("Hello.", "stop")
    assert answer.usage
    assert answer.usage.total_tokens == 10
    assert whole.headers["x-daybook-session"]
    chunks = list(
        client.chat.completions.create(
            model="assistant", messages=[USER], stream=True, stream_options={"include_usage": True}
        )
    )
    assert [chunk.choices[0].delta.content for chunk in chunks[:-1]] == ["", "Hel", "lo.", None]
    assert chunks[-1].usage
    assert chunks[-1].usage.total_tokens == 10
    sent = stage.upstream.last()
    assert sent["authorization"] == "Bearer sk-upstream"
    assert sent["body"]["messages"][0] == {"role": "system", "content": "You are terse."}


async def test_the_async_client_sends_requests_in_parallel(stage: Stage) -> None:
    async with openai.AsyncOpenAI(base_url=stage.url, api_key=KEY, max_retries=0) as client:
        answers = await asyncio.gather(
            *(
                client.chat.completions.create(model="plain", messages=[{"role": "user", "content": f"Hi {n}"}])
                for n in range(8)
            )
        )
    assert {answer.choices[0].message.content for answer in answers} == {"Hello."}
    assert len({answer.id for answer in answers}) == 8


def test_responses_can_be_streamed_and_continued(stage: Stage) -> None:
    client = stage.client()
    tool: Any = {"type": "function", "name": "lookup", "parameters": {"type": "object"}, "strict": None}
    stage.upstream.script({"calls": [{"name": "lookup", "arguments": {"q": "a"}}]}, "Found.")
    with client.responses.stream(model="plain", input="Look it up", tools=[tool]) as stream:
        kinds = [event.type for event in stream]
        first = stream.get_final_response()
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    (call,) = [item for item in first.output if item.type == "function_call"]
    result: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "A"}]
    second = client.responses.create(model="plain", input=result, tools=[tool], previous_response_id=first.id)
    assert second.output_text == "Found."
    sent = stage.upstream.last()["body"]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool"]
    assert client.responses.retrieve(second.id).output_text == "Found."


def test_memory_tools_and_the_clients_tools_in_one_conversation(stage: Stage) -> None:
    client = stage.client()
    remember = {"name": "add_memory", "arguments": {"content": f"Owns a tuba {time.monotonic()}.", "target": "user"}}
    stage.upstream.script({"calls": [remember, {"name": "lookup", "arguments": {"q": "a"}}]}, "Found.")
    messages: list[Any] = [{"role": "developer", "content": "Be kind."}, USER]
    first = client.chat.completions.create(model="assistant", messages=messages, tools=[LOOKUP])
    (call,) = first.choices[0].message.tool_calls or []
    assert first.choices[0].finish_reason == "tool_calls"
    messages += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "A"}]
    second = client.chat.completions.create(model="assistant", messages=messages, tools=[LOOKUP])
    assert second.choices[0].message.content == "Found."
    roles = [message["role"] for message in stage.upstream.last()["body"]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool"]
    memories = stage.api("GET", "/api/memories")[1]["data"]
    assert remember["arguments"]["content"] in [memory["content"] for memory in memories]  # type: ignore[index]


def test_an_upstream_that_does_not_start_its_stream_is_a_timeout(stage: Stage) -> None:
    stage.upstream.script({"hang": "before"}, {"hang": "before"})
    question: Any = {"role": "user", "content": f"Hi {time.monotonic()}"}
    with pytest.raises(openai.InternalServerError) as raised:
        stage.client().chat.completions.create(model="plain", messages=[question], stream=True)
    assert raised.value.code == "upstream_timeout"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("step", "attempts", "kind", "code"),
    [
        ({"status": 500}, 3, openai.InternalServerError, "upstream_error"),
        ({"status": 429, "headers": {"Retry-After": "70"}}, 1, openai.RateLimitError, "rate_limited"),
        ({"status": 400, "error": "too long"}, 1, openai.BadRequestError, "invalid_request"),
        ({"break_off": "before"}, 3, openai.InternalServerError, "upstream_error"),
    ],
)
def test_upstream_errors_are_reported_and_the_conversation_continues(
    stage: Stage, step: dict[str, Any], attempts: int, kind: type[openai.APIStatusError], code: str, stream: bool
) -> None:
    client = stage.client()
    question: Any = {"role": "user", "content": f"Hi {time.monotonic()}"}
    stage.upstream.script(*[step] * attempts, "Hello.")
    with pytest.raises(kind) as raised:
        client.chat.completions.create(model="plain", messages=[question], stream=stream)
    assert raised.value.code == code
    assert raised.value.response.headers["x-request-id"]
    assert raised.value.response.headers.get("retry-after") == step.get("headers", {}).get("Retry-After")
    session = stage.sessions()[0]
    assert raised.value.response.headers["x-daybook-session"] == session["id"]
    assert stage.messages(session["id"]) == [("user", question["content"])]
    again = client.chat.completions.with_raw_response.create(model="plain", messages=[question])
    assert again.headers["x-daybook-session"] == session["id"]


@pytest.mark.parametrize("fault", ["hang", "break_off"])
def test_an_aborted_stream_is_reported_and_its_text_is_kept(stage: Stage, fault: str) -> None:
    stage.upstream.script({"text": ["Hel", "lo"], fault: "middle"}, "Yes.")
    client = stage.client()
    question: Any = {"role": "user", "content": f"Hi {time.monotonic()}"}
    raw = client.chat.completions.with_raw_response.create(model="plain", messages=[question], stream=True)
    deltas = []
    with pytest.raises(openai.APIError) as raised:
        deltas.extend(chunk.choices[0].delta.content for chunk in raw.parse())
    assert "".join(text or "" for text in deltas) == "Hello"
    assert raised.value.code == ("upstream_timeout" if fault == "hang" else "upstream_error")
    turn = stage.turn(raw.headers["x-daybook-run"], raw.headers["x-daybook-session"])
    assert (turn["state"], turn["content"], turn["error"]["code"]) == ("failed", "Hello", raised.value.code)
    continued: list[Any] = [question, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "more"}]
    second = client.chat.completions.with_raw_response.create(model="plain", messages=continued)
    assert second.headers["x-daybook-session"] == raw.headers["x-daybook-session"]


def test_an_aborted_completion_is_an_error(stage: Stage) -> None:
    aborted = {"text": "Hello", "break_off": "middle"}
    stage.upstream.script(aborted, aborted, aborted, {"text": "Hello", "hang": "middle"})
    for code in ("upstream_error", "upstream_timeout"):
        with pytest.raises(openai.InternalServerError) as raised:
            stage.client().chat.completions.create(model="plain", messages=[USER])
        assert raised.value.code == code


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_hangs_up_stops_the_upstream_request(stage: Stage, stream: bool) -> None:
    text = f"Hi {time.monotonic()}"
    stage.upstream.script({"text": ["Hel", "lo"], "hang": "middle" if stream else "before"})
    connection = http.client.HTTPConnection("127.0.0.1", stage.daybook.port, timeout=30)
    body = {"model": "plain", "messages": [{"role": "user", "content": text}], "stream": stream}
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    if stream:
        response = connection.getresponse()
        while b"lo" not in response.readline():
            pass
        response.close()
    else:
        eventually(stage.upstream.requests, within=10)
    connection.close()
    # Well before the idle timeout, which would result in "failed".
    eventually(lambda: stage.upstream.last()["state"] == "hung_up", within=0.9)
    session = stage.sessions()[0]["id"]
    kept = [("user", text), ("assistant", "Hello")] if stream else [("user", text)]
    eventually(lambda: stage.messages(session) == kept, within=10)
    stage.upstream.script("Hello again.")
    again = stage.client().chat.completions.with_raw_response.create(model="plain", messages=body["messages"])  # type: ignore[arg-type]
    assert again.headers["x-daybook-session"] == session


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("step", "attempts", "status", "code"),
    [
        ({"status": 500}, 3, 502, "upstream_error"),
        ({"text": "Hel", "hang": "middle"}, 1, 504, "upstream_timeout"),
        ({"text": "Hel", "break_off": "middle"}, 1, 502, "upstream_error"),
    ],
)
def test_the_native_api_reports_upstream_errors_too(
    stage: Stage, step: dict[str, Any], attempts: int, status: int, code: str, stream: bool
) -> None:
    session = stage.api("POST", "/api/sessions", {"agent": "plain"})[1]["id"]
    stage.upstream.script(*[step] * attempts, "Fine.")
    path = f"/api/sessions/{session}/turns"
    if stream:
        events = raw_stream(stage, path, {"content": "Hi", "stream": True})
        assert events[-1][0] == "error"
        assert events[-1][1]["code"] == code
    else:
        got, body, _ = stage.api("POST", path, {"content": "Hi"})
        assert (got, body["error"]["code"]) == (status, code)
    assert stage.messages(session)[0] == ("user", "Hi")
    got, body, _ = stage.api("POST", path, {"content": "Again"})
    assert (got, body["content"]) == (200, "Fine.")


def raw_stream(stage: Stage, path: str, body: Any) -> list[tuple[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", stage.daybook.port, timeout=30)
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    try:
        connection.request("POST", path, json.dumps(body), headers)
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    blocks = [dict(line.split(": ", 1) for line in block.split("\n")) for block in text.strip().split("\n\n")]
    return [(block["event"], json.loads(block["data"])) for block in blocks]


def test_a_too_large_body_is_refused_with_and_without_a_content_length(stage: Stage) -> None:
    too_much = b'{"model": "plain", "messages": [{"role": "user", "content": "' + b"x" * MAX_BODY + b'"}]}'
    status, body, headers = stage.api("POST", "/v1/chat/completions", too_much)
    assert (status, body["error"]["code"], body["error"]["details"]["limit"]) == (413, "too_large", MAX_BODY)
    assert headers["x-request-id"]
    connection = http.client.HTTPConnection("127.0.0.1", stage.daybook.port, timeout=30)
    pieces = (too_much[start : start + 65536] for start in range(0, len(too_much), 65536))
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    connection.request("POST", "/v1/chat/completions", pieces, headers, encode_chunked=True)
    response = connection.getresponse()
    assert (response.status, json.loads(response.read())["error"]["code"]) == (413, "too_large")
    connection.close()


def test_a_body_that_is_not_json_is_refused_even_without_a_content_length(stage: Stage) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", stage.daybook.port, timeout=30)
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "text/plain"}
    connection.request("POST", "/v1/chat/completions", iter([b"{}"]), headers, encode_chunked=True)
    response = connection.getresponse()
    assert (response.status, json.loads(response.read())["error"]["code"]) == (415, "unsupported_media_type")
    connection.close()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/nothing", 404), ("GET", "/api/nothing/", 404), ("GET", "/v1/chat/completions/", 405)],
)
def test_errors_are_json_not_html(stage: Stage, method: str, path: str, status: int) -> None:
    got, body, headers = stage.api(method, path)
    assert (got, headers["content-type"]) == (status, "application/json")
    assert body["error"]["message"]
    assert headers["x-request-id"]


def test_an_unknown_host_name_is_refused(stage: Stage) -> None:
    status, body, _ = stage.api("GET", "/v1/models", Host="evil.example")
    assert (status, body["error"]["code"]) == (400, "invalid_request")
    assert stage.api("GET", "/healthz", Host="10.0.0.7")[0] == 200


def test_clients_cannot_change_the_root_path(stage: Stage) -> None:
    """Daphne takes the root path from a header. With one, the host check, which depends on the path, was skipped."""
    connection = http.client.HTTPConnection("127.0.0.1", stage.daybook.port, timeout=30)
    headers = {"Authorization": f"Bearer {KEY}", "Host": "evil.example", "Daphne-Root-Path": "/x"}
    connection.request("GET", "/x/api/sessions", headers=headers)
    assert connection.getresponse().status in {400, 404}
    connection.close()


@pytest.mark.parametrize("running", ["daphne"], indirect=True)
def test_an_endless_body_is_cut_off(stage: Stage) -> None:
    piece = b"f4240\r\n" + b"x" * 1_000_000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", stage.daybook.port), timeout=30) as stranger:
        stranger.sendall(b"POST /login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        with pytest.raises(ConnectionError):
            stranger.sendall(100 * piece)


async def test_a_websocket_that_is_flooded_is_closed(stage: Stage) -> None:
    url = f"ws://127.0.0.1:{stage.daybook.port}/ws/notifications/"
    key = {"Authorization": f"Bearer {KEY}"}
    async with websockets.connect(url, additional_headers=key, compression=None) as socket, asyncio.timeout(20):
        with contextlib.suppress(websockets.ConnectionClosed):
            for _ in range(40):
                await socket.send("x" * 1000)
        await socket.wait_closed()
        with pytest.raises(websockets.ConnectionClosed):
            await socket.send("x")


@pytest.mark.parametrize("running", ["uvicorn"], indirect=True)
def test_a_key_revoked_by_a_command_is_refused_immediately(stage: Stage) -> None:
    home = stage.daybook.home
    created = manage(home, "apikey", "create", "--user", "admin", "--name", "short-lived", env=stage.variables)
    plain = created.stdout.strip()
    client = openai.OpenAI(base_url=stage.url, api_key=plain, max_retries=0)
    assert client.chat.completions.create(model="plain", messages=[USER]).choices
    listed = manage(home, "apikey", "list", env=stage.variables).stdout
    (line,) = [line for line in listed.splitlines() if "short-lived" in line]
    assert manage(home, "apikey", "revoke", line.split()[0], env=stage.variables).returncode == 0
    with pytest.raises(openai.AuthenticationError):
        client.chat.completions.create(model="plain", messages=[USER])


@pytest.mark.parametrize("running", ["uvicorn"], indirect=True)
def test_commands_report_errors_in_one_line(stage: Stage) -> None:
    for arguments in (
        ("apikey", "create", "--user", "nobody", "--name", "x"),
        ("agents", "apply", "/nonexistent.yaml"),
    ):
        result = manage(stage.daybook.home, *arguments, env=stage.variables)
        assert result.returncode != 0
        assert len(result.stderr.strip().splitlines()) == 1


async def test_a_websocket_is_notified_of_a_turns_writes(stage: Stage) -> None:
    url = f"ws://127.0.0.1:{stage.daybook.port}/ws/notifications/"
    remember = {"name": "add_memory", "arguments": {"content": f"Has a cat {time.monotonic()}.", "target": "user"}}
    headers = {"Authorization": f"Bearer {KEY}"}
    async with websockets.connect(url, additional_headers=headers) as socket:
        stage.upstream.script({"calls": [remember]}, "Noted.")
        async with openai.AsyncOpenAI(base_url=stage.url, api_key=KEY, max_retries=0) as client:
            await client.chat.completions.create(model="assistant", messages=[USER])
        async with asyncio.timeout(10):
            row = json.loads(await socket.recv())
    assert row["kind"] == "memory.changed"
    with pytest.raises(websockets.InvalidStatus):
        await websockets.connect(url)
    with pytest.raises(websockets.InvalidStatus):
        await websockets.connect(url, origin="https://evil.example", additional_headers=headers)  # type: ignore[arg-type]
