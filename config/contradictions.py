"""Settings that contradict each other, so that something they configure can never work; for `doctor`. Settings that may
work are not reported. Contradictions of a single agent are in gateway.agents.contradictions."""

from collections.abc import Iterator

from gateway.agents.configuration import consolidation_settings
from gateway.agents.contradictions import agent_contradictions
from gateway.agents.rows import agent_settings
from gateway.agents.settings import ConsolidationSettings
from gateway.models import Agent
from prompts.consolidation import extraction_messages
from reviews.consolidation.model_call import estimated_tokens

_HOURS = 24


def contradictions() -> Iterator[tuple[str, str]]:
    """Yield the name of the agent or component and a sentence for each contradiction. Queries the database."""
    for agent in Agent.objects.order_by("name"):
        for sentence in agent_contradictions(agent_settings(agent)):
            yield f"agent {agent.name}", sentence
    for sentence in of_consolidation(consolidation_settings()):
        yield "consolidation", sentence


def of_consolidation(limits: ConsolidationSettings) -> Iterator[str]:
    """Yield a sentence for each contradiction in the settings of consolidation; none if it is off."""
    if not limits.enabled:
        return
    if limits.min_rollout_idle_hours >= limits.max_rollout_age_days * _HOURS:
        yield (
            f"No session is ever read: it must be idle for min_rollout_idle_hours ({limits.min_rollout_idle_hours:g}), "
            f"and is too old after max_rollout_age_days ({limits.max_rollout_age_days})."
        )
    if limits.max_requests_per_run == 1:
        yield "No session is ever read: max_requests_per_run is 1, and the synthesis needs one request."
    least = estimated_tokens(extraction_messages(thread_id="", items=()))
    left = limits.max_tokens_per_run - min(limits.synthesis_token_limit, limits.max_tokens_per_run // 4)
    for name, limit in (("max_tokens_per_run", left), ("max_tokens_per_day", limits.max_tokens_per_day)):
        if limit < least:
            yield f"No session is ever read: {name} leaves {limit:,} tokens, and reading the shortest takes {least:,}."
