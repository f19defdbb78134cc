"""/admin/memories/artifact/: documents, rendered and with history; administrators edit, remove and restore them"""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from memories.artifacts.store import artifact_put
from memories.models import Artifact, ArtifactRevision, AuditEntry, Owner
from tests.admin_rows import bob as actor_of_bob
from tests.admin_rows import book_make, object_action, owner_make, row_url, staff_client
from tests.factories import BY_HAND
from tests.pages import html_of
from tests.reviews.consolidation.answering_model import AnsweringModel, synthesis
from tests.reviews.consolidation.rows import book_of, consolidate, document, talk

pytestmark = pytest.mark.django_db
LIST = "/admin/memories/artifact/"
SECRET = "sk-" + "proj-" + "aB3xK9qL" * 6


def artifact_make(content: str = "# Handbook\n\n- Deploys with *make ship*.", path: str = "MEMORY.md") -> Artifact:
    return artifact_put(book_make(owner_make()), path, content, BY_HAND)


def edit(client: Client, artifact: Artifact, content: str, version: int | None = None) -> Any:
    return client.post(row_url(artifact), {"content": content, "version": str(version or artifact.version)})


def paths(client: Client, **query: str) -> list[str]:
    return [row.path for row in client.get(LIST, query).context["cl"].result_list]


@pytest.mark.any_database
def test_the_list_shows_documents_with_owner_and_author(root: Client) -> None:
    artifact_make()
    page = root.get(LIST).content.decode()
    assert all(word in page for word in ("MEMORY.md", "alice", "main", "Owner", "Live"))


def test_documents_are_filtered_by_state_origin_book_and_path(root: Client) -> None:
    artifact_make()
    artifact_make("1. make ship", "skills/ship/SKILL.md")
    object_action(root, artifact_make("A summary.", "memory_summary.md"), "remove")
    Artifact.objects.filter(path="MEMORY.md").update(scan_rule="instruction_override")
    Artifact.objects.filter(path__startswith="skills").update(kept=True)
    assert set(paths(root)) == {"MEMORY.md", "skills/ship/SKILL.md"}
    assert paths(root, state="removed") == ["memory_summary.md"]
    assert paths(root, state="blocked") == ["MEMORY.md"]
    assert paths(root, state="kept") == ["skills/ship/SKILL.md"]
    assert len(paths(root, state="all")) == 3
    assert paths(root, state="no such state") == paths(root)
    assert paths(root, state="all", write_origin="admin") == ["memory_summary.md"]
    assert paths(root, q="ship") == ["skills/ship/SKILL.md"]
    assert paths(root, book__id__exact="01890000-0000-7000-8000-000000000001") == []


def test_a_document_is_rendered_and_its_html_is_escaped(root: Client) -> None:
    artifact = artifact_make("- Deploys with *make ship*.")
    # The scan refuses such content, but a row may have been written without it.
    Artifact.objects.update(content=f"{artifact.content}\n\n<script>alert(1)</script>")
    page = html_of(root, row_url(artifact))
    assert "<li>Deploys with <em>make ship</em>.</li>" in page
    assert "<script>alert(1)</script>" not in page


def test_an_edit_is_a_revision_by_the_administrator(root: Client) -> None:
    artifact = artifact_make()
    answer = edit(root, artifact, "# Handbook\r\n\r\n- Deploys with make release.")
    assert answer.status_code == 302, answer.content.decode()
    artifact.refresh_from_db()
    revision = ArtifactRevision.objects.get(artifact=artifact, version=2)
    assert artifact.content == "# Handbook\n\n- Deploys with make release."
    assert (revision.actor, revision.write_origin) == (actor_of_bob(), "admin")
    page = html_of(root, row_url(artifact))
    assert "<del>" in page
    assert "<ins>" in page
    assert "changed it" in page


@pytest.mark.any_database
def test_an_administrators_line_survives_the_next_consolidation(
    root: Client, alice: Owner, answering: AnsweringModel, consolidation_on: None
) -> None:
    talk(alice)
    consolidate(alice)
    artifact = Artifact.objects.get(path="MEMORY.md")
    edit(root, artifact, f"{artifact.content}\n- Never on Fridays.")
    answering.on_synthesis = lambda _: synthesis("# Memory\n- New.")
    consolidate(alice, force=True)
    assert {"- Never on Fridays.", "- New."} <= set(document(alice, "MEMORY.md").splitlines())


def test_the_owner_sees_that_an_administrator_changed_a_document(root: Client) -> None:
    artifact = artifact_make()
    edit(root, artifact, "- Deploys with make release.")
    owner = Client()
    owner.force_login(User.objects.get(username="alice"))
    page = owner.get("/reviews/", {"doc": "MEMORY.md"}).content.decode()
    assert "edited by an administrator" in page
    assert "Changed by an administrator on" in page


