"""The memory settings, model roles and prices as they are now: rows that administrators edit and the agents file sets."""

from typing import Any
from uuid import UUID

from django.conf import settings

from gateway.agents import MemorySettings, ModelRoles, Price
from gateway.models import Agent, Configuration

_checked: dict[UUID, tuple[int, MemorySettings]] = {}


def memory_settings() -> MemorySettings:
    """The settings of consolidation. One query."""
    return MemorySettings.model_validate(_section("memories"))


def memory_settings_of(agent: Agent) -> MemorySettings:
    """The same for a turn, kept by the agent's version, which grows when the memory settings change: no query when warm."""
    found = _checked.get(agent.pk)
    if found is None or found[0] != agent.version:
        found = _checked[agent.pk] = (agent.version, memory_settings())
    return found[1]


def role_model(role: str) -> str:
    """The model of a role, `default` or `smol`; smol falls back to default, and that to DAYBOOK_MODEL. One query."""
    roles = ModelRoles.model_validate(_section("model_roles"))
    chosen = roles.smol if role == "smol" else ""
    return chosen or roles.default or str(settings.DAYBOOK_MODEL)


def price_of(model: str) -> Price | None:
    """Money per million tokens of a model, or None where nobody said. One query."""
    found = _section("prices").get(model)
    return Price.model_validate(found) if found else None


def _section(name: str) -> dict[str, Any]:
    value = Configuration.objects.filter(section=name).values_list("value", flat=True).first()
    return dict(value) if value else {}
