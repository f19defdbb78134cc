"""Memory settings, model roles and prices as they are now: rows that administrators edit and the agents file sets."""

from typing import Any

from gateway.agents.rows import ByVersion, of_version
from gateway.agents.settings import ConsolidationSettings, ModelRoles, Price
from gateway.models import Agent, Configuration

# Every change of these settings raises the versions of all agents.
_checked: ByVersion[ConsolidationSettings] = {}
_prices: ByVersion[dict[str, Price]] = {}


def consolidation_settings() -> ConsolidationSettings:
    """Return the settings of consolidation. One query."""
    return ConsolidationSettings.model_validate(_section("memories"))


def consolidation_settings_of(agent: Agent) -> ConsolidationSettings:
    """Return the settings of consolidation for a turn; a warm cache needs no query."""
    return of_version(_checked, agent, consolidation_settings)


def prices() -> dict[str, Price]:
    """Money per million tokens, by model. One query."""
    return {model: Price.model_validate(price) for model, price in _section("prices").items() if price}


def prices_of(agent: Agent) -> dict[str, Price]:
    """Return the prices for a turn; a warm cache needs no query."""
    return of_version(_prices, agent, prices)


def price_of(model: str) -> Price | None:
    """Money per million tokens of a model, or None where nobody said. One query."""
    return prices().get(model)


def model_roles() -> ModelRoles:
    """Return the models of background work as they are now. One query."""
    return ModelRoles.model_validate(_section("model_roles"))


def _section(name: str) -> dict[str, Any]:
    value = Configuration.objects.filter(section=name).values_list("value", flat=True).first()
    return dict(value) if value else {}
