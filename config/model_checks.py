"""The checks of `doctor` about models: which servers answer, what was learned about them, and which agents, books and
memories need one."""

import re
from collections.abc import Iterator

import openai
from django.conf import settings
from django.db.models import Count, Sum
from django.db.models.functions import Length

from config.findings import Finding, Level
from gateway.agents.configuration import prices
from gateway.agents.contradictions import missing_upstreams
from gateway.agents.model_choice import BackgroundModels, configured_upstreams
from gateway.agents.rows import agent_settings
from gateway.limits.money import cost_of, dollars
from gateway.models import Agent
from gateway.upstream import is_demo, missing_upstream
from gateway.upstream.cache import change_of, learned_now
from gateway.upstream.dialects import Dialect, dialect_of
from gateway.upstream.faults import certificate_fault, is_redirect, speaks_no_tls
from memories.recall.vectors import embeddable, missing_vectors
from memories.tokens import CHARS_PER_TOKEN

_SECONDS = 5.0


def upstreams() -> Iterator[Finding]:
    """Yield whether each upstream answers, and that the demo model does if there is none."""
    if is_demo():
        yield Finding("upstream", Level.OK, "none is configured: the built-in demo model answers")
    for name, upstream in sorted(settings.DAYBOOK_UPSTREAMS.items()):
        check = f"upstream {name}" if name != "default" else "upstream"
        yield upstream_finding(check, url=upstream["url"], key=upstream["key"], dialect=dialect_of(name))


def vectors() -> Iterator[Finding]:
    """Yield how many memories have a vector of the embedding model, if one is configured, and the estimated tokens and
    cost of the missing vectors."""
    if not settings.EMBEDDING_MODEL:
        return
    if settings.EMBEDDING_UPSTREAM and settings.EMBEDDING_UPSTREAM not in configured_upstreams():
        yield Finding("vectors", Level.FAILED, missing_upstream(settings.EMBEDDING_UPSTREAM))
        return
    total = embeddable().count()
    missing = missing_vectors().aggregate(rows=Count("pk"), characters=Sum(Length("content"), default=0))
    text = f"{total - missing['rows']} of {total} memories have one of {settings.EMBEDDING_MODEL}"
    if missing["rows"]:
        tokens = max(1, missing["characters"] // CHARS_PER_TOKEN)
        price = prices().get(settings.EMBEDDING_MODEL)
        cost = f", {dollars(cost_of(price, tokens, 0))}" if price else ""
        text += f"; left: {missing['rows']}, about {tokens:,} tokens{cost}"
    yield Finding("vectors", Level.OK, text)


def learned() -> Iterator[Finding]:
    """Yield the changes learned from refusals of upstreams, with dates and the server's message."""
    for change in learned_now():
        when = f"since {change.learned_at:%Y-%m-%d}, until {change.expires_at:%Y-%m-%d}"
        text = f"{change.upstream}, model {change.model}: {change_of(change)}, {when}: “{change.words}”"
        yield Finding("learned", Level.OK, text)


def default_model() -> Iterator[Finding]:
    """Yield the agents that name no model. Without an upstream the demo model answers, whatever they name."""
    if is_demo():
        return
    names = [agent.name for agent in Agent.objects.order_by("name") if not agent_settings(agent).model]
    if names:
        text = f"{', '.join(names)}: no model is named, so DAYBOOK_MODEL ({settings.DAYBOOK_MODEL}) answers"
        yield Finding("agents", Level.OK, text)


def without_upstream() -> Iterator[Finding]:
    """Yield agents on an upstream that is not configured, and shared books that no upstream may read."""
    for agent in Agent.objects.order_by("name"):
        for sentence in missing_upstreams(agent_settings(agent)):
            yield Finding(f"agent {agent.name}", Level.FAILED, sentence)
    for book, reason in BackgroundModels.now().obstacles().items():
        yield Finding(f"book {book}", Level.WARNING, reason)


def upstream_finding(check: str, *, url: str, key: str, dialect: Dialect) -> Finding:
    """Ask an upstream for its models, once and for at most five seconds."""
    client = openai.OpenAI(
        base_url=url,
        api_key=key or "none",
        default_headers=dialect.headers_with(key),
        default_query=dict(dialect.query),
        timeout=_SECONDS,
        max_retries=0,
        http_client=openai.DefaultHttpxClient(follow_redirects=False, timeout=_SECONDS),
    )
    shown = re.sub("(?<=//)[^/]*@", "", url)  # without a name and a password in it
    try:
        with client:
            client.models.list()
    except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
        return Finding(check, Level.FAILED, f"{shown} refuses the key ({error.status_code})")
    except openai.APIStatusError as error:
        if is_redirect(error.status_code):
            return Finding(check, Level.FAILED, f"{shown} redirects ({error.status_code}): change the address")
        return Finding(check, Level.WARNING, f"{shown} answers {error.status_code} to a request for its models")
    except openai.APIConnectionError as error:
        if fault := certificate_fault(error):
            return Finding(check, Level.FAILED, f"{shown}: its certificate {fault}")
        if speaks_no_tls(error):
            return Finding(check, Level.FAILED, f"{shown} does not speak TLS: write http:// instead of https://")
        return Finding(check, Level.FAILED, f"{shown} does not answer")
    except openai.OpenAIError as error:
        return Finding(check, Level.WARNING, f"{shown} does not list its models ({type(error).__name__})")
    return Finding(check, Level.OK, f"{shown} answers; dialect {dialect.name}")
