"""The checks of `doctor`, in the order in which an operator would look. Those about models are in
config.model_checks."""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from urllib.parse import urlsplit

import redis
from django.conf import settings
from django.core import checks
from django.db import DatabaseError, connection
from django.utils import timezone
from django_q.brokers import get_broker

from config import model_checks
from config.backups import postgres_tools
from config.checks import FALLBACK_HINT
from config.databases import connection_refusal, encoding_problem, error_line
from config.findings import Finding, Level
from config.health import newer_version, pending_migrations
from config.secret_key import guessable_key
from gateway import heartbeat
from gateway.agents.configuration import consolidation_settings
from gateway.agents.contradictions import agent_contradictions
from gateway.agents.rows import agent_settings
from gateway.agents.settings import ConsolidationSettings
from gateway.attachments.files import is_local, storage_try
from gateway.models import Agent, Run
from gateway.upstream.cache import upstream_cache
from gateway.webhooks.addresses import literal_refused
from gateway.webhooks.services import webhooks_of_older_keys
from memories.number_words import counted
from prompts.consolidation import extraction_messages
from prompts.files import prompt_problems
from reviews.consolidation.model_call import estimated_tokens
from reviews.models import ReviewRun

_MIN_FREE_BYTES = 500_000_000


def findings() -> Iterator[Finding]:
    """Yield the findings of all checks. Those that need the database are skipped if it does not answer."""
    yield _configuration()
    yield _prompts()
    yield _disk()
    yield _attachments()
    database = _database()
    yield database
    answers = database.level is not Level.FAILED
    if answers:
        for name, check in _STATE_CHECKS.items():
            yield from _guarded(name, check)
        upstream_cache.sync()
    yield _queue()
    yield from model_checks.upstreams()
    yield from _alerts()
    if answers:
        for name, check in _DETAIL_CHECKS.items():
            yield from _guarded(name, check)


def _configuration() -> Finding:
    # The settings refuse invalid variables before this.
    serious = [message for message in checks.run_checks() if message.level >= checks.ERROR]
    if serious:
        return Finding("configuration", Level.FAILED, "; ".join(f"{message.id}: {message.msg}" for message in serious))
    warnings = []
    if warning := guessable_key([settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]):
        warnings.append(warning)
    if settings.UNKNOWN_VARIABLES:
        names = ", ".join(settings.UNKNOWN_VARIABLES)
        warnings.append(f"{names}: no such variable exists, so it is ignored")
    warnings += settings.IGNORED_VARIABLES
    if warnings:
        return Finding("configuration", Level.WARNING, "; ".join(warnings))
    kind = "PostgreSQL" if connection.vendor == "postgresql" else "SQLite"
    queue = "Redis" if settings.REDIS_URL else "the database"
    return Finding("configuration", Level.OK, f"{settings.DAYBOOK_SERVER}, {kind}, queue on {queue}")


def _prompts() -> Finding:
    problems = prompt_problems()
    if problems:
        return Finding("prompts", Level.WARNING, f"{' '.join(problems)} {FALLBACK_HINT}")
    return Finding("prompts", Level.OK, f"can be used; your own would be in {settings.DAYBOOK_PROMPTS}")


def _disk() -> Finding:
    home = settings.DAYBOOK_HOME
    try:
        with tempfile.TemporaryFile(dir=home) as file:
            file.write(b"daybook")
            file.flush()
        free = shutil.disk_usage(home).free
    except OSError as error:
        return Finding("disk", Level.FAILED, f"{home} can't be written: {error.strerror}")
    level = Level.WARNING if free < _MIN_FREE_BYTES else Level.OK
    return Finding("disk", level, f"{home} can be written, {free // 1_000_000} MB are free")


def _attachments() -> Finding:
    where = "in a folder of the home" if is_local() else settings.STORAGES["attachments"]["BACKEND"]
    if trouble := storage_try():
        return Finding("attachments", Level.FAILED, f"cannot be stored ({where}): {trouble}")
    if is_local() and connection.vendor == "postgresql":
        text = "are in a folder of this machine: several machines need a shared storage (DAYBOOK_ATTACHMENTS)"
        return Finding("attachments", Level.WARNING, text)
    return Finding("attachments", Level.OK, f"can be stored ({where})")


def _database() -> Finding:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        if problem := encoding_problem():
            return Finding("database", Level.WARNING, problem)
        if not connection.introspection.table_names():
            where = f"DAYBOOK_HOME ({settings.DAYBOOK_HOME}) or DATABASE_URL is not that of your installation"
            return Finding("database", Level.FAILED, f"is empty: `up` or `prepare` fills it, unless {where}")
    except DatabaseError as error:
        return Finding("database", Level.FAILED, f"does not answer: {connection_refusal() or error_line(error)}")
    return Finding("database", Level.OK, "answers")


