"""gateway.upstream against a real server that misbehaves as scripted"""

import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import brotli
import httpx2
import pytest
import pytest_asyncio
import time_machine
from pytest_django.fixtures import Settings

from gateway.errors import UpstreamSilent, UpstreamUnreachable
from gateway.upstream import ModelRequest, OpenAIModel, is_demo
from gateway.upstream.answer import LineSplitter
from gateway.upstream.faults import refusal_error
from memories.errors import DomainError, RateLimited, TooLarge, UpstreamTimeout
from tests.conftest import free_port
from tests.upstream_server import UpstreamServer, serving_upstream
from tests.upstreams.server import connect_to
from tests.waiting import eventually_async

SAYS = {"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": None}]}
ENDS = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


@pytest.fixture(scope="module")
def upstream_server() -> Iterator[UpstreamServer]:
    with serving_upstream() as upstream:
        yield upstream


@pytest.fixture
def upstream(upstream_server: UpstreamServer, settings: Settings) -> Iterator[UpstreamServer]:
    settings.DAYBOOK_UPSTREAMS = {"default": {"url": upstream_server.url, "key": "sk-upstream"}}
    settings.UPSTREAM_IDLE_SECONDS = 5
    yield upstream_server
    upstream_server.reset()


def request(**fields: Any) -> ModelRequest:
    return ModelRequest(upstream="default", model="m", messages=({"role": "user", "content": "Hi"},), **fields)


@pytest_asyncio.fixture
async def wire() -> AsyncIterator[OpenAIModel]:
    model = OpenAIModel()
    yield model
    await model.close()


async def streamed(wire: OpenAIModel, model_request: ModelRequest) -> list[dict[str, Any]]:
    return [chunk async for chunk in wire.stream(model_request)]


async def failure(wire: OpenAIModel, model_request: ModelRequest, *, stream: bool) -> DomainError:
    with pytest.raises(DomainError) as raised:
        await (streamed(wire, model_request) if stream else wire.complete(model_request))
    return raised.value


async def test_chunks_are_streamed_unchanged(wire: OpenAIModel, upstream: UpstreamServer) -> None:
    upstream.script({"text": ["Hel", "lo."], "delta": {"reasoning_content": "Hm."}})
    chunks = await streamed(wire, request(parameters={"temperature": 0.5}))
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert [delta.get("content") for delta in deltas] == ["", "Hel", "lo.", None]
    assert deltas[1]["reasoning_content"] == "Hm."
    assert chunks[-1]["usage"]["total_tokens"] == 10
    sent = upstream.last()
    assert sent["body"]["temperature"] == 0.5
    assert sent["authorization"] == "Bearer sk-upstream"


