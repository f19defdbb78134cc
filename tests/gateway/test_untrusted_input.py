"""Property tests: input from model servers, clients and files is either read or refused with a documented error"""

import asyncio
import codecs
import json
import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

import httpx2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.agents.file import parse
from gateway.agents.settings import AgentsFile
from gateway.api.openai_body import CompletionBody, read_body
from gateway.chat.markdown import render_markdown
from gateway.mcp.protocol import RpcError, read_messages
from gateway.steps import ModelStep, ModelStepResult, complete_step, stream_step
from gateway.upstream import ModelRequest, OpenAIModel, install
from gateway.upstream.answer import (
    EventReader,
    JSONDocument,
    LineSplitter,
    chunk_of_completion,
    has_content,
    is_finished,
    max_body_bytes,
)
from gateway.upstream.dialects import DIALECTS
from gateway.upstream.error_body import is_error, read_error
from gateway.upstream.faults import retry_after_seconds
from gateway.upstream.kept import kept_of
from gateway.upstream.outgoing import request_body
from gateway.upstream.usage import add_usage
from memories.errors import DomainError, InvalidRequest, RateLimited, TooLarge
from memories.pagination import parse_number
from tests.properties import BOUNDED, odd_json, odd_object, odd_text
from tests.upstream_server import UpstreamServer, serving_upstream

MAX_NAME_CHARS = 200
MAX_BYTES = 10_000

function = odd_object(name=st.just("add_memory"), arguments=st.just('{"content": "Likes tea."}'))
calls = st.lists(odd_object(index=st.integers(0, 2), id=odd_text, function=function) | odd_json, max_size=3)
message_or_delta = odd_object(role=st.just("assistant"), content=odd_text, tool_calls=calls, reasoning_content=odd_text)
choice = odd_object(index=st.just(0), delta=message_or_delta, message=message_or_delta, finish_reason=st.just("stop"))
usage = odd_object(
    prompt_tokens=st.integers(), completion_tokens=st.integers(), prompt_tokens_details=odd_object(a=st.integers())
)
answer = odd_object(
    model=st.just("m"), choices=st.lists(choice | odd_json, max_size=2), usage=usage, error=odd_json
) | st.builds(lambda only: {"choices": [only]}, choice)


def as_json(value: Any) -> str:
    """Return JSON as other languages may write it: surrogates as escapes, NaN as a bare word."""
    return json.dumps(value)


lines = st.lists(
    st.builds(lambda value: f"data: {as_json(value)}\n\n", answer | odd_json)
    | st.sampled_from(["data: [DONE]\n\n", ": a comment\n\n", "event: error\n", "data:\n\n", "data: {\n", "\r\n", "{"]),
    max_size=5,
)


@pytest.fixture(scope="module")
def upstream_server() -> Iterator[UpstreamServer]:
    with serving_upstream() as upstream:
        yield upstream


@pytest.fixture
def upstream_and_runner(
    upstream_server: UpstreamServer, settings: Any
) -> Iterator[tuple[UpstreamServer, asyncio.Runner]]:
    """Yield a model server, with a model that calls it, and the loop shared by all examples."""
    settings.DAYBOOK_UPSTREAMS = {"default": {"url": upstream_server.url, "key": "sk-upstream"}}
    model = OpenAIModel()
    install(model)
    with asyncio.Runner() as runner:
        yield upstream_server, runner
        runner.run(model.close())
    upstream_server.reset()


async def run_step(*, stream: bool) -> ModelStepResult:
    """Run a step as a turn does."""
    request = ModelRequest(upstream="default", model="m", messages=({"role": "user", "content": "Hi"},))
    step = ModelStep(deadline=asyncio.get_running_loop().time() + 10, bytes_left=MAX_BYTES)
    async for _ in (stream_step if stream else complete_step)(request, step):
        pass
    return step.result()


def check_storable(step: ModelStepResult) -> None:
    """Check that every database can store the step."""
    assert isinstance(step.model, str)
    assert len(step.model) <= MAX_NAME_CHARS
    assert isinstance(step.finish_reason, str)
    kept = [
        step.text,
        step.model,
        add_usage({}, step.usage),
        [(call.id, call.name, call.arguments) for call in step.calls],
    ]
    written = json.dumps(kept, ensure_ascii=False, allow_nan=False)
    assert "\x00" not in json.loads(written)[0]
    assert "\\u0000" not in written
    written.encode()
    assert len(written) < 100_000


