"""The identity of a request to a model server: our request id and the client's trace; and OpenTelemetry spans."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway import telemetry
from gateway.models import Agent, Session
from gateway.upstream.request import ModelTarget
from memories.errors import DomainError
from reviews.frozen import FrozenConversation
from reviews.runner import ReviewAttempt, _run_in_time
from reviews.staged import StagedBook
from tests.conftest import Api
from tests.gateway.v1 import PATH, ask
from tests.upstreams.server import RuledServer, Step

pytestmark = pytest.mark.any_database

trace = pytest.importorskip("opentelemetry.trace")
Serve = Callable[[str], RuledServer]

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
STATE = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"
ADD = ("add_memory", {"content": "Is vegetarian.", "target": "user"})
BODY = {"model": "assistant", "messages": [{"role": "user", "content": "I'm vegetarian"}]}


@pytest.fixture
def server(serve: Serve) -> RuledServer:
    return serve("openai")


@pytest.mark.parametrize("stream", [False, True])
async def test_every_model_call_sends_the_request_id_and_the_trace(
    alice_api: Api, agent: Agent, server: RuledServer, stream: bool
) -> None:
    server.script(Step(calls=(ADD,)), Step(text="Noted."))
    headers = {"x_request_id": "mine-1", "traceparent": PARENT, "tracestate": STATE}
    await alice_api.stream(PATH, {**BODY, "stream": stream}, **headers)
    assert len(server.headers) == 2
    for sent in server.headers:
        assert (sent["x-request-id"], sent["traceparent"], sent["tracestate"]) == ("mine-1", PARENT, STATE)


async def test_a_native_turn_sends_the_request_id_and_the_trace(
    alice_api: Api, session: Session, server: RuledServer
) -> None:
    server.script(Step(text="Hello."))
    await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Hi"}, traceparent=PARENT)
    assert server.headers[0]["traceparent"] == PARENT
    assert server.headers[0]["x-request-id"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"traceparent": "mine"},
        {"traceparent": PARENT.upper()},
        {"traceparent": "ff" + PARENT[2:]},
        {"traceparent": f"00-{'0' * 32}-b7ad6b7169203331-01"},
        {"traceparent": f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01"},
        {"traceparent": PARENT + "-" + "x" * 10_000},
        {"tracestate": STATE},
    ],
)
async def test_invalid_traces_are_not_replaced(
    alice_api: Api, agent: Agent, server: RuledServer, headers: dict[str, str]
) -> None:
    server.script(Step(text="Hello."))
    assert (await ask(alice_api, "Hi", headers=headers)).status == 200
    assert server.headers[0].keys().isdisjoint({"traceparent", "tracestate"})


@pytest.mark.parametrize("state", ["", "no member", "a=1,", "a=" + "x" * 600, ",".join(f"k{n}=1" for n in range(33))])
async def test_an_invalid_tracestate_is_left_out(alice_api: Api, agent: Agent, server: RuledServer, state: str) -> None:
    server.script(Step(text="Hello."))
    await ask(alice_api, "Hi", headers={"traceparent": PARENT, "tracestate": state})
    assert server.headers[0]["traceparent"] == PARENT
    assert "tracestate" not in server.headers[0]


@dataclass
class RecordedSpan(trace.Span):  # type: ignore[misc,name-defined]
    """A span that records what is set on it."""

    name: str
    parent: Any
    context: Any
    attributes: dict[str, Any]
    status: Any = None
    ended: bool = False

    def get_span_context(self) -> Any:
        return self.context

    def set_attributes(self, attributes: Any) -> None:
        self.attributes |= attributes

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value

    def set_status(self, status: Any, description: str | None = None) -> None:
        assert description is None
        self.status = status

    def end(self, end_time: int | None = None) -> None:
        assert not self.ended
        self.ended = True

    def is_recording(self) -> bool:
        return True

    def add_event(self, *args: Any, **more: Any) -> None:
        raise AssertionError("events may quote people's text")

    record_exception = update_name = add_link = add_links = add_event


@dataclass
class Tracer:
    """A tracer that creates and keeps RecordedSpans."""

    spans: list[RecordedSpan] = field(default_factory=list)

    def start_span(self, name: str, context: Any, attributes: dict[str, Any], record_exception: bool) -> RecordedSpan:
        assert not record_exception
        parent = trace.get_current_span(context)
        known = parent.get_span_context()
        number = len(self.spans) + 1
        created = trace.SpanContext(known.trace_id or 7, number, False, trace.TraceFlags(1), known.trace_state)
        self.spans.append(
            RecordedSpan(name, parent if isinstance(parent, RecordedSpan) else known, created, attributes)
        )
        return self.spans[-1]

    def tree(self) -> list[tuple[str, str]]:
        assert all(span.ended for span in self.spans)
        return [(span.name, getattr(span.parent, "name", "")) for span in self.spans]


@pytest.fixture
def tracer(monkeypatch: pytest.MonkeyPatch) -> Tracer:
    created = Tracer()
    monkeypatch.setattr(telemetry, "_tracer", created)
    return created


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_has_spans(
    alice_api: Api, agent: Agent, server: RuledServer, tracer: Tracer, stream: bool
) -> None:
    server.script(Step(calls=(ADD,)), Step(text="Noted."))
    await alice_api.stream(PATH, {**BODY, "stream": stream}, traceparent=PARENT)
    turn = "daybook.turn"
    steps = [("daybook.model_step", turn), ("daybook.tool", turn), ("daybook.model_step", turn)]
    assert tracer.tree() == [(turn, ""), ("daybook.recall", turn), *steps]
    first, _, step, tool, _ = tracer.spans
    assert f"{first.parent.trace_id:032x}-{first.parent.span_id:016x}" in PARENT
    assert first.attributes.items() >= {"daybook.agent": "assistant", "daybook.state": "completed"}.items()
    assert step.attributes.items() >= {"gen_ai.usage.input_tokens": 7, "gen_ai.request.model": "gpt-4o-mini"}.items()
    assert tool.attributes["gen_ai.tool.name"] == "add_memory"
    assert "egetarian" not in str([span.attributes for span in tracer.spans])
    assert server.headers[0]["traceparent"] == f"00-{PARENT[3:35]}-{step.context.span_id:016x}-01"


async def test_a_trace_begins_here_if_the_client_sends_none(
    alice_api: Api, agent: Agent, server: RuledServer, tracer: Tracer
) -> None:
    server.script(Step(text="Hello."))
    await ask(alice_api, "Hi")
    assert server.headers[0]["traceparent"].startswith("00-")


async def test_a_failed_span_has_the_error_type(
    alice_api: Api, agent: Agent, server: RuledServer, tracer: Tracer
) -> None:
    server.script(Step(refused="I will not talk about vegetarians.", code="odd"))
    assert (await ask(alice_api, "Hi")).status == 400
    tracer.tree()
    failed = [span for span in tracer.spans if span.status == trace.StatusCode.ERROR]
    assert [span.name for span in failed] == ["daybook.turn", "daybook.model_step"]
    assert {span.attributes["error.type"] for span in failed} == {"invalid_request"}
    assert "vegetarians" not in str([span.attributes for span in tracer.spans])


async def test_a_client_that_leaves_ends_the_spans(
    alice_api: Api, agent: Agent, server: RuledServer, tracer: Tracer
) -> None:
    server.script(Step(text="Hello."))
    response = await alice_api.raw("POST", PATH, {**BODY, "stream": True})
    await response.source.aclose()
    assert {span.ended for span in tracer.spans} == {True}
    assert all(span.status is None for span in tracer.spans)


async def test_a_review_has_a_span(server: RuledServer, tracer: Tracer) -> None:
    server.script(Step(refused="No."))
    messages = ({"role": "user", "content": "I'm vegetarian"}, {"role": "assistant", "content": "Good."})
    attempt = ReviewAttempt(
        book=StagedBook.of([], {}, max_writes=3),
        conversation=FrozenConversation(messages=messages, has_news=True),
        target=ModelTarget("default", "m"),
        request_id="r-1",
    )
    with pytest.raises(DomainError):
        await _run_in_time(attempt, asyncio.get_running_loop().time() + 60)
    assert tracer.tree() == [("daybook.review", ""), ("daybook.model_step", "daybook.review")]
    assert {span.status for span in tracer.spans} == {trace.StatusCode.ERROR}


async def test_without_opentelemetry_the_trace_is_only_forwarded(
    alice_api: Api, agent: Agent, server: RuledServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "_tracer", None)
    monkeypatch.delattr(telemetry, "trace")
    server.script(Step(calls=(ADD,)), Step(text="Noted."))
    assert (await ask(alice_api, "Hi", headers={"traceparent": PARENT})).text == "Noted."
    assert server.headers[1]["traceparent"] == PARENT