async def test_the_halves_of_a_character_in_two_chunks_are_joined(wire: OpenAIModel, upstream: UpstreamServer) -> None:
    calls = [{"tool_calls": [{"index": 0, "function": {"arguments": text}}]} for text in ('{"a": "\ud83d', '\ude00"}')]
    deltas = [
        {"content": "a\ud83d", "reasoning_content": "\ud83d"},
        {"content": "", "reasoning_content": "\ude01!"},
        {"content": "\ude00b\ud83d"},
        {"content": "\ude02\ud83d"},
        *calls,
        {"content": "c"},  # the half before it stays alone
        {"content": "\ud83d"},
    ]
    choices = [{"index": 0, "delta": delta} for delta in deltas] + [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    upstream.script({"raw": [f"data: {json.dumps({'choices': [choice]})}\n\n" for choice in choices]})
    found = [choice["delta"] for chunk in await streamed(wire, request()) for choice in chunk["choices"]]
    assert "".join(delta.get("content") or "" for delta in found) == "a😀b😂\ud83dc\ud83d"
    assert "".join(delta.get("reasoning_content") or "" for delta in found) == "😁!"
    calls = [call for delta in found for call in delta.get("tool_calls", ())]
    assert "".join(call["function"]["arguments"] for call in calls) == '{"a": "😀"}'


@pytest.mark.parametrize("stream", [True, False])
async def test_a_usage_that_is_not_an_object_is_left_out(
    wire: OpenAIModel, upstream: UpstreamServer, stream: bool
) -> None:
    part = {"content": "Hi."}
    choice = {"index": 0, "delta" if stream else "message": part, "finish_reason": "stop"}
    answer = json.dumps({"choices": [choice], "usage": "x"})
    upstream.script({"raw": [f"data: {answer}\n\n" if stream else answer]})
    (found,) = await streamed(wire, request()) if stream else [await wire.complete(request())]
    assert (found["choices"][0]["finish_reason"], "usage" in found) == ("stop", False)


async def test_complete_returns_the_whole_answer(wire: OpenAIModel, upstream: UpstreamServer) -> None:
    upstream.script("Hello.")
    answer = await wire.complete(request(parameters={"stream_options": {"include_usage": True}}))
    assert answer["choices"][0]["message"]["content"] == "Hello."
    assert "stream_options" not in upstream.last()["body"]


async def test_tool_choice_is_sent_with_tools_only(wire: OpenAIModel, upstream: UpstreamServer) -> None:
    await wire.complete(request(parameters={"tool_choice": "auto", "parallel_tool_calls": False, "seed": 1}))
    assert upstream.last()["body"].keys() == {"model", "messages", "seed"}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "1.5"}, 2),
        ({"Retry-After": "99999999999999999999"}, 3600),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "1e999"}, None),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        ({"Retry-After": "Wed, 21 Oct 2026 07:29:30 GMT"}, 90),
        ({"retry-after-ms": "250", "Retry-After": "60"}, 0.25),
        ({"retry-after-ms": "2000"}, 2),
        ({"retry-after-ms": "1e300"}, 3600),
        ({"retry-after-ms": "nan", "Retry-After": "5"}, 5),
        ({"retry-after-ms": "-1"}, None),
        ({"retry-after-ms": "inf"}, None),
    ],
)
@time_machine.travel("2026-10-21T07:28:00Z", tick=False)
def test_a_wait_is_a_number_of_seconds_up_to_an_hour(headers: dict[str, str], seconds: float | None) -> None:
    response = httpx2.Response(429, headers=headers, request=httpx2.Request("POST", "http://model"), content=b"{}")
    error = refusal_error(response, response.content)
    assert error.details.get("retry_after") == seconds


@pytest.mark.parametrize("stream", [True, False])
async def test_a_refused_connection_is_unreachable(
    wire: OpenAIModel, upstream: UpstreamServer, settings: Settings, stream: bool
) -> None:
    settings.DAYBOOK_UPSTREAMS = {"default": {"url": f"http://127.0.0.1:{free_port()}/v1", "key": ""}}
    error = await failure(wire, request(), stream=stream)
    assert isinstance(error, UpstreamUnreachable)
    assert str(error) == "The model server could not be reached."


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("place", ["before", "middle"])
async def test_a_broken_connection_is_unreachable(
    wire: OpenAIModel, upstream: UpstreamServer, place: str, stream: bool
) -> None:
    upstream.script({"text": ["Hel", "lo."], "break_off": place})
    assert isinstance(await failure(wire, request(), stream=stream), UpstreamUnreachable)


@pytest.mark.parametrize("stream", [True, False])
async def test_silence_during_an_answer_is_a_timeout(
    wire: OpenAIModel, upstream: UpstreamServer, settings: Settings, stream: bool
) -> None:
    settings.UPSTREAM_IDLE_SECONDS = 0.2
    upstream.script({"text": ["Hel", "lo."], "hang": "middle"})
    error = await failure(wire, request(), stream=stream)
    assert isinstance(error, UpstreamSilent)
    assert error.details == {"limit": "idle"}
    await eventually_async(lambda: upstream.last()["state"] == "hung_up", within=5)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("step", [{"hang": "before"}, {"think_seconds": 30}])
