"""Finds agents by name, and checks the caller's key, in the opening transaction of every turn. It is a single statement
that the ORM compiles once."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from uuid import UUID

from django.db.models import Exists
from django.utils import timezone

from gateway.agents.settings import AgentSettings
from gateway.keys import keys_of, sent_key
from gateway.models import Agent
from memories.caller import Caller
from memories.database.statements import Select, given
from memories.errors import ModelNotFound, Unauthorized

KEY_REVOKED = "This API key was revoked, or it has expired."
# The agents last read, by name. A row is read again when its id or version has changed.
_agents: dict[str, Agent] = {}
T = TypeVar("T")


def agent_and_key(name: str, caller: Caller) -> tuple[Agent | None, bool]:
    """Return the agent of that name, and whether the caller's API key is valid. The agent is shared between requests
    and must not be changed."""
    row = _AGENT_AND_KEY.row(name=name, key=caller.key_id, sha256=caller.key_sha256, now=timezone.now())
    if row is None:
        return None, False
    agent_id, version, key_valid = row
    agent = _agents.get(name)
    if agent is None or (agent.pk, agent.version) != (agent_id, version):
        agent = _agents[name] = Agent.objects.get(pk=agent_id)
    return agent, key_valid


_AGENT_AND_KEY = Select(
    lambda: Agent.objects.filter(**given(Agent, "name")).values_list("id", "version", Exists(sent_key()))
)


def require_agent(caller: Caller, name: str, *, param: str = "model") -> None:
    """Raise ModelNotFound for an agent that the key may not use, as if it did not exist."""
    if caller.limits and name not in caller.agents:
        raise ModelNotFound(f"There is no agent called {name}.", param=param)


def agent_find(caller: Caller, name: str, *, param: str = "model") -> Agent:
    """Return the agent that a client names in `param`, and check the key again in the same query.

    Raises ModelNotFound, Unauthorized."""
    require_agent(caller, name, param=param)
    agent, key_valid = agent_and_key(name, caller)
    if agent is None:
        require_key(caller)
        raise ModelNotFound(f"There is no agent called {name}.", param=param)
    if caller.key_id and not key_valid:
        raise Unauthorized(KEY_REVOKED)
    return agent


def require_key(caller: Caller) -> None:
    """Check the key again, since caches may have missed its revocation. Raises Unauthorized."""
    if caller.key_id and not keys_of(caller).exists():
        raise Unauthorized(KEY_REVOKED)


def cached_by_version(read: Callable[[Agent], T]) -> Callable[[Agent], T]:
    """Decorate a function of an agent so that it is called again only when the agent's version has changed."""
    values: dict[UUID, tuple[int, T]] = {}

    @wraps(read)
    def cached(agent: Agent) -> T:
        found = values.get(agent.pk)
        if found is None or found[0] != agent.version:
            found = values[agent.pk] = (agent.version, read(agent))
        return found[1]

    return cached


@cached_by_version
def agent_settings(agent: Agent) -> AgentSettings:
    """Return the validated settings of an agent, cached by its version."""
    return AgentSettings.model_validate(agent.settings)
