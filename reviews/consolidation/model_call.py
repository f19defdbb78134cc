"""Calling a model within the time limit and the quotas. No transaction is open during the call."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from gateway import steps
from gateway.agents.model_choice import UpstreamUndecided
from gateway.errors import RequestRefused
from gateway.steps import ModelStepResult
from gateway.upstream import ModelTarget
from gateway.upstream.fault_classes import CERTIFICATE, CONNECT, LOCKED, fault_class
from memories.database.access import in_thread
from memories.errors import DomainError, InvalidRequest
from memories.tokens import text_tokens
from reviews.consolidation.quotas import Usage, record_usage
from reviews.consolidation.runs import ConsolidationClaim
from reviews.errors import AnswerUnusable

T = TypeVar("T")
ANSWER_TOKENS = 2000
"""The estimate for an answer."""

_CUT_OFF = (
    "The answer of the model {model} was cut off: it reached its server's limit for an answer or for the context. "
    "Raise that limit, lower extraction_token_limit and synthesis_token_limit, or choose another model (model_roles)."
)
_PERMANENT = (LOCKED, CERTIFICATE)
_DOWN = frozenset({502, 503, 504, 529})


async def ask(
    claim: ConsolidationClaim,
    messages: tuple[dict[str, Any], ...],
    *,
    target: ModelTarget,
    keep_free: Usage | None = None,
) -> ModelStepResult:
    """Call the model and record the usage. Raises QuotaExceeded, without sending anything, and DomainErrors."""
    estimate = estimated_tokens(messages)
    claim.meter.reserve(estimate, keep_free=keep_free)
    tokens = 0
    try:
        result = await steps.ask(
            target,
            messages,
            seconds=claim.limits.request_seconds,
            owner=str(claim.run.owner_id),
            request_id=str(claim.run.pk),
        )
        tokens = int(result.usage.get("total_tokens") or 0) or estimate - ANSWER_TOKENS + text_tokens(result.text)
    finally:
        run, day = await asyncio.shield(in_thread(record_usage, claim.run.pk, claim.run.owner_id, tokens))
        claim.meter.settle(estimate, run, day)
    return replace(result, model=result.model or target.model)


def parsed(answer: ModelStepResult, parse: Callable[[str], T]) -> T:
    """Return what `parse` reads in an answer. Raises AnswerUnusable, which says so if the answer was cut off."""
    try:
        return parse(answer.visible_text)
    except AnswerUnusable:
        if answer.finish_reason == "length":
            raise AnswerUnusable(_CUT_OFF.format(model=answer.model)) from None
        raise


def estimated_tokens(messages: tuple[dict[str, Any], ...]) -> int:
    """Return the estimated tokens of a request and its answer."""
    return sum(text_tokens(str(message["content"])) for message in messages) + ANSWER_TOKENS


def is_permanent(error: DomainError) -> bool:
    """Return True if every request would fail like this: a wrong key, no credit, an unknown model, a certificate that
    is not accepted, no upstream."""
    if isinstance(error, UpstreamUndecided):
        return True
    not_configured = isinstance(error, InvalidRequest) and not isinstance(error, RequestRefused)
    return not_configured or fault_class(error) in _PERMANENT


def is_down(error: DomainError) -> bool:
    """Return True if the server is down: no connection, or a status that says so. A 500 may concern this request
    only."""
    return fault_class(error) is CONNECT or error.details.get("status") in _DOWN