async def test_a_request_ends_at_its_own_deadline(
    wire: OpenAIModel, upstream: UpstreamServer, step: dict[str, Any], stream: bool
) -> None:
    upstream.script({"text": "Hi."})
    await wire.complete(request())  # opens the connection
    upstream.script({"text": "Hello.", **step})
    error = await failure(wire, request(seconds=1), stream=stream)
    assert isinstance(error, UpstreamTimeout)
    assert not isinstance(error, UpstreamSilent)
    assert error.details == {"limit": "total"}
    await eventually_async(lambda: upstream.last()["state"] == "hung_up", within=5)


async def test_keep_alive_comments_do_not_extend_a_request(wire: OpenAIModel, upstream: UpstreamServer) -> None:
    upstream.script({"raw": [": still there"] * 500, "chunk_seconds": 0.05})
    error = await failure(wire, request(seconds=0.3), stream=True)
    assert error.details == {"limit": "total"}


@pytest.mark.parametrize("stream", [True, False])
async def test_a_model_may_think_longer_than_the_idle_limit(
    wire: OpenAIModel, upstream: UpstreamServer, settings: Settings, stream: bool
) -> None:
    settings.UPSTREAM_IDLE_SECONDS = 1.5
    upstream.script({"text": "Hello.", "think_seconds": 2})
    if stream:
        deltas = [choice["delta"] for chunk in await streamed(wire, request()) for choice in chunk["choices"]]
        assert "".join(delta.get("content") or "" for delta in deltas) == "Hello."
    else:
        assert (await wire.complete(request()))["choices"][0]["message"]["content"] == "Hello."


@pytest.mark.parametrize("step", [{"hang": "before"}, {"think_seconds": 30}])
async def test_the_first_byte_of_a_stream_has_its_own_limit(
    wire: OpenAIModel, upstream: UpstreamServer, settings: Settings, step: dict[str, Any]
) -> None:
    settings.UPSTREAM_FIRST_BYTE_SECONDS = 0.3
    upstream.script({"text": "Hello.", **step})
    error = await failure(wire, request(), stream=True)
    assert isinstance(error, UpstreamSilent)
    assert error.details == {"limit": "first_byte"}
    upstream.script({"text": "Hello.", "think_seconds": 1})
    assert await wire.complete(request()), "an unstreamed answer has no first-byte limit"


@pytest.mark.parametrize(
    "step",
    [
        {"whole": True},
        {"raw": [json.dumps({"model": "m", "choices": [{"message": {"content": "Hello."}}]}, indent=1)]},
    ],
)
async def test_an_unstreamed_answer_to_a_streamed_request_is_one_chunk(
    wire: OpenAIModel, upstream: UpstreamServer, step: dict[str, Any]
) -> None:
    upstream.script({"text": "Hello.", **step})
    (chunk,) = await streamed(wire, request())
    assert chunk["choices"][0]["delta"]["content"] == "Hello."
    assert chunk["choices"][0]["finish_reason"] == "stop"


async def test_an_unstreamed_answer_keeps_its_calls_and_usage(wire: OpenAIModel, upstream: UpstreamServer) -> None:
    upstream.script({"calls": [{"name": "a"}, {"name": "b"}], "whole": True})
    (chunk,) = await streamed(wire, request())
    calls = chunk["choices"][0]["delta"]["tool_calls"]
    assert [(call["index"], call["function"]["name"]) for call in calls] == [(0, "a"), (1, "b")]
    assert chunk["usage"]["total_tokens"] == 10


async def test_without_streaming_support_the_whole_answer_is_requested(
    wire: OpenAIModel, upstream: UpstreamServer
) -> None:
    upstream.script({"status": 400, "error": "Streaming is not supported by this model."}, "Hello.")
    (chunk,) = await streamed(wire, request())
    assert chunk["choices"][0]["delta"]["content"] == "Hello."
    assert [row["stream"] for row in upstream.requests()] == [True, False]


