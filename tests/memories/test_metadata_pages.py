"""Metadata on the memories page and in the admin"""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from gateway.models import Agent
from memories.models import Memory, Owner, Revision, WriteOrigin
from memories.services import MemoryFields, Source, book_writing
from tests import admin_rows
from tests.admin_rows import staff_client
from tests.factories import memory_make
from tests.pages import client_of, html_of, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]
SOURCE = {"source": "crm", "<b>": "4711"}


def edit(client: Client, memory: Memory, **changes: Any) -> Any:
    form = {
        "content": memory.content,
        "target": memory.target,
        "category": memory.category,
        "keywords": "",
        "expires_at_0": "",
        "expires_at_1": "",
        "version": memory.version,
        **changes,
    }
    return client.post(reverse("admin:memories_memory_change", args=[memory.pk]), form)


def test_the_memories_page_shows_metadata_and_its_history(alice: Owner, agent: Agent) -> None:
    memory = memory_make(alice, "Likes tea.", metadata=SOURCE)
    page = client_of(alice)
    html = html_of(page, "/memories/")
    assert "source: crm" in text_of(html)
    assert "<b>: 4711" not in html
    with book_writing(memory.book, Source(actor=f"user:{alice.user_id}", origin=WriteOrigin.USER)) as writer:
        writer.update(memory.number, MemoryFields(metadata={"source": "shop"}))
    history = text_of(html_of(page, f"/fragments/memories/{memory.number}/history/"))
    assert "source: shop" in history
    assert "source: crm" in history


def test_an_administrator_can_read_and_edit_metadata(root: Client) -> None:
    memory = admin_rows.memory_make("Likes tea.")
    assert edit(root, memory, metadata='{"source": "crm"}').status_code == 302
    memory.refresh_from_db()
    assert memory.metadata == {"source": "crm"}
    answer = root.get(reverse("admin:memories_memory_change", args=[memory.pk]))
    assert "{&quot;source&quot;: &quot;crm&quot;}" in answer.content.decode()
    assert edit(root, memory, metadata='{"source": "crm"}').status_code == 302
    assert Revision.objects.filter(memory=memory).count() == 2
    assert edit(root, memory, metadata="").status_code == 302
    memory.refresh_from_db()
    assert memory.metadata == {}


@pytest.mark.parametrize("typed", ["crm", "[1]", '{"a": 1}', "[" * 5_000, "x" * 20_001])
def test_invalid_metadata_is_a_form_error(root: Client, typed: str) -> None:
    memory = admin_rows.memory_make("Likes tea.")
    answer = edit(root, memory, metadata=typed)
    assert answer.status_code == 200
    assert "metadata" in answer.context["adminform"].form.errors
    assert Revision.objects.filter(memory=memory).count() == 1


def test_a_secret_in_metadata_is_a_form_error_and_is_not_repeated(root: Client) -> None:
    memory = admin_rows.memory_make("Likes tea.")
    answer = edit(root, memory, metadata='{"password": "Tr0ub4dor-9x!k"}')
    assert answer.status_code == 200
    assert answer.context["adminform"].form.errors
    assert "Tr0ub4dor" not in answer.content.decode()


def test_a_viewer_sees_metadata_without_a_form() -> None:
    memory = admin_rows.memory_make("Likes tea.", metadata={"source": "crm"})
    viewer = staff_client(may=("memories.view_memory",))
    assert "source: crm" in text_of(html_of(viewer, reverse("admin:memories_memory_change", args=[memory.pk])))