@settings(BOUNDED, max_examples=100)
@given(raw=lines, stream=st.booleans())
@example(raw=['data: {"choices": 7}\n\n'], stream=True)
@example(raw=['data: {"model": {"a": 1}, "choices": [{"finish_reason": ["stop"]}]}\n\n'], stream=True)
@example(raw=['data: {"model": "' + "m" * 300 + '", "choices": [{"finish_reason": "stop"}]}\n\n'], stream=True)
@example(raw=['{"choices": [{}], "usage": {"prompt_tokens_details": {"\\u0000\\ud800": 1}}}'], stream=False)
def test_an_upstream_answer_becomes_a_step_or_a_domain_error(
    upstream_and_runner: tuple[UpstreamServer, asyncio.Runner], raw: list[str], stream: bool
) -> None:
    upstream, runner = upstream_and_runner
    upstream.reset()
    upstream.script({"raw": raw})
    try:
        step = runner.run(run_step(stream=stream))
    except DomainError:
        return
    check_storable(step)
    assert len(step.text.encode()) <= MAX_BYTES


@BOUNDED
@given(st.lists(st.binary(max_size=60) | st.sampled_from([b"data: {}\n", b"\n", b'data: {"choices": [null]}\n'])))
def test_stream_lines_do_not_depend_on_packet_boundaries(packets: list[bytes]) -> None:
    splitter = LineSplitter()
    found = [line for packet in (*packets, b"\n") for line in splitter.feed(packet)]
    assert b"\n".join(found) == b"".join(packets).removeprefix(codecs.BOM_UTF8)
    events = EventReader(httpx2.Request("POST", "http://model"), single_choice=True)
    for line in found:
        try:
            chunk = events.chunk_of(line)
        except (DomainError, ValueError, RecursionError):
            continue
        assert chunk is None or (is_finished(chunk), has_content(chunk)) != (None, None)


@BOUNDED
@given(st.binary(max_size=80) | answer.map(lambda value: as_json(value).encode()))
def test_an_unstreamed_answer_becomes_a_chunk_or_a_documented_error(data: bytes) -> None:
    body = JSONDocument(max_body_bytes())
    body.feed(data)
    try:
        chunk = chunk_of_completion(body.completion(httpx2.Request("POST", "http://model")))
    except (DomainError, ValueError, RecursionError):
        return
    assert isinstance(chunk["choices"], list)


dates = st.datetimes().map(lambda moment: moment.strftime("%a, %d %b %Y %H:%M:%S GMT"))


@BOUNDED
@given(odd_text | dates | st.floats().map(str) | st.integers().map(str))
@example("Mon, 01 Jan 0001 00:00:00 +2359")
@example("Fri, 31 Dec 9999 23:59:59 -2359")
@example("Mon, 01 Jan 0001 00:00:00 -0000")
@example("9" * 400)
@example(", , , ,")
def test_retry_after_is_at_most_an_hour(header: str) -> None:
    seconds = retry_after_seconds(RateLimited("Later.", retry_after=header[:32]))
    assert math.isfinite(seconds)
    assert 0 <= seconds <= 3600


yaml_text = odd_text | st.lists(
    st.sampled_from(
        ["agents:", "memories:", "  a:", "    model: m", "    tools: [{type: memory}]", "- ", "? [a]", "*a", "&a ", "{",
         "}", "2001-99-99", "0x_", "0b", "1:99999999999", "!!int x", "!!float y", "!!timestamp z", "!!binary ?", ": ",
         "<<: 1", "\n", " ", "!!python/object:os.system x", "!!set {a}", "!!omap [a]", "!!pairs [a]", "---",
         "%YAML 9.9", "...", "!!merge x", "9" * 5000]
    ),
    max_size=6,
).map("".join)  # fmt: skip


@BOUNDED
@given(yaml_text)
@example("agents: 2001-99-99")
@example("memories: 0x_")
@example("memories: {a: 2001-01-01T25:00:00Z}")
@example("memories: " + "9" * 5000)
@example("memories: " + "[" * 2000)
@example("agents: &a {b: *a}")
@example("memories: &a {memory_review_interval: *a}")
@example("memories: !!int x")
@example("memories: !!float y")
@example("memories: !!binary é")
@example("memories: !!timestamp z")
@example("memories: !!bool maybe")
@example("{[a]: b}")
def test_an_agents_file_is_read_or_refused(text: str) -> None:
    with suppress(InvalidRequest):
        assert isinstance(parse(text), AgentsFile)