async def test_a_refusal_that_mentions_an_upstream_is_not_repeated(wire: OpenAIModel, upstream: UpstreamServer) -> None:
    upstream.script({"status": 400, "error": "Upstream error: the picture is broken."}, "Hello.")
    await failure(wire, request(), stream=True)
    assert len(upstream.requests()) == 1


async def test_bytes_that_are_not_utf_8_spoil_only_their_characters(
    wire: OpenAIModel, upstream: UpstreamServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = b'data: {"choices": [{"index": 0, "delta": {"content": "a\xf0\x9f"}, "finish_reason": "stop"}]}\n\n'
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, content=body))
    connect_to(transport, monkeypatch)
    (chunk,) = await streamed(wire, request())
    assert chunk["choices"][0]["delta"]["content"] == "a\ufffd"


async def test_an_endless_line_is_refused(wire: OpenAIModel, upstream: UpstreamServer, settings: Settings) -> None:
    settings.ANSWER_BYTES = 1000
    upstream.script({"raw": ["data: " + "x" * 100_000]})
    assert isinstance(await failure(wire, request(), stream=True), TooLarge)


def test_a_long_line_in_small_packets_is_copied_once(settings: Settings) -> None:
    copied = 0

    class Counting(bytearray):
        def __iadd__(self, other: Any) -> "Counting":
            nonlocal copied
            copied += len(other)
            return super().__iadd__(other)  # type: ignore[return-value]

    lines = LineSplitter()
    lines._buffer = Counting()
    for _ in range(50_000):
        assert lines.feed(b"x" * 20) == []
    assert copied == 1_000_000, "each byte is copied once"
    assert len(lines.feed(b"\n")[0]) == 1_000_000


async def test_the_demo_model_is_used_only_without_any_upstream(wire: OpenAIModel, settings: Settings) -> None:
    settings.DAYBOOK_UPSTREAMS = {}
    assert is_demo()
    assert (await streamed(wire, request()))[0]["model"] == "demo"
    settings.DAYBOOK_UPSTREAMS = {"local": {"url": f"http://127.0.0.1:{free_port()}/v1", "key": ""}}
    assert not is_demo()
    await wire.close()
    error = await failure(wire, request(), stream=True)
    assert str(error) == "The default upstream is not configured. Set OPENAI_BASE_URL or OPENAI_API_KEY."


@pytest.mark.parametrize(
    "line",
    [
        "data: {broken",
        "data: 7",
        'data: {"error": {"message": "out of memory"}}',
        'data: "\\ud83d',
        'data: {"choices": [null]}',
    ],
)
async def test_an_invalid_stream_is_unreachable(wire: OpenAIModel, upstream: UpstreamServer, line: str) -> None:
    upstream.script({"raw": [line]})
    assert isinstance(await failure(wire, request(), stream=True), UpstreamUnreachable)


@pytest.mark.parametrize("body", ["<html>", "[]", "{}", '{"choices": []}', '"text"'])
async def test_an_invalid_answer_is_unreachable(wire: OpenAIModel, upstream: UpstreamServer, body: str) -> None:
    upstream.script({"raw": [body]})
    assert isinstance(await failure(wire, request(), stream=False), UpstreamUnreachable)


async def test_a_stream_without_an_end_was_cut_off(wire: OpenAIModel, upstream: UpstreamServer) -> None:
    upstream.script({"raw": ['data: {"choices": [{"index": 0, "delta": {"content": "Hel"}}]}']})
    assert isinstance(await failure(wire, request(), stream=True), UpstreamUnreachable)


@pytest.mark.parametrize("end", [{"hang": "middle"}, {"break_off": "middle"}], ids=str)
async def test_an_answer_with_a_finish_reason_is_complete_without_the_end_of_its_stream(
    wire: OpenAIModel, upstream: UpstreamServer, settings: Settings, end: dict[str, str]
) -> None:
    settings.UPSTREAM_IDLE_SECONDS = 0.2
    upstream.script({"raw": [f"data: {json.dumps(chunk)}" for chunk in (SAYS, ENDS)], **end})
    assert await streamed(wire, request()) == [SAYS, ENDS]


