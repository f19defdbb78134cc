"""Writes agents, configuration and sessions. gateway.runs writes runs and messages, gateway.keys writes keys."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any
from uuid import UUID

from django.conf import settings as configured
from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gateway.agents.settings import FORMS, AgentSettings, AgentsFile
from gateway.errors import SessionEnded
from gateway.hooks import sessions_forgotten
from gateway.models import Agent, Configuration, LearnedChange, Session
from gateway.upstream import missing_upstream
from gateway.upstream.cache import SECTION as UPSTREAMS
from gateway.upstream.cache import upstream_cache
from memories.audit.log import SYSTEM, Action, audit_record
from memories.caller import UNLIMITED, KeyLimits
from memories.errors import Conflict, InvalidRequest, NotFound
from memories.messaging import invalidation
from memories.models import Owner, ThreadRecord
from memories.services import book_limits_set, session_unlink
from memories.storable import storable
from scanning import is_blank

MAX_TITLE = 200
# pydantic's messages of these types name our classes, or speak of Python.
_PLAIN_WORDS = {
    "dict_type": "Input should be a mapping",
    "model_type": "Input should be a mapping",
    "too_short": "The list is empty; leave the setting out",
    "tuple_type": "Input should be a list",
    "extra_forbidden": "There is no such setting",
    # The settings have no other pattern than that for names.
    "string_pattern_mismatch": (
        "A name has at most 64 letters, digits, dots, hyphens and underscores, and starts with a letter or digit"
    ),
}
_LOCK_NUMBER = 0x7365_7474_696E_6773  # "settings", since PostgreSQL's advisory locks are numbers


def settings_check(values: dict[str, Any]) -> AgentsFile:
    """Return the validated settings of an agents file. Raises InvalidRequest, which names the key's path."""
    try:
        return AgentsFile.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(
            " ".join(str(part).split())
            for before, part in pairwise(("", *first["loc"]))
            if part != "[key]" and not (part in FORMS and before in ("model", "upstream"))
        )
        raise InvalidRequest(f"{path}: {setting_error(first)}. Nothing was applied.", param=path) from None


def setting_error(error: ErrorDetails) -> str:
    """Return pydantic's message about an invalid setting, in plain English and without a full stop."""
    message = error["msg"].removeprefix("Value error, ").replace("Tuple", "List").replace(" after validation", "")
    is_missing = error["type"] in ("dict_type", "model_type") and error["input"] is None
    return _PLAIN_WORDS.get(error["type"], message) + is_missing * "; `{}` is one without settings"


def settings_lock() -> None:
    """Let other transactions that change agents or configuration wait for the end of this one. At the first start there
    are no rows to lock, hence an advisory lock. On SQLite a transaction is the only writer anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK_NUMBER])


@transaction.atomic
def agent_save(name: str, settings: dict[str, Any]) -> Agent:
    """Create or change an agent. Its version is incremented if something changed. Raises InvalidRequest."""
    checked = settings_check({"agents": {name: storable(settings)}}).agents[name]
    stored = checked.model_dump(mode="json", exclude_defaults=True)
    settings_lock()  # the limits of a book are computed from all agents that use it
    agent, made = Agent.objects.get_or_create(name=name, defaults={"settings": stored, "book": checked.book})
    if not made and agent.settings != stored:
        agent.settings, agent.book = stored, checked.book
        agent.version += 1
        agent.updated_at = timezone.now()
        agent.save()
    _book_limits_renew()
    return agent


@transaction.atomic
def agent_delete(name: str) -> None:
    """Delete an agent. Raises NotFound, and Conflict if it has sessions, whose transcripts refer to it."""
    settings_lock()
    agent = Agent.objects.select_for_update().filter(name=name).first()  # no session of it is committed meanwhile
    if agent is None:
        raise NotFound(f"There is no agent {name}.")
    if Session.with_deleted.filter(agent=agent).exists():
        raise Conflict(f"{name} has sessions, which refer to it; deleted ones that can be restored count too.")
    audit_record(Action.DELETE, actor=SYSTEM, kind="agent", object_id=agent.pk)
    agent.delete()
    _book_limits_renew()


@transaction.atomic
def agents_apply(file: AgentsFile) -> list[str]:
    """Create or update everything in a validated agents file. Agents, memory settings and model roles that it does not
    mention stay. Return the names of its agents."""
    settings_lock()
    for name, settings in file.agents.items():
        agent_save(name, settings.model_dump(mode="json", exclude_defaults=True))
    for section in ("memories", "model_roles"):
        part = getattr(file, section)
        if part is not None:
            row = Configuration.objects.filter(section=section).first()
            before = type(part).model_validate(row.value if row else {})
            named = {name: getattr(part, name) for name in part.model_fields_set}
            configuration_save(section, before.model_copy(update=named).model_dump(mode="json", exclude_defaults=True))
    if file.prices is not None:
        configuration_save("prices", {name: price.model_dump(mode="json") for name, price in file.prices.items()})
    if file.upstreams is not None:
        configuration_save(UPSTREAMS, upstream_values(file))
    audit_record(Action.SETTINGS_CHANGE, actor=SYSTEM, kind="agent", count=len(file.agents), note="By an agents file.")
    return list(file.agents)


def upstream_values(file: AgentsFile) -> dict[str, Any]:
    """Return a file's upstreams in stored form. Options that it omits are not stored: they are the dialect's."""
    return {name: part.model_dump(mode="json", exclude_unset=True) for name, part in (file.upstreams or {}).items()}


@transaction.atomic
def configuration_save(section: str, value: dict[str, Any]) -> Configuration:
    """Store a section of the file other than the agents. Raises InvalidRequest."""
    settings_lock()
    settings_check({section: storable(value)})
    if section == UPSTREAMS:
        _require_upstreams(value)
    row = Configuration.objects.filter(section=section).first()
    if row is not None and row.value == value:
        return row
    row, _ = Configuration.objects.update_or_create(
        section=section, defaults={"value": value, "updated_at": timezone.now()}
    )
    if section in {"memories", "prices"}:
        # Every turn compares its agent's version, so every process notices the new settings without another query.
        Agent.objects.update(version=F("version") + 1)
    if section == UPSTREAMS:
        transaction.on_commit(upstream_cache.sync, robust=True)
    return row


def _require_upstreams(names: Iterable[str]) -> None:
    """Raise InvalidRequest for an upstream that is not configured. `default` is the demo model if there is none."""
    for name in names:
        if name not in (configured.DAYBOOK_UPSTREAMS or {"default"}):
            path = f"upstreams.{name}"
            raise InvalidRequest(f"{path}: {missing_upstream(name)} Nothing was applied.", param=path)


@transaction.atomic
def learned_changes_forget(rows: "QuerySet[LearnedChange]") -> None:
    """Delete changes learned from refusals of model servers; the next refusal teaches them again. Other processes
    notice within a minute."""
    rows.delete()
    transaction.on_commit(upstream_cache.sync, robust=True)


def _book_limits_renew() -> None:
    """Set each book's budget to the largest limit among its agents; a limit of 0 means no budget."""
    limits: dict[str, tuple[int, int]] = {}
    for agent in Agent.objects.all():
        checked = AgentSettings.model_validate(agent.settings)
        user, memory = limits.get(agent.book, (1, 1))
        limits[agent.book] = (_larger(user, checked.user_char_limit), _larger(memory, checked.memory_char_limit))
    book_limits_set(limits)