part = odd_object(type=st.sampled_from(["text", "image_url"]), text=odd_text)
message = odd_object(
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=odd_text | st.lists(part, max_size=2),
    tool_calls=calls,
    tool_call_id=odd_text,
)
completion = odd_object(
    model=st.just("assistant"),
    messages=st.lists(message, max_size=3),
    tools=st.lists(odd_object(type=st.just("function"), function=function), max_size=2),
    stream=st.booleans(),
    stream_options=odd_object(include_usage=st.booleans()),
    metadata=odd_json,
)
valid_start = st.builds(lambda body, first: {**body, "model": "a", "messages": [first]}, completion, message)


@BOUNDED
@given(st.binary(max_size=60) | (completion | valid_start | odd_json).map(lambda value: as_json(value).encode()))
def test_a_v1_body_is_read_or_refused(raw: bytes) -> None:
    try:
        body = read_body(raw)
    except (InvalidRequest, TooLarge):
        return
    assert isinstance(body, CompletionBody)
    assert body.is_turn({}) in {True, False}
    json.dumps([body.messages, body.parameters, body.tools], allow_nan=False, ensure_ascii=False).encode()


rpc = odd_object(
    jsonrpc=st.just("2.0"),
    id=st.integers() | odd_text,
    method=st.sampled_from(["initialize", "tools/list", "tools/call", "ping"]),
    params=odd_object(name=st.just("add_memory"), arguments=odd_json, protocolVersion=odd_text, _meta=odd_json),
)


@BOUNDED
@given(st.binary(max_size=60) | (rpc | st.lists(rpc, max_size=3) | odd_json).map(lambda value: as_json(value).encode()))
def test_an_mcp_body_is_read_or_refused(raw: bytes) -> None:
    try:
        messages, _ = read_messages(raw)
    except RpcError as error:
        json.dumps(error.as_json(error.id), allow_nan=False, ensure_ascii=False).encode()
        return
    for found in messages:
        assert isinstance(found.method, str)
        assert isinstance(found.params, dict)
        json.dumps([found.id, found.params], allow_nan=False, ensure_ascii=False).encode()


@BOUNDED
@given(st.binary(max_size=40).map(lambda raw: b"after=" + raw) | st.binary(max_size=40))
@example(b"after=" + b"9" * 5000)
@example("after=²".encode())
@example("after=٣".encode())
def test_the_query_of_a_websocket_contains_a_valid_number_or_none(query: bytes) -> None:
    for given_values in parse_qs(query.decode("latin1")).values():
        found = parse_number(given_values[0])
        assert found is None or 0 <= found < 2**63


@BOUNDED
@given(st.text("*_[]()`<>|~&\\\n #-!:=ab\"'/", max_size=200))
def test_the_size_of_rendered_markdown_is_limited(text: str) -> None:
    assert len(render_markdown(text)) <= 200 + 120 * len(text)


_FIELDS = st.sampled_from(["content", "tool_calls", "reasoning", "reasoning_details", "extra_content", "refusal"])


@BOUNDED
@given(odd_json)
def test_an_error_body_of_any_shape_is_read(body: Any) -> None:
    message_or_delta = read_error(body)
    assert len(message_or_delta.message) <= 300
    assert is_error(body) in {True, False}


@BOUNDED
@given(st.lists(st.dictionaries(_FIELDS, odd_json, max_size=4), max_size=4))
def test_deltas_of_any_shape_can_be_assembled_and_stored(deltas: list[dict[str, Any]]) -> None:
    run_step = ModelStep(deadline=0, bytes_left=100_000)
    for delta in deltas:
        run_step.take({}, delta)
    message = run_step.result().message()
    body = {"model": "", "messages": [{"role": "user", "content": "Hi"}, message]}
    for dialect in (DIALECTS["openai"], DIALECTS["mistral"], DIALECTS["gemini"], DIALECTS["deepseek"]):
        json.dumps(request_body(body, dialect, upstream=""))
    kept = kept_of(message)
    assert kept is not None
    json.dumps(kept.as_json(), ensure_ascii=False, allow_nan=False).encode()
