"""Settings that contradict each other, so that what they set up can never work; for `doctor`. Only what is certain: a
sentence of each says what never happens, and why."""

from collections.abc import Iterator

from django.conf import settings

from gateway.agents.configuration import consolidation_settings
from gateway.agents.rows import agent_settings
from gateway.agents.settings import AgentSettings, ConsolidationSettings
from gateway.models import Agent
from memories.tokens import CHARS_PER_TOKEN, text_tokens
from prompts.consolidation import extraction_messages
from reviews.consolidation.model_call import estimated_tokens

_HOURS = 24


def contradictions() -> Iterator[tuple[str, str]]:
    """Yield what contradicts itself, as the name of the agent or part, and a sentence. Queries the database."""
    for agent in Agent.objects.order_by("name"):
        for sentence in of_agent(agent_settings(agent)):
            yield f"agent {agent.name}", sentence
    for sentence in of_consolidation(consolidation_settings()):
        yield "consolidation", sentence


def of_agent(agent: AgentSettings) -> Iterator[str]:
    """Yield what an agent's settings can never do."""
    if agent.memory_tools and settings.RUN_STEPS == 1:
        yield "It is never given its memory tools: DAYBOOK_RUN_STEPS is 1, and the last step of a run has no tools."
    if agent.reviews_on and not agent.memory_review_max_writes:
        yield "Its reviews never save anything: memory_review_max_writes is 0."
    limit = agent.context_token_limit
    if (taken := text_tokens(agent.instructions)) >= limit:
        yield f"Its instructions take {taken:,} tokens, context_token_limit is {limit:,}: every turn is above it."
    if agent.inject_memories and (most := _frozen_tokens(agent)) >= limit:
        yield f"A full frozen block takes {most:,} tokens, context_token_limit is {limit:,}: nothing else has room."


def of_consolidation(limits: ConsolidationSettings) -> Iterator[str]:
    """Yield what consolidation can never do with these settings; nothing if it is off."""
    if not limits.enabled:
        return
    if limits.min_rollout_idle_hours >= limits.max_rollout_age_days * _HOURS:
        yield (
            f"No session is ever read: it rests for min_rollout_idle_hours ({limits.min_rollout_idle_hours:g}), and is "
            f"too old after max_rollout_age_days ({limits.max_rollout_age_days})."
        )
    if limits.max_requests_per_run == 1:
        yield "No session is ever read: max_requests_per_run is 1, and the synthesis needs one request."
    least = estimated_tokens(extraction_messages(thread_id="", items=()))
    left = limits.max_tokens_per_run - min(limits.synthesis_token_limit, limits.max_tokens_per_run // 4)
    for name, most in (("max_tokens_per_run", left), ("max_tokens_per_day", limits.max_tokens_per_day)):
        if most < least:
            yield f"No session is ever read: {name} leaves {most:,} tokens, and reading the shortest takes {least:,}."


def _frozen_tokens(agent: AgentSettings) -> int:
    """Return about how many tokens the frozen block has when the budgets are full."""
    budgets = (agent.user_char_limit, agent.memory_char_limit)
    return min(agent.frozen_char_limit, sum(budgets) if all(budgets) else agent.frozen_char_limit) // CHARS_PER_TOKEN
