"""Which model does background work: the roles of the agents file."""

from django.conf import settings

from gateway.agents import ModelRoles
from gateway.models import Configuration


def model_of_role(role: str) -> str:
    """The upstream model of `default` or `smol`; smol falls back to default, default to DAYBOOK_MODEL."""
    row = Configuration.objects.filter(section="model_roles").first()
    roles = ModelRoles.model_validate(row.value if row else {})
    own = roles.smol if role == "smol" else ""
    return own or roles.default or settings.DAYBOOK_MODEL