@pytest.mark.parametrize("choices", [1, 2])
async def test_an_answer_is_not_complete_while_a_choice_goes_on(
    wire: OpenAIModel, upstream: UpstreamServer, choices: int
) -> None:
    """Open WebUI sends a finish reason with the reasoning, and of two choices one ends first."""
    more = {"choices": [{"index": choices - 1, "delta": {"content": "Hel"}}]}
    upstream.script({"raw": [f"data: {json.dumps(chunk)}" for chunk in (SAYS, ENDS, more)], "break_off": "middle"})
    error = await failure(wire, request(parameters={"n": choices}), stream=True)
    assert "broke off" in str(error)


async def test_the_last_line_may_lack_its_newline(
    wire: OpenAIModel, upstream: UpstreamServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in (SAYS, ENDS)).rstrip().encode()
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, content=body))
    connect_to(transport, monkeypatch)
    assert await streamed(wire, request()) == [SAYS, ENDS]
    body = body[:-5]
    assert "broke off" in str(await failure(wire, request(), stream=True))
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in (SAYS, ENDS)).encode()
    body += b'\n\ndata: {"choices": [], "usa'
    assert await streamed(wire, request()) == [SAYS, ENDS], "the usage was cut off, but not the answer"


async def test_an_answer_sent_as_one_event_is_accepted(wire: OpenAIModel, upstream: UpstreamServer) -> None:
    whole = {"choices": [{"index": 0, "message": {"content": "Hello."}, "finish_reason": "stop"}]}
    upstream.script({"raw": [f"data: {json.dumps(whole)}", "data: [DONE]"]})
    (chunk,) = await streamed(wire, request())
    assert chunk["choices"][0]["delta"] == {"content": "Hello."}
    upstream.script({"raw": [f"data: {json.dumps(chunk)}" for chunk in (SAYS, whole)]})
    assert [chunk["choices"][0].get("delta") for chunk in await streamed(wire, request())] == [
        {"content": "Hello."},
        None,
    ], "some servers repeat the whole answer at the end"


@pytest.mark.parametrize("lines", [[], ['data: {"choices": []}'], ['data: {"choices": null}']], ids=str)
async def test_a_stream_without_a_choice_is_unreachable(
    wire: OpenAIModel, upstream: UpstreamServer, lines: list[str]
) -> None:
    upstream.script({"raw": [*lines, "data: [DONE]"]})
    assert isinstance(await failure(wire, request(), stream=True), UpstreamUnreachable)


async def test_events_without_data_are_ignored(wire: OpenAIModel, upstream: UpstreamServer) -> None:
    upstream.script({"raw": ["data:", "data: ", f"data: {json.dumps(ENDS)}", "data: [DONE]"]})
    assert await streamed(wire, request()) == [ENDS]


