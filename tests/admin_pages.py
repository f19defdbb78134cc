"""A row of every model in the admin, and the URLs of its admin pages, for tests that visit every page.

A registered model without a row here fails those tests by name."""

import re
from datetime import timedelta
from typing import Any

from django.contrib.admin import site
from django.contrib.auth.models import Group
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from gateway.accounts.invitations import invitation_create
from gateway.keys import api_key_create
from gateway.models import LearnedChange, Session, UsageDay, Webhook, Worker
from gateway.services import agent_save, configuration_save
from memories.artifacts.store import artifact_put
from memories.audit.auditors import auditors_make
from memories.ids import uuid7
from memories.models import Book, Lease, WriteOrigin
from memories.services import Source
from reviews.models import ConsolidationRun, Extraction, ReviewRun
from tests.admin_rows import book_make, memory_make, owner_make, session_make, user_make
from tests.factories import app_make, review_make

Rows = dict[str, Model]


def pages() -> dict[str, Any]:
    """Return every registered ModelAdmin by `app.model`."""
    return {model._meta.label_lower: page for model, page in site._registry.items()}


def rows_make() -> Rows:
    """Create one row of Alice's for every registered page; return the rows by `app.model`."""
    set_make("alice")
    auditors_make()
    configuration_save("memories", {"enabled": True})
    rows = {name: page.model._default_manager.order_by("pk").first() for name, page in pages().items()}
    missing = sorted(name for name, row in rows.items() if row is None)
    assert not missing, f"tests.admin_pages.rows_make creates no row of: {', '.join(missing)}"
    return {name: row for name, row in rows.items() if row is not None}


def set_make(name: str) -> None:
    """Create the rows of one person, plus one row of each kind without an owner, all named after that person."""
    owner, agent = owner_make(name), agent_save(f"agent-of-{name}", {"book": f"book-of-{name}"})
    session, book = session_make(owner, turns=2), book_make(owner)
    Session.objects.filter(pk=session.pk).update(agent=agent)
    memory_make("Likes tea.", book=book, keywords=["sencha"])
    artifact_put(book, "MEMORY.md", "# Tea\n\nLikes tea.", Source(actor="user:1", origin=WriteOrigin.USER))
    api_key_create(owner=owner, name="laptop")
    app_make(owner)
    Group.objects.create(name=f"friends of {name}")
    Worker.objects.create(host=name, pid=1)
    inviting = user_make(f"root-of-{name}", is_staff=True, is_superuser=True)
    invitation_create(email=f"{name}@friends.example", role="user", days=7, by=inviting, origin="http://testserver")
    Webhook.objects.create(owner=owner, url="https://example.org/hook?token=hidden", kinds=["memory.changed"])
    LearnedChange.objects.create(
        upstream=name,
        model="m",
        kind="drop",
        parameter="seed",
        words="Unknown parameter.",
        expires_at=timezone.now() + timedelta(days=30),
    )
    UsageDay.objects.create(owner=owner, day=timezone.now().date(), agent=agent.name, model="m", requests=1)
    Lease.objects.create(name=f"of {name}", token=uuid7(), expires_at=timezone.now() + timedelta(minutes=1))
    saved_review_make(session, book)
    consolidation_make(session, book)


def saved_review_make(session: Session, book: Book) -> ReviewRun:
    """Create a review that saved a memory."""
    return review_make(book, session=session, writes=[{"action": "add", "after": "Prefers tea."}])


def consolidation_make(session: Session, book: Book) -> ConsolidationRun:
    """Create a consolidation that read one session."""
    run = ConsolidationRun.objects.create(
        owner=session.owner,
        book=book,
        state="completed",
        phase="done",
        trigger="request",
        book_epoch=1,
        sessions_total=1,
        sessions_done=1,
    )
    Extraction.objects.create(
        owner=session.owner, book=book, session=session, run=run, state="extracted", raw_memory="Likes tea."
    )
    return run


def list_of(name: str) -> str:
    """Return the URL of the changelist of `app.model`."""
    return reverse(f"admin:{name.replace('.', '_')}_changelist")


def page_of(name: str, row: Model) -> str:
    """Return the URL of a row's change page. The settings are one form over several rows."""
    key = "memories" if name == "gateway.configuration" else row.pk
    return reverse(f"admin:{name.replace('.', '_')}_change", args=[key])


def add_of(name: str) -> str:
    """Return the URL of the form that adds a row."""
    return reverse(f"admin:{name.replace('.', '_')}_add")


def delete_of(name: str, row: Model) -> str:
    """Return the URL of the page that confirms a deletion."""
    return reverse(f"admin:{name.replace('.', '_')}_delete", args=[row.pk])


_BOUNDED_COUNT = re.compile(r"COUNT\(\*\) FROM \(SELECT [^()]*(?:\([^()]*\)[^()]*)*LIMIT \d+\)", re.IGNORECASE)


def counts_a_table(sql: str) -> bool:
    """Return True if a statement counts rows without a bound. Counting a subquery that has a LIMIT is bounded."""
    return sql.upper().count("COUNT(") > len(_BOUNDED_COUNT.findall(sql))


def count_queries(client: Client, path: str) -> int:
    """Return the number of queries of a page with warm caches, and check that none of them counts a table."""
    client.get(path)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(path).status_code == 200
    assert not [query for query in queries if counts_a_table(query["sql"])]
    return len(queries)
