"""The current memory settings, model roles and prices: rows that administrators edit and the agents file sets."""

from typing import Any

from gateway.agents.rows import cached_by_version
from gateway.agents.settings import ConsolidationSettings, ModelRoles, Price
from gateway.models import Agent, Configuration


def consolidation_settings() -> ConsolidationSettings:
    """Return the current consolidation settings. One query."""
    return ConsolidationSettings.model_validate(_section("memories"))


@cached_by_version  # every change of these settings increments the versions of all agents
def consolidation_settings_of(agent: Agent) -> ConsolidationSettings:
    """Return the consolidation settings for a turn, cached by its agent's version."""
    return consolidation_settings()


def prices() -> dict[str, Price]:
    """Return the prices by model. One query."""
    return {model: Price.model_validate(price) for model, price in _section("prices").items() if price}


@cached_by_version
def prices_of(agent: Agent) -> dict[str, Price]:
    """Return the prices for a turn, cached by its agent's version."""
    return prices()


def model_roles() -> ModelRoles:
    """Return the models of background work. One query."""
    return ModelRoles.model_validate(_section("model_roles"))


def _section(name: str) -> dict[str, Any]:
    value = Configuration.objects.filter(section=name).values_list("value", flat=True).first()
    return dict(value) if value else {}