def _guarded(name: str, check: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield the findings of a check that uses the database, or a failure if the database does not answer."""
    try:
        yield from list(check())
    except DatabaseError as error:
        yield Finding(name, Level.FAILED, f"unknown: {error_line(error)}")


def _migrations() -> Iterator[Finding]:
    if newer := newer_version():
        yield Finding("migrations", Level.FAILED, newer)
    elif pending := pending_migrations():
        text = f"{len(pending)} pending, first {pending[0]}: `up` or `migrate` applies them"
        yield Finding("migrations", Level.FAILED, text)
    else:
        yield Finding("migrations", Level.OK, "none pending")


def _worker() -> Iterator[Finding]:
    if heartbeat.alive():
        yield Finding("worker", Level.OK, "has a recent heartbeat")
    else:
        silence = heartbeat.stale_after().total_seconds()
        yield Finding("worker", Level.FAILED, f"no heartbeat for {silence:.0f} s; `up` or `worker` starts one")


def _stuck(check: str, model: type[Run | ReviewRun]) -> Iterator[Finding]:
    # The sweeps end expired rows, so a row that remains this long is stuck.
    before = timezone.now() - heartbeat.stale_after()
    if stuck := model.objects.filter(state=model.State.RUNNING, lease_expires_at__lt=before).count():
        text = f"{stuck} with an expired lease that no sweep has ended; is a worker running?"
        yield Finding(check, Level.FAILED, text)
    else:
        yield Finding(check, Level.OK, "none")


def _queue() -> Finding:
    try:
        get_broker().ping()
    except redis.RedisError as error:
        return Finding("queue", Level.FAILED, f"Redis does not answer: {type(error).__name__}")
    except DatabaseError:
        return Finding("queue", Level.FAILED, "the database does not answer")
    return Finding("queue", Level.OK, "answers")


def _alerts() -> Iterator[Finding]:
    """Yield whether alerts are posted and signed, if an address is set."""
    if literal_refused(urlsplit(settings.ALERTS_URL).hostname or ""):
        text = "DAYBOOK_ALERTS_URL is a private address, so nothing is posted: set DAYBOOK_WEBHOOKS_PRIVATE=true"
        yield Finding("alerts", Level.FAILED, text)
    elif settings.ALERTS_URL:
        signed = "posted and signed" if settings.ALERTS_SECRET else "posted unsigned: DAYBOOK_ALERTS_SECRET is not set"
        yield Finding("alerts", Level.OK, signed)


def _webhooks() -> Iterator[Finding]:
    """Yield the number of webhooks that depend on an older signing key."""
    if older := webhooks_of_older_keys():
        text = (
            f"{counted(older, 'webhook was', 'webhooks were')} created with an older signing key: without it in "
            "DAYBOOK_SECRET_KEY_FALLBACKS they are disabled"
        )
        yield Finding("webhooks", Level.WARNING, text)


def _restores() -> Iterator[Finding]:
    """Yield the schema that a killed restore left in PostgreSQL. It still contains data that was forgotten since."""
    if connection.vendor == "postgresql" and (aside := postgres_tools.set_aside()):
        text = f'schema {aside} has the data from before a restore that was killed: DROP SCHEMA "{aside}" CASCADE'
        yield Finding("restores", Level.WARNING, text)


def _contradictions() -> Iterator[Finding]:
    """Yield settings that contradict each other, so that something they configure can never work. Settings that may
    work are not reported."""
    for agent in Agent.objects.order_by("name"):
        for sentence in agent_contradictions(agent_settings(agent)):
            yield Finding(f"agent {agent.name}", Level.WARNING, sentence)
    for sentence in consolidation_contradictions(consolidation_settings()):
        yield Finding("consolidation", Level.WARNING, sentence)


def consolidation_contradictions(limits: ConsolidationSettings) -> Iterator[str]:
    """Yield a sentence for each contradiction in the settings of consolidation; none if it is off."""
    if not limits.enabled:
        return
    if limits.min_rollout_idle_hours >= limits.max_rollout_age_days * 24:
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


_STATE_CHECKS: dict[str, Callable[[], Iterable[Finding]]] = {
    "migrations": _migrations,
    "worker": _worker,
    "stuck runs": partial(_stuck, "stuck runs", Run),
    "stuck reviews": partial(_stuck, "stuck reviews", ReviewRun),
}
_DETAIL_CHECKS = {
    "learned": model_checks.learned,
    "agents": model_checks.without_upstream,
    "default model": model_checks.default_model,
    "settings": _contradictions,
    "webhooks": _webhooks,
    "restores": _restores,
    "vectors": model_checks.vectors,
}
