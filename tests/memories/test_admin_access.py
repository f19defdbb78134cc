"""/admin/: whoever opens what somebody said or is remembered for leaves a line in the admin log, without the words"""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from gateway.models import Message, Session
from memories.admin.access import VIEW
from memories.models import Memory
from tests.admin_pages import Rows, list_of, page_of, rows_make
from tests.admin_rows import book_make, memory_make, owner_make, session_make, staff_client

pytestmark = pytest.mark.django_db
# What alice said or is remembered for, in any of the rows: memory, title, question, document, note, review.
WORDS = ("Likes tea.", "Prefers tea.", "Question 1", "Question 2")
MEMORIES = "/admin/memories/memory/"


@pytest.fixture
def rows() -> Rows:
    return rows_make()


@pytest.fixture
def root(rows: Rows) -> Client:
    return staff_client(superuser=True)


def new_lines(client: Client, path: str, form: dict[str, Any] | None = None) -> tuple[str, list[LogEntry]]:
    """What a request shows, and the lines of the log that it left."""
    last = LogEntry.objects.order_by("pk").last()
    answer = client.get(path, follow=True) if form is None else client.post(path, form)
    lines = LogEntry.objects.filter(pk__gt=last.pk if last else 0)
    return answer.content.decode(), list(lines.order_by("pk"))


def test_every_page_that_shows_somebodys_words_records_that_it_was_opened(root: Client, rows: Rows) -> None:
    seen = []
    for name, row in rows.items():
        for path, key in ((list_of(name), None), (page_of(name, row), str(row.pk))):
            page, lines = new_lines(root, path)
            if any(words in page for words in WORDS):
                seen.append(path)
                assert [(line.action_flag, line.object_id) for line in lines] == [(VIEW, key)], path
    for name in ("memories.memory", "gateway.session", "memories.revision", "reviews.extraction", "memories.artifact"):
        assert page_of(name, rows[name]) in seen, f"{name} shows none of the words; the test would pass for nothing"


def test_the_log_never_holds_the_words(root: Client, rows: Rows) -> None:
    for name, row in rows.items():
        root.get(list_of(name), follow=True)
        root.get(page_of(name, row))
    for line in LogEntry.objects.all():
        assert not any(words in f"{line.object_repr} {line.change_message}" for words in WORDS), line.change_message


def test_a_line_names_the_administrator_the_row_and_its_owner(root: Client, rows: Rows) -> None:
    memory = rows["memories.memory"]
    _, (line,) = new_lines(root, page_of("memories.memory", memory))
    assert (line.user.get_username(), line.object_repr) == ("bob", str(memory))
    assert line.change_message == f"Opened; owner {Memory.objects.get().owner_id}."


def test_each_page_of_a_long_transcript_is_recorded(root: Client, rows: Rows) -> None:
    session = Session.objects.get()
    Message.objects.create(owner=session.owner, session=session, seq=300, role="user", text="Much later.")
    page, lines = new_lines(root, f"{page_of('gateway.session', session)}?from=200")
    assert "Much later." in page
    assert [line.object_id for line in lines] == [str(session.pk)]


def test_a_form_that_comes_back_refused_shows_the_memory_again_and_is_recorded(root: Client, rows: Rows) -> None:
    memory = rows["memories.memory"]
    page, lines = new_lines(root, page_of("memories.memory", memory), {"content": ""})
    assert "Likes tea." in page
    assert [(line.action_flag, line.object_id) for line in lines] == [(VIEW, str(memory.pk))]


def test_a_list_that_is_asked_for_by_post_is_recorded(root: Client, rows: Rows) -> None:
    page, lines = new_lines(root, MEMORIES, {"anything": "else"})
    assert "Likes tea." in page
    assert [line.change_message for line in lines] == ["Listed 1 memory of 1 owner."]


def test_an_export_is_recorded_with_the_memories_it_took(root: Client, rows: Rows) -> None:
    memories = [Memory.objects.get(), memory_make("Works nights.")]
    form = {"action": "export_memories", "_selected_action": [str(memory.pk) for memory in memories]}
    exported, lines = new_lines(root, MEMORIES, form)
    assert "Works nights." in exported
    (line,) = lines
    assert (line.change_message, set(line.object_repr.split(", "))) == ("Exported.", {str(m) for m in memories})


def test_ones_own_pages_are_nobodys_business(root: Client) -> None:
    bob = owner_make("bob")
    memory, session = memory_make("Mine.", book=book_make(bob)), session_make(bob, turns=1)
    for path in (page_of("memories.memory", memory), page_of("gateway.session", session)):
        assert new_lines(root, path)[1] == []


def test_a_page_that_was_refused_was_not_opened(rows: Rows) -> None:
    nobody = staff_client()
    for name, row in rows.items():
        assert new_lines(nobody, page_of(name, row))[1] == [], name
