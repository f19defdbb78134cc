"""`doctor` reports contradictory settings, and only those."""

from typing import Any

import pytest
from pytest_django import Settings

from config.doctor import consolidation_contradictions, findings
from config.findings import Finding, Level
from gateway.agents.contradictions import agent_contradictions
from gateway.agents.settings import AgentSettings, ConsolidationSettings
from tests.factories import agent_make

CONSOLIDATION = [
    ({"max_rollout_age_days": 1, "min_rollout_idle_hours": 24}, "it must be idle for min_rollout_idle_hours (24)"),
    ({"max_requests_per_run": 1}, "max_requests_per_run is 1"),
    ({"max_tokens_per_run": 1000}, "max_tokens_per_run leaves 750 tokens"),
    ({"max_tokens_per_day": 1000}, "max_tokens_per_day leaves 1,000 tokens"),
]
AGENTS = [
    ({"memory_review_interval": 5, "memory_review_max_writes": 0}, "never save anything"),
    ({"instructions": "word " * 2000, "context_token_limit": 2000}, "Its instructions take"),
    (
        {"inject_memories": True, "frozen_char_limit": 8000, "memory_char_limit": 0, "context_token_limit": 2000},
        "A full frozen block takes 2,000 tokens, context_token_limit is 2,000",
    ),
]


@pytest.mark.parametrize(("settings_given", "text"), CONSOLIDATION)
def test_limits_that_prevent_consolidation_are_reported(settings_given: dict[str, Any], text: str) -> None:
    (sentence,) = consolidation_contradictions(ConsolidationSettings(enabled=True, **settings_given))
    assert text in sentence
    assert list(consolidation_contradictions(ConsolidationSettings(enabled=False, **settings_given))) == []


@pytest.mark.parametrize(("settings_given", "text"), AGENTS)
def test_contradictory_agent_settings_are_reported(settings_given: dict[str, Any], text: str) -> None:
    (sentence,) = agent_contradictions(AgentSettings(**settings_given))
    assert text in sentence


def test_one_step_leaves_no_room_for_tools(settings: Settings) -> None:
    settings.RUN_STEPS = 1
    agent = AgentSettings.model_validate({"tools": [{"type": "memory"}]})
    assert "never given its memory tools" in next(agent_contradictions(agent))


def test_consistent_settings_are_not_reported() -> None:
    tight = {"max_requests_per_run": 2, "max_rollout_age_days": 1, "min_rollout_idle_hours": 23}
    assert list(consolidation_contradictions(ConsolidationSettings(enabled=True))) == []
    assert list(consolidation_contradictions(ConsolidationSettings(enabled=True, **tight))) == []
    assert list(agent_contradictions(AgentSettings())) == []
    small = {"inject_memories": True, "frozen_char_limit": 10_000_000, "context_token_limit": 2000}
    assert list(agent_contradictions(AgentSettings(**small))) == [], "the budgets keep the block small"


@pytest.mark.django_db
def test_doctor_warns_of_contradictory_settings() -> None:
    agent_make("quiet", memory_review_interval=3, memory_review_max_writes=0)
    text = "Its reviews never save anything: memory_review_max_writes is 0."
    assert Finding("agent quiet", Level.WARNING, text) in list(findings())
