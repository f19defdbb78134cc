"""Chooses the upstream and the model: for turns, reviews and all background jobs.

A conversation goes to its agent's upstream. `model_roles` name the models of background work: a plain model name is a
model of the home upstream and is ignored for other upstreams; `upstream/model` names both. Background work of an agent
on another upstream is done there, by its own model unless a role names that upstream. Background work for a book that
agents of different upstreams share goes to the upstream in `memories.upstream`, and is not done if that is empty
(docs/decisions/0015-which-upstream-answers.md). If an agent names several models, the first one answers and the others
are its fall-backs, for all of this work."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

from django.conf import settings
from django.db.models import Model, QuerySet

from gateway.agents.configuration import consolidation_settings, model_roles
from gateway.agents.rows import agent_settings
from gateway.agents.settings import AgentSettings, ModelRoles, as_list
from gateway.models import Agent
from gateway.upstream import ModelTarget, missing_upstream
from gateway.upstream.in_process import IN_PROCESS
from memories.errors import Conflict

DEFAULT = "default"
Row = TypeVar("Row", bound=Model)


class UpstreamUndecided(Conflict):
    """No administrator has decided which upstream may read a book. The message gives the reason and the setting."""


def configured_upstreams() -> set[str]:
    """Return the names of the configured upstreams; without any, the demo model is the default one."""
    return set(settings.DAYBOOK_UPSTREAMS) or {DEFAULT}


def home_upstream() -> str:
    """Return the upstream of plain model names: the only configured one, or `default`."""
    configured = settings.DAYBOOK_UPSTREAMS
    return next(iter(configured)) if len(configured) == 1 else DEFAULT


def named_target(name: str, upstream: str) -> ModelTarget:
    """Return the model of that name on `upstream`, unless the name is `upstream/model` with a configured upstream.
    Model names may contain slashes."""
    found = _qualified(name)
    return found or ModelTarget(upstream, name)


def agent_target(agent: AgentSettings) -> ModelTarget:
    """Return the model of an agent's turns, compactions and keywords, with its fall-backs."""
    upstreams, models = as_list(agent.upstream), as_list(agent.model)
    count = max(len(upstreams), len(models))
    pairs = zip(upstreams * (count // len(upstreams)), models * (count // len(models)), strict=True)
    # A single model is always on the agent's upstream. Its name may contain a slash, as on OpenRouter.
    read = not isinstance(agent.model, str)
    first, *rest = (
        (_qualified(model) if read else None) or ModelTarget(upstream, model or settings.DAYBOOK_MODEL)
        for upstream, model in pairs
    )
    return ModelTarget(first.upstream, first.model, tuple(rest))


def agent_upstreams(agent: AgentSettings) -> frozenset[str]:
    """Return the upstreams that may read an agent's conversations: those of its models."""
    return frozenset(target.upstream for target in agent_target(agent).all)


def review_target(stored: Mapping[str, Any]) -> ModelTarget:
    """Return the model of a review from the settings `stored` when it was scheduled: `memory_review_model`, or else the
    agent's model. The agent's fall-backs apply to both."""
    named = {name: stored[name] for name in ("upstream", "model") if stored.get(name)}
    agent = agent_target(AgentSettings(**named))
    name = stored.get("memory_review_model")
    return _with_fallbacks(named_target(str(name), agent.upstream), agent) if name else agent


def embedding_upstream() -> str:
    return IN_PROCESS if settings.EMBEDDING_PATH else str(settings.EMBEDDING_UPSTREAM or home_upstream())


def may_embed(upstreams: Collection[str]) -> bool:
    """Return True if texts of an agent on these upstreams may be sent to the embedding model: always if it runs in this
    process or an administrator named its upstream, otherwise only if the agent uses the same upstream."""
    return _embeds_all() or home_upstream() in upstreams


def _embeds_all() -> bool:
    return bool(settings.EMBEDDING_PATH or settings.EMBEDDING_UPSTREAM)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundModels:
    """Chooses models for background jobs from agents, by book, and settings that were read once."""

    roles: ModelRoles
    shared_upstream: str
    agents: Mapping[str, tuple[AgentSettings, ...]] = field(default_factory=dict)

    @classmethod
    def now(cls, book: str | None = None) -> "BackgroundModels":
        """Read the settings and the agents of one book or of all. Three queries."""
        rows = Agent.objects.order_by("name")
        agents: dict[str, tuple[AgentSettings, ...]] = {}
        for row in rows.filter(book=book) if book is not None else rows:
            agents[row.book] = (*agents.get(row.book, ()), agent_settings(row))
        return cls(roles=model_roles(), shared_upstream=consolidation_settings().upstream, agents=agents)

    def of_agent(self, agent: AgentSettings, role: str) -> ModelTarget:
        """Return the model of a role for an agent's conversations."""
        named, own, upstreams = self._role(role), agent_target(agent), agent_upstreams(agent)
        if upstreams == {DEFAULT} == {home_upstream()}:
            return _with_fallbacks(named or ModelTarget(DEFAULT, settings.DAYBOOK_MODEL), own)
        return _with_fallbacks(named, own) if named and named.upstream in upstreams else own

    def of_session(self, book: str, agent: AgentSettings, role: str) -> ModelTarget:
        """Return the model of a role for reading a session of this agent for a book. Raises UpstreamUndecided."""
        upstreams = self._upstreams(book) | {agent_upstreams(agent)}
        return self.of_agent(agent, role) if len(upstreams) == 1 else self._of_shared(book, upstreams, role)

    def of_book(self, book: str, role: str) -> ModelTarget:
        """Return the model of a role for a whole book: that of its first agent by name. Raises UpstreamUndecided."""
        upstreams = self._upstreams(book)
        if len(upstreams) == 1:
            return self.of_agent(self.agents[book][0], role)
        if not upstreams and len(settings.DAYBOOK_UPSTREAMS) <= 1:
            return self.of_agent(AgentSettings(upstream=home_upstream()), role)  # there is no other upstream
        return self._of_shared(book, upstreams, role)

    def obstacle(self, book: str) -> str:
        """Return a sentence explaining why no upstream may read a book; "" if one may."""
        try:
            self.of_book(book, DEFAULT)
        except UpstreamUndecided as undecided:
            return str(undecided)
        return ""

    def obstacles(self) -> dict[str, str]:
        """Return the books of agents that no upstream may read, with the reasons."""
        return {book: reason for book in sorted(self.agents) if (reason := self.obstacle(book))}

    def readable(self, rows: "QuerySet[Row]", field: str) -> "QuerySet[Row]":
        """Return the rows whose book an upstream may read; `field` is the look-up of the book's name."""
        if self.obstacle(""):  # the result for every book without an agent
            rows = rows.filter(**{f"{field}__in": list(self.agents)})
        refused = list(self.obstacles())
        return rows.exclude(**{f"{field}__in": refused}) if refused else rows

    def embeddable(self, rows: "QuerySet[Row]", field: str) -> "QuerySet[Row]":
        """Return the rows whose book may be sent to the embedding model; `field` is the look-up of the book's name."""
        if _embeds_all():
            return rows
        if len(settings.DAYBOOK_UPSTREAMS) > 1:
            rows = rows.filter(**{f"{field}__in": list(self.agents)})
        refused = [book for book in self.agents if not all(map(may_embed, self._upstreams(book)))]
        return rows.exclude(**{f"{field}__in": refused}) if refused else rows

    def _of_shared(self, book: str, upstreams: Collection[frozenset[str]], role: str) -> ModelTarget:
        """Return a model on the upstream for shared books. Raises UpstreamUndecided if none is named."""
        upstream, named = self._shared_upstream(_why(book, upstreams)), self._role(role)
        if named and named.upstream == upstream:
            return named
        own = [target for agent in self.agents.get(book, ()) for target in agent_target(agent).all]
        own = [target for target in own if target.upstream == upstream]
        return own[0] if own and upstream != DEFAULT else ModelTarget(upstream, settings.DAYBOOK_MODEL)

    def _shared_upstream(self, why: str) -> str:
        upstream = self.shared_upstream
        if not upstream:
            raise UpstreamUndecided(f"{why} It is skipped until memories.upstream names the upstream that may read it.")
        if upstream not in configured_upstreams():
            raise UpstreamUndecided(f"{why} memories.upstream is {upstream}. {missing_upstream(upstream)}")
        return upstream

    def _upstreams(self, book: str) -> set[frozenset[str]]:
        """Return the sets of upstreams of a book's agents; there is only one if all agents use the same."""
        return {agent_upstreams(agent) for agent in self.agents.get(book, ())}

    def _role(self, role: str) -> ModelTarget | None:
        """Return the model of a role, with `default` for an empty `smol`; None if neither is set."""
        name = (self.roles.smol if role == "smol" else "") or self.roles.default
        return named_target(name, home_upstream()) if name else None


def _with_fallbacks(first: ModelTarget, own: ModelTarget) -> ModelTarget:
    """Return a target with the agent's own models as fall-backs, if the agent has fall-backs."""
    return own.preferring(first) if own.fallbacks else first


def _qualified(name: str) -> ModelTarget | None:
    upstream, slash, model = name.partition("/")
    known = upstream == DEFAULT or upstream in settings.DAYBOOK_UPSTREAMS
    return ModelTarget(upstream, model) if slash and model and known else None


def _why(book: str, upstreams: Collection[frozenset[str]]) -> str:
    if not upstreams:
        return f"No agent uses the book {book}, so it is not known which upstream may read it."
    return f"The book {book} is shared by agents of different upstreams ({', '.join(sorted({*chain(*upstreams)}))})."