def _larger(one: int, other: int) -> int:
    return 0 if 0 in (one, other) else max(one, other)


def session_create(owner: Owner, agent: Agent, *, title: str = "", temporary: bool = False) -> Session:
    """Return a new session of this owner. Raises InvalidRequest for a title that is too long."""
    return Session.objects.create(owner=owner, agent=agent, title=clean_title(title), temporary=temporary)


@transaction.atomic
def session_end(session: Session) -> Session:
    """End a session. It keeps its transcript and accepts no more turns."""
    Session.objects.filter(pk=session.pk).update(state=Session.State.ENDED)
    session.state = Session.State.ENDED
    invalidation.publish(invalidation.Kind.SESSION_ENDED, owner_id=session.owner_id, session_id=session.pk)
    return session


@transaction.atomic
def sessions_delete(owner_id: UUID, keys: Sequence[UUID]) -> int:
    """Delete the sessions with these keys and their transcripts in one transaction. Memories from them stay, without
    their link to them. Return how many still existed."""
    rows = Session.with_deleted.filter(owner_id=owner_id, pk__in=keys)
    found = list(rows.select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True))
    if found:
        _sessions_forget(owner_id, found)
        for key in found:
            session_unlink(owner_id, key)
        rows.delete()
        _sessions_forgotten_publish(owner_id, found)
    return len(found)


@transaction.atomic
def session_forget(session: Session) -> None:
    """Delete the results of background work on a session: its thread records, and the records of the apps above. The
    transcript and the memories stay."""
    _sessions_forget(session.owner_id, [session.pk])
    _sessions_forgotten_publish(session.owner_id, [session.pk])


def _sessions_forget(owner_id: UUID, keys: Sequence[UUID]) -> None:
    sessions_forgotten()(owner_id, keys)
    ThreadRecord.objects.filter(owner_id=owner_id, session_id__in=keys).delete()


def _sessions_forgotten_publish(owner_id: UUID, keys: Sequence[UUID]) -> None:
    for key in keys:
        invalidation.publish(invalidation.Kind.SESSION, owner_id=owner_id, session_id=key)


def session_get(owner_id: UUID, session_id: UUID | None, *, limits: KeyLimits = UNLIMITED) -> Session:
    """Return the owner's session with its agent. Raises NotFound, also for another owner's session."""
    rows = limits.filter(Session.objects.select_related("agent").filter(owner_id=owner_id), agent="agent__name")
    session = rows.filter(pk=session_id).first() if session_id else None
    if session is None:
        raise NotFound("There is no such session. It may have been deleted.")
    return session


def require_active(session: Session) -> None:
    """Raise SessionEnded if the session has ended."""
    if session.state != Session.State.ACTIVE:
        raise SessionEnded("This session was ended. Start a new one.", session_id=str(session.pk))


def clean_title(title: str) -> str:
    """Return a title in stored form, on one line. It is empty if nothing of it can be seen. Raises InvalidRequest if it
    is too long."""
    title = "" if is_blank(title) else " ".join(title.split())
    if len(title) > MAX_TITLE:
        raise InvalidRequest(f"A title has at most {MAX_TITLE} characters.", param="title")
    return title