def test_an_outdated_edit_is_a_form_error_and_overwrites_nothing(root: Client) -> None:
    artifact = artifact_make()
    artifact_put(artifact.book, "MEMORY.md", "Alice was quicker.", BY_HAND)
    answer = edit(root, artifact, "Bob's words.", version=1)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "This document was changed in the meantime." in page
    assert "Bob&#x27;s words." in page, "the form keeps the text"
    assert document(owner_make(), "MEMORY.md") == "Alice was quicker."
    assert not AuditEntry.objects.filter(action="change").exists()


def test_an_edit_of_a_removed_document_is_a_form_error(root: Client) -> None:
    artifact = artifact_make()
    artifact_put(artifact.book, "MEMORY.md", "", BY_HAND)
    answer = edit(root, artifact, "Bob's words.", version=1)
    assert "This document was changed in the meantime." in answer.content.decode()
    assert document(owner_make(), "MEMORY.md") == ""


def test_a_secret_is_refused_and_not_shown_again(root: Client) -> None:
    artifact = artifact_make()
    answer = edit(root, artifact, f"- A long edit.\n- The key is {SECRET}.")
    page = answer.content.decode()
    assert "Not saved. Rule" in page
    assert SECRET not in page
    assert "- A long edit." in page
    assert SECRET not in document(owner_make(), "MEMORY.md")


@pytest.mark.any_database
def test_a_document_is_removed_and_restored_from_its_history(root: Client) -> None:
    artifact = artifact_make("First.")
    artifact = artifact_make("Second.")
    assert "Removed." in object_action(root, artifact, "remove", version="2").content.decode()
    assert document(owner_make(), "MEMORY.md") == ""
    artifact.refresh_from_db()
    page = html_of(root, row_url(artifact))
    assert "It can be restored from its history." in page
    assert 'name="content"' not in page
    first = ArtifactRevision.objects.get(artifact=artifact, version=1)
    answer = object_action(root, artifact, "put_back", revision=str(first.pk), version="3")
    assert "Restored." in answer.content.decode()
    assert document(owner_make(), "MEMORY.md") == "First."
    assert ArtifactRevision.objects.get(artifact=artifact, version=4).actor == actor_of_bob()


@pytest.mark.any_database
@pytest.mark.parametrize("verb", ["remove", "put_back"])
def test_an_object_action_on_an_outdated_document_does_nothing(root: Client, verb: str) -> None:
    artifact_make("First.")
    artifact = artifact_make("Second.")
    first = ArtifactRevision.objects.get(artifact=artifact, version=1)
    artifact_make("Third.")
    answer = object_action(root, artifact, verb, revision=str(first.pk), version="2")
    assert "This document was changed in the meantime." in answer.content.decode()
    assert document(owner_make(), "MEMORY.md") == "Third."


def test_a_revision_of_another_document_is_not_put_back(root: Client) -> None:
    artifact, other = artifact_make("First."), artifact_make("Other.", "memory_summary.md")
    foreign = ArtifactRevision.objects.get(artifact=other)
    assert object_action(root, artifact, "put_back", revision=str(foreign.pk), version="1").status_code == 404
    assert document(owner_make(), "MEMORY.md") == "First."


def test_an_auditor_can_edit_documents_and_a_viewer_cannot() -> None:
    artifact = artifact_make("First.")
    auditor = staff_client(auditor=True)
    assert edit(auditor, artifact, "Second.").status_code == 302
    assert document(owner_make(), "MEMORY.md") == "Second."
    auditor.logout()
    viewer = viewer_make()
    page = html_of(viewer, row_url(artifact))
    assert "Second." in page
    assert 'value="remove"' not in page
    assert "Restore this" not in page
    assert 'name="_save"' not in page
    assert edit(viewer, artifact, "Third.", version=2).status_code == 403
    assert object_action(viewer, artifact, "remove", version="2").status_code == 403
    assert document(owner_make(), "MEMORY.md") == "Second."


def viewer_make() -> Client:
    owner_make("bob").user.delete()  # type: ignore[union-attr]
    return staff_client(may=("memories.view_artifact",))


def test_opening_a_document_is_recorded(root: Client) -> None:
    artifact = artifact_make()
    root.get(row_url(artifact))
    entry = AuditEntry.objects.get(action="view")
    assert (entry.kind, entry.object_id) == ("artifact", str(artifact.pk))
    assert entry.owner_id == str(artifact.owner_id)


def test_documents_cannot_be_added_or_deleted_in_the_admin(root: Client) -> None:
    artifact = artifact_make()
    assert root.get(f"{LIST}add/").status_code == 403
    assert root.post(reverse("admin:memories_artifact_delete", args=[artifact.pk]), {"post": "yes"}).status_code == 403
    assert "delete_selected" not in root.get(LIST).content.decode()
    assert book_of(owner_make()).artifacts.count() == 1


def test_the_page_of_a_change_set_links_to_its_documents(root: Client) -> None:
    artifact = artifact_make()
    change_set = ArtifactRevision.objects.get(artifact=artifact).change_set
    page = root.get(row_url(change_set)).content.decode()
    assert f'href="{row_url(artifact)}">MEMORY.md</a>' in page
