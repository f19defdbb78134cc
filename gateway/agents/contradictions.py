"""Finds settings of an agent that cannot work, for `doctor`, the agents file and the admin form. Only certain
contradictions are reported: each sentence says what can never happen, and why."""

from collections.abc import Iterator

from django.conf import settings

from gateway.agents.configuration import consolidation_settings
from gateway.agents.model_choice import agent_upstreams, configured_upstreams
from gateway.agents.settings import AgentSettings
from gateway.upstream import missing_upstream
from memories.tokens import CHARS_PER_TOKEN, text_tokens


def agent_warnings(agent: AgentSettings) -> Iterator[str]:
    """Yield a sentence for each of an agent's settings that cannot work here. They are stored nevertheless: its
    upstream may be configured later."""
    yield from missing_upstreams(agent)
    yield from agent_contradictions(agent)


def missing_upstreams(agent: AgentSettings) -> Iterator[str]:
    """Yield a sentence for each upstream of an agent that is not configured."""
    yield from map(missing_upstream, sorted(agent_upstreams(agent) - configured_upstreams()))


def missing_shared_upstream() -> Iterator[str]:
    """Yield a sentence if the upstream that consolidates shared books is not configured."""
    upstream = consolidation_settings().upstream
    if upstream and upstream not in configured_upstreams():
        yield f"memories.upstream: {missing_upstream(upstream)}"


def agent_contradictions(agent: AgentSettings) -> Iterator[str]:
    """Yield a sentence for each contradiction in an agent's settings."""
    if agent.memory_tools and settings.RUN_STEPS == 1:
        yield "It is never given its memory tools: DAYBOOK_RUN_STEPS is 1, and the last step of a run has no tools."
    if agent.reviews_on and not agent.memory_review_max_writes:
        yield "Its reviews never save anything: memory_review_max_writes is 0."
    limit = agent.context_token_limit
    if (taken := text_tokens(agent.instructions)) >= limit:
        yield f"Its instructions take {taken:,} tokens, context_token_limit is {limit:,}: every turn is above it."
    if agent.inject_memories and (block := _frozen_tokens(agent)) >= limit:
        yield f"A full frozen block takes {block:,} tokens, context_token_limit is {limit:,}: nothing else has room."


def _frozen_tokens(agent: AgentSettings) -> int:
    """Return the approximate tokens of the frozen block when the budgets are full."""
    budgets = (agent.user_char_limit, agent.memory_char_limit)
    return min(agent.frozen_char_limit, sum(budgets) if all(budgets) else agent.frozen_char_limit) // CHARS_PER_TOKEN
