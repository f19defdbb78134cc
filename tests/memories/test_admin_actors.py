"""/admin/: actors are people and keys by name, change sets are described in sentences"""

from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gateway.keys import api_key_create
from memories.admin.actors import actor_names, actor_words, actors_named
from memories.admin.change_words import MAX_COUNTED, MAX_LINES, sentences_add
from memories.models import Book, ChangeSet, Memory, Revision, WriteOrigin
from memories.services import MemoryFields, Source, book_writing
from tests.admin_rows import book_make, memory_make, owner_make, row_url, staff_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def book() -> Book:
    return book_make(owner_make("ada"))


def write(book: Book, actor: str, *contents: str, origin: WriteOrigin = WriteOrigin.TOOL) -> ChangeSet:
    with book_writing(book, Source(actor=actor, origin=origin)) as writer:
        for content in contents:
            writer.add(MemoryFields(content=content))
    return ChangeSet.objects.latest("pk")


def sentences() -> list[str]:
    rows = list(ChangeSet.objects.order_by("pk"))
    sentences_add(rows)
    return [row.sentence for row in rows]  # type: ignore[attr-defined]


def test_actors_are_people_keys_models_and_daybook(book: Book) -> None:
    key, _ = api_key_create(owner=book.owner, name="laptop")
    user = book.owner.user_id
    actors = [f"user:{user}", f"staff:{user}", f"key:{key.pk}", "user:999", f"key:{uuid4()}", "key:x", "user:x", "odd"]
    with CaptureQueriesContext(connection) as queries:
        names = actor_names([*actors, "model", "system"])
    assert len(queries) == 2
    assert [actor_words(actor, "tool", names) for actor in actors] == [
        "ada",
        "Administrator ada",
        "ada's key “laptop”",
        "A deleted account",
        "A deleted key",
        "A deleted key",
        "A deleted account",
        "odd",
    ]
    assert actor_words("model", "tool", {}) == "The agent"
    assert actor_words("model", "background_review", {}) == "A review"
    assert actor_words("system", "system", {}) == "Daybook"


def test_models_and_the_system_need_no_query() -> None:
    with CaptureQueriesContext(connection) as queries:
        actor_names(["model", "system"])
    assert len(queries) == 0


def test_a_change_set_is_described_in_a_sentence(book: Book) -> None:
    key, _ = api_key_create(owner=book.owner, name="laptop")
    write(book, f"key:{key.pk}", "Likes tea.", "Likes cake.")
    with book_writing(book, Source(actor="model", origin=WriteOrigin.TOOL)) as writer:
        writer.update(1, MemoryFields(content="Likes green tea."))
        writer.delete(2)
    assert sentences() == [
        "ada's key “laptop” added 2 memories",
        "The agent changed 1 memory and deleted 1 memory",
    ]


def test_the_changes_of_a_set_are_counted_up_to_a_limit(book: Book) -> None:
    made = write(book, "system", "Likes tea.", origin=WriteOrigin.SYSTEM)
    memory = Memory.objects.get()
    Revision.objects.bulk_create(
        Revision(
            owner=book.owner, memory=memory, change_set=made, version=version, action="update", after={},
            actor="system", write_origin="system",
        )
        for version in range(2, MAX_COUNTED + 50)
    )  # fmt: skip
    assert sentences() == [f"Daybook made more than {MAX_COUNTED} changes to memories"]


@pytest.mark.any_database
def test_a_change_sets_page_shows_its_memories_and_its_source(book: Book) -> None:
    made = write(book, "model", *(f"Fact {number}." for number in range(MAX_LINES + 1)))
    client: Client = staff_client(superuser=True)
    answer = client.get(row_url(made))
    page = answer.content.decode()
    assert f"The agent added {MAX_LINES + 1} memories" in page
    assert "Fact 0." in page
    assert "There are more" in page
    assert len(answer.context["shown"]["lines"]) == MAX_LINES


def test_lists_of_changes_show_actors_by_name(book: Book) -> None:
    write(book, f"user:{book.owner.user_id}", "Likes tea.", origin=WriteOrigin.USER)
    client = staff_client(superuser=True)
    for path in ("/admin/memories/changeset/", "/admin/memories/revision/"):
        page = client.get(path).content.decode()
        assert f"user:{book.owner.user_id}" not in page, path
    assert "ada added 1 memory" in client.get("/admin/memories/changeset/").content.decode()


def test_changes_are_filtered_by_account_name(book: Book) -> None:
    memory_make("Likes cake.")
    write(book, f"staff:{book.owner.user_id}", "Likes tea.", origin=WriteOrigin.ADMIN)
    client = staff_client(superuser=True)
    user = User.objects.get(username="ada")
    assert set(actors_named("ada")) == {f"user:{user.pk}", f"staff:{user.pk}"}
    found = client.get("/admin/memories/revision/", {"actor": "ada"}).context["cl"].result_list
    assert [revision.actor for revision in found] == [f"staff:{user.pk}"]
    assert list(client.get("/admin/memories/revision/", {"actor": "nobody"}).context["cl"].result_list) == []