async def test_a_byte_order_mark_before_the_first_event_is_ignored(
    wire: OpenAIModel, upstream: UpstreamServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in (SAYS, ENDS))
    connect_to(httpx2.MockTransport(lambda _: httpx2.Response(200, content=body.encode("utf-8-sig"))), monkeypatch)
    assert await streamed(wire, request()) == [SAYS, ENDS]
    body = json.dumps({"choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}]})
    (chunk,) = await streamed(wire, request())
    assert chunk["choices"][0]["delta"] == {"content": "Hello."}, "an answer that is not streamed"


async def test_the_data_of_an_event_may_be_several_lines(wire: OpenAIModel, upstream: UpstreamServer) -> None:
    """Server libraries split data at its line breaks, such as those of indented JSON."""
    events = [json.dumps(chunk, indent=1).replace("\n", "\ndata: ") for chunk in (SAYS, ENDS)]
    upstream.script({"raw": [*(f"data: {event}" for event in events), "data: [DONE]"]})
    assert await streamed(wire, request()) == [SAYS, ENDS]


async def test_the_lines_of_an_event_are_limited_together(
    wire: OpenAIModel, upstream: UpstreamServer, settings: Settings
) -> None:
    settings.ANSWER_BYTES = 1000
    upstream.script({"raw": ["\n".join(["data: {", *["data: " + "x" * 900] * 100])]})
    assert isinstance(await failure(wire, request(), stream=True), TooLarge)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", [200, 429])
async def test_a_compressed_answer_is_not_unpacked(
    wire: OpenAIModel, upstream: UpstreamServer, monkeypatch: pytest.MonkeyPatch, status: int, stream: bool
) -> None:
    packed = brotli.compress(b"\n" * 1_000_000)
    asked = []

    def answer(asking: httpx2.Request) -> httpx2.Response:
        asked.append(asking.headers["accept-encoding"])
        body = httpx2.ByteStream(packed)
        return httpx2.Response(status, headers={"content-encoding": "br"}, stream=body)

    connect_to(httpx2.MockTransport(answer), monkeypatch)
    error = await failure(wire, request(), stream=stream)
    assert type(error) is (UpstreamUnreachable if status == 200 else RateLimited)
    assert ("compressed" in str(error)) == (status == 200)
    assert set(asked) == {"identity"}


@pytest.mark.parametrize("part", ["text", [1], 5])
async def test_a_message_that_is_not_an_object_is_left_out(
    wire: OpenAIModel, upstream: UpstreamServer, part: Any
) -> None:
    upstream.script({"raw": [json.dumps({"choices": [{"message": part, "finish_reason": "stop"}]})]})
    assert (await wire.complete(request()))["choices"] == [{"message": {}, "finish_reason": "stop"}]
    upstream.script({"raw": [f"data: {json.dumps({'choices': [{'delta': part, 'finish_reason': 'stop'}]})}"]})
    assert (await streamed(wire, request()))[0]["choices"] == [{"delta": {}, "finish_reason": "stop"}]


@pytest.mark.parametrize("stream", [True, False])
async def test_non_json_numbers_are_replaced(wire: OpenAIModel, upstream: UpstreamServer, stream: bool) -> None:
    logprobs = '{"low": -Infinity, "none": NaN, "high": 1e999}'
    part = f'{{"delta" :{{}}, "message": {{}}, "logprobs": {logprobs}, "finish_reason": "stop"}}'
    answer = f'{{"choices": [{part}]}}'
    upstream.script({"raw": [f"data: {answer}"] if stream else [answer]})
    read = (await streamed(wire, request()))[0] if stream else await wire.complete(request())
    assert read["choices"][0]["logprobs"] == {"low": -9999.0, "none": None, "high": None}


async def test_the_deadline_applies_even_if_data_is_always_available(
    wire: OpenAIModel, upstream: UpstreamServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 0.05

    class EndlessStream(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            threading.Event().wait(limit)  # blocks the event loop
            for _ in range(3):
                yield f"data: {json.dumps(SAYS)}\n\n".encode()
            yield b"data: [DONE]\n\n"

    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, stream=EndlessStream()))
    connect_to(transport, monkeypatch)
    error = await failure(wire, request(seconds=limit), stream=True)
    assert (type(error), error.details) == (UpstreamTimeout, {"limit": "total"})


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("end", ["error", "abort", "network_error", "insufficient_system_resource"])
async def test_an_answer_with_an_error_finish_reason_is_incomplete(
    wire: OpenAIModel, upstream: UpstreamServer, end: str, stream: bool
) -> None:
    upstream.script({"text": "Hel", "finish_reason": end})
    assert "broke off" in str(await failure(wire, request(), stream=stream))


async def test_closing_a_stream_closes_the_connection(wire: OpenAIModel, upstream: UpstreamServer) -> None:
    upstream.script({"text": ["one ", "two"], "hang": "middle"})
    stream = wire.stream(request())
    assert (await anext(stream))["choices"]
    await stream.aclose()
    await eventually_async(lambda: upstream.last()["state"] == "hung_up", within=5)
