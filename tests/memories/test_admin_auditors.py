"""/admin/: the group of memory auditors, and what pages show to users without change permission"""

import re

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from memories.audit.auditors import AUDITORS, PERMISSIONS, auditors_make, auditors_unmake
from memories.models import ChangeSet, Memory, Revision
from tests.admin_pages import list_of, page_of, rows_make, saved_review_make
from tests.admin_rows import book_make, memory_make, row_url, session_make, staff_client
from tests.pages import html_of

pytestmark = pytest.mark.django_db


def test_an_auditors_edit_is_a_revision_by_the_auditor() -> None:
    memory, client = memory_make("Likes tea."), staff_client(auditor=True)
    form = {
        "content": "Likes milk.",
        "target": "memory",
        "category": "general",
        "keywords": "",
        "version": "1",
    }
    answer = client.post(
        row_url(memory),
        {**form, "expires_at_0": "", "expires_at_1": ""},
    )
    assert answer.status_code == 302
    assert Revision.objects.latest("created_at").actor.startswith("staff:")


def test_a_viewer_sees_a_memory_without_buttons() -> None:
    memory = memory_make("Likes tea.")
    page = staff_client(may=("memories.view_memory",)).get(row_url(memory)).content.decode()
    assert "Likes tea." in page
    assert 'value="delete"' not in page
    assert 'name="_save"' not in page


def test_an_auditor_sees_a_review_without_the_conversation() -> None:
    session = session_make(turns=1)
    review = saved_review_make(session, book_make())
    path = row_url(review)
    page = staff_client(auditor=True).get(path).content.decode()
    assert "Prefers tea." in page
    assert "Question 1" not in page


def test_an_auditors_pages_have_no_link_that_is_refused() -> None:
    rows, client = rows_make(), staff_client(auditor=True)
    Memory.objects.update(session_id=rows["gateway.session"].pk)
    ChangeSet.objects.update(session_id=rows["gateway.session"].pk, run_id=rows["gateway.run"].pk)
    shown = [page_of(f"{app}.{model}", rows[f"{app}.{model}"]) for app, model, _ in PERMISSIONS]
    shown += [list_of(f"{app}.{model}") for app, model, _ in PERMISSIONS]
    links = {link for page in shown for link in re.findall(r'<a[^>]* href="(/admin/[^"?]+)', html_of(client, page))}
    assert {page_of(name, rows[name]) for name in ("memories.memory", "memories.book")} <= links
    assert {link: status for link in links if (status := client.get(link, follow=True).status_code) != 200} == {}


def test_an_object_action_needs_the_csrf_token() -> None:
    memory, signed_in = memory_make(), staff_client(superuser=True)
    client = Client(enforce_csrf_checks=True)
    client.cookies = signed_in.cookies
    assert client.post(row_url(memory, "object_action"), {"verb": "delete"}).status_code == 403


def test_the_auditors_group_is_created_once_and_can_be_removed() -> None:
    auditors_make()
    auditors_make()
    group = Group.objects.get(name=AUDITORS)
    assert {p.codename for p in group.permissions.all()} == {
        "view_memory",
        "change_memory",
        "delete_memory",
        "view_revision",
        "view_changeset",
        "view_book",
        "view_owner",
        "view_artifact",
        "change_artifact",
        "view_reviewrun",
        "change_reviewrun",
        "view_consolidationrun",
        "view_extraction",
    }
    auditors_unmake()
    assert not Group.objects.filter(name=AUDITORS).exists()
