"""/admin/: read-only pages for revisions, change sets, owners, books, and other records"""

import pytest
from django.contrib.admin import site
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from memories.admin.diffs import field_changes, pieces_html, revision_diff
from memories.history.word_diff import word_diff
from memories.models import ChangeSet, Memory, Owner, Revision, WriteOrigin
from memories.services import MemoryFields, Source, book_writing
from tests.admin_pages import count_queries
from tests.admin_rows import listed, memory_make, owner_make, row_url, staff_client

pytestmark = pytest.mark.django_db
REVISIONS = "/admin/memories/revision/"


def test_revisions_are_filtered_by_actor_origin_change_set_and_review(root: Client) -> None:
    review = "01890000-0000-7000-8000-000000000001"
    memory = memory_make("Likes tea.")
    source = Source(actor="model", origin=WriteOrigin.BACKGROUND_REVIEW, kind=ChangeSet.Kind.REVIEW, review_id=review)  # type: ignore[arg-type]
    with book_writing(memory.book, source) as writer:
        writer.update(memory.number, MemoryFields(content="Likes green tea."))
    with book_writing(memory.book, Source(actor="user:7", origin=WriteOrigin.USER)) as writer:
        writer.delete(memory.number)
    by_review = Revision.objects.get(action="update")
    assert [r.action for r in listed(root, REVISIONS, actor="user:7")] == ["delete"]
    assert [r.action for r in listed(root, REVISIONS, write_origin="background_review")] == ["update"]
    assert [r.action for r in listed(root, REVISIONS, review=review)] == ["update"]
    assert [r.action for r in listed(root, REVISIONS, change_set=str(by_review.change_set_id))] == ["update"]
    assert [r.action for r in listed(root, REVISIONS, action="add")] == ["add"]
    assert listed(root, REVISIONS, change_set="nonsense") == []
    assert len(listed(root, REVISIONS, q="1")) == 3


def test_change_sets_are_found_by_text_and_number_of_their_memories_and_by_ids() -> None:
    run, path = "01890000-0000-7000-8000-000000000001", "/admin/memories/changeset/"
    tea = memory_make("Likes green tea.")
    rum = memory_make("Likes rum.", book=tea.book)
    source = Source(actor="model", origin=WriteOrigin.TOOL, run_id=run)  # type: ignore[arg-type]
    with book_writing(tea.book, source) as writer:
        for memory in (tea, rum):
            writer.update(memory.number, MemoryFields(pinned=True))
    sets = dict(zip(("tea", "rum", "both"), ChangeSet.objects.order_by("pk"), strict=True))
    root = staff_client(superuser=True)
    for search, wanted in {
        "Green  likes": ["both", "tea"],
        str(rum.number): ["both", "rum"],
        run: ["both"],
        str(sets["rum"].pk): ["rum"],
        "gin": [],
    }.items():
        assert listed(root, path, q=search) == [sets[name] for name in wanted], search
    User.objects.filter(username="bob").delete()
    viewer = staff_client(may=("memories.view_changeset",))
    assert [listed(viewer, path, q=search) for search in ("tea", "1")] == [[], []]  # may not read the text
    assert listed(viewer, path, q=run) == [sets["both"]]


def test_a_revision_shows_the_words_that_changed(root: Client) -> None:
    memory = memory_make("Likes tea.")
    with book_writing(memory.book, Source(actor="model", origin=WriteOrigin.TOOL)) as writer:
        writer.update(memory.number, MemoryFields(content="Likes coffee."))
    page = root.get(reverse("admin:memories_revision_change", args=[Revision.objects.get(action="update").pk]))
    assert "Likes <del>tea</del><ins>coffee</ins>." in page.content.decode()


def test_revisions_cannot_be_added_changed_or_deleted_even_by_a_superuser(root: Client) -> None:
    memory_make()
    revision = Revision.objects.get()
    change = row_url(revision)
    assert root.post(change, {"actor": "nobody"}).status_code == 403
    assert root.post("/admin/memories/revision/add/", {}).status_code == 403
    assert root.post(reverse("admin:memories_revision_delete", args=[revision.pk]), {"post": "yes"}).status_code == 403
    assert "delete_selected" not in root.get(REVISIONS).content.decode()
    revision.refresh_from_db()
    assert revision.actor == "model"


def test_end_users_do_not_add_queries_to_the_owner_list(root: Client) -> None:
    parents = [owner_make(f"parent{number}") for number in range(3)]
    expected = count_queries(root, "/admin/memories/owner/")
    for number in range(9):
        Owner.objects.create(parent=parents[number % 3], namespace="shop", external_id=f"customer{number}")
    assert count_queries(root, "/admin/memories/owner/") == expected
    assert [str(o) for o in listed(root, "/admin/memories/owner/", q="customer7")] == ["customer7"]


def test_no_list_counts_its_whole_table_and_schedules_have_no_page() -> None:
    for model, page in site._registry.items():
        assert model._meta.app_label != "django_q"  # its schedules may call any function
        assert page.show_full_result_count is False, model


def test_a_user_created_in_the_admin_starts_without_memories(root: Client) -> None:
    form = {
        "username": "dora",
        "usable_password": "true",
        "password1": "tea-and-biscuits",
        "password2": "tea-and-biscuits",
    }
    assert root.post("/admin/auth/user/add/", form).status_code == 302
    dora = User.objects.get(username="dora")
    assert dora.check_password("tea-and-biscuits")
    assert not Memory.objects.filter(owner__user=dora).exists()


def html_diff(before: str, after: str) -> str:
    return pieces_html(word_diff(before, after))


def test_a_word_diff_marks_removed_and_inserted_words() -> None:
    assert html_diff("at 02:30 daily", "at 03:15 daily") == "at <del>02:30</del><ins>03:15</ins> daily"
    assert html_diff("same", "same") == "same"
    assert html_diff("", "new") == "<ins>new</ins>"
    assert html_diff("<i>", "<b>") == "&lt;<del>i</del><ins>b</ins>&gt;"
    assert html_diff("old " * 3000, "new").startswith("<del>old old")


def test_the_diff_of_a_deletion_marks_everything_as_removed() -> None:
    assert revision_diff({"content": "a"}, {"content": "a", "deleted_at": "2026-01-01"}) == "<del>a</del>"
    assert revision_diff(None, {"content": "a"}) == "a"


def test_field_changes_have_readable_names() -> None:
    changes = field_changes(
        {"pinned": False, "keywords": [], "content": "x"},
        {"pinned": True, "keywords": ["a", "b"], "content": "y"},
    )
    assert [(c.name, c.before, c.after) for c in changes] == [
        ("Search keywords", "nothing", "a, b"),
        ("Pinned", "no", "yes"),
    ]
