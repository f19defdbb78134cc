"""How a response is made: from a turn, or from the one model step of a request that is not a turn."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from gateway.api.responses_answer import Answer
from gateway.api.responses_body import ResponsesBody
from gateway.errors import UpstreamUnreachable
from gateway.passthrough import PlainCall, plain_chunks, plain_completion
from gateway.runs.responses import part_of
from gateway.tool_calls import calls_in
from gateway.turns.events import Delta, Done
from gateway.turns.joined import AnyTurn
from gateway.upstream.answer import choices_of, chunk_of_completion
from gateway.upstream.outgoing import said_in
from gateway.upstream.usage import usage_of


def turn_answer(turn: AnyTurn, asked: ResponsesBody) -> Answer:
    """Return the empty answer of a turn."""
    context = turn.context
    return Answer(
        run_id=context.run_id,
        part=part_of(context),
        model=context.agent.name,
        echo=asked.echo,
        names=asked.names,
        sealed=asked.sealed,
        created_at=int(context.started_at.timestamp()),
    )


async def run_turn(turn: AnyTurn, answer: Answer) -> AsyncGenerator[None]:
    """Run a turn and pass its events to the answer; yields after each event. Raises DomainErrors."""
    async with aclosing(turn.events()) as events:
        async for event in events:
            if isinstance(event, Delta):
                answer.take(event)
            elif isinstance(event, Done):
                tier = event.around.get("service_tier") or event.choice.get("service_tier")
                answer.finish(
                    finish_reason=event.finish_reason,
                    usage=event.new_usage,
                    whole=event.choice,
                    **({"service_tier": tier} if tier else {}),
                )
            yield


async def whole_response(steps: AsyncGenerator[None], answer: Answer) -> dict[str, Any]:
    """Run to the end and return the response. Raises DomainErrors."""
    async with aclosing(steps) as running:
        async for _ in running:
            pass
    if not answer.final:
        raise UpstreamUnreachable("The model server gave no answer.")
    return answer.final


async def response_events(steps: AsyncGenerator[None], answer: Answer) -> AsyncGenerator[bytes]:
    """Run to the end and yield the server-sent events. Raises DomainErrors."""
    async with aclosing(steps) as running:
        async for _ in running:
            if news := answer.news():
                yield news


async def run_plain(call: PlainCall, answer: Answer, *, stream: bool) -> AsyncGenerator[None]:
    """Ask the model once, without a turn, and pass its answer on as `run_turn` does. Raises DomainErrors."""
    usage: dict[str, Any] = {}
    finish_reason = ""
    async with aclosing(plain_chunks(call) if stream else _one_chunk(call)) as chunks:
        async for chunk in chunks:
            usage = usage_of(chunk) or usage
            for choice in choices_of(chunk):
                finish_reason = choice.get("finish_reason") or finish_reason
                delta = choice.get("delta") or {}
                calls = [{"index": 0, **call} for call in calls_in(delta)]
                answer.take(Delta(said_in(delta.get("content")), choice, {}, calls))
            yield
    answer.finish(finish_reason=finish_reason, usage=usage, whole={})
    yield


async def _one_chunk(call: PlainCall) -> AsyncGenerator[dict[str, Any]]:
    yield chunk_of_completion(await plain_completion(call))
