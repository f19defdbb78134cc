"""Consolidation in the admin, in a real browser: progress without a reload, the start after a preview, editing and
restoring a document, and axe on each page."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from gateway.models import Agent
from memories.artifacts.store import artifact_put
from memories.models import Artifact, Book, WriteOrigin
from memories.services import Source
from reviews.consolidation.runs import cancel, claim
from reviews.models import ConsolidationRun, Extraction
from tests.browser.axe import NAVIGATION, dark_contrast_findings, serious_findings
from tests.browser.conftest import LiveServer, Visitor, owner_of
from tests.reviews.consolidation.rows import book_of, request, settings_make, talk

pytestmark = pytest.mark.browser
HANDBOOK = """# Handbook

## Deploying

- Deploys with `make ship`, never on **Fridays**.
- Tests run first.

```
make test
make ship
```
"""
SOURCE = Source(actor="user:1", origin=WriteOrigin.USER)


@pytest.fixture
def book(server: LiveServer) -> Book:
    """Alice's book with three sessions that no consolidation has read yet."""
    settings_make(max_tokens_per_run=50_000)
    agent, alice = Agent.objects.get(name="assistant"), owner_of("alice")
    for number, title in enumerate(("Shipping the shop", "A trip to Lisbon", "Backups")):
        talk(alice, "I deploy with make ship, never on Fridays.", agent=agent, title=title, hours_ago=20 + number)
    return book_of(alice)


def test_a_runs_page_updates_without_a_reload(book: Book, root: Visitor) -> None:
    run = request(book.owner)
    ConsolidationRun.objects.update(selected=True, sessions_total=12, sessions_done=3, state="running")
    page = root.open(reverse("admin:reviews_consolidationrun_change", args=[run.pk]))
    bar = page.get_by_role("progressbar", name="Sessions read")
    expect(bar).to_have_attribute("value", "3")
    ConsolidationRun.objects.update(sessions_done=9)
    expect(bar).to_have_attribute("value", "9")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    cancel(run, "Stopped by a person.")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(page.get_by_text("It was stopped. Stopped by a person.")).to_be_visible()


def test_a_consolidation_is_started_from_the_books_page(book: Book, root: Visitor) -> None:
    page = root.open(reverse("admin:memories_book_change", args=[book.pk]))
    page.get_by_role("link", name="Consolidate now").click()
    expect(page.get_by_role("cell", name="rewritten")).to_be_visible()
    assert not ConsolidationRun.objects.exists()
    page.get_by_role("link", name="Even if nothing changed").click()
    page.get_by_role("button", name="Consolidate now").click()
    expect(page.get_by_text("1 consolidation is under way.")).to_be_visible()
    assert ConsolidationRun.objects.get().force


def test_a_document_is_edited_removed_and_restored(book: Book, root: Visitor) -> None:
    artifact = artifact_put(book, "MEMORY.md", HANDBOOK, SOURCE)
    page = root.open(reverse("admin:memories_artifact_change", args=[artifact.pk]))
    expect(page.get_by_role("heading", name="Deploying")).to_be_visible()
    page.get_by_label("Text, as Markdown").fill("# Handbook\n\n- Deploys with make release.")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("link", name="MEMORY.md").first.click()
    expect(page.locator(".db-history ins").first).to_be_visible()
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("It can be restored from its history.", exact=False).first).to_be_visible()
    page.get_by_role("button", name="Restore this").last.click()
    expect(page.get_by_role("heading", name="Deploying")).to_be_visible()
    assert Artifact.objects.get().content == HANDBOOK.strip()


def test_axe_finds_nothing_serious_in_light_and_dark_mode(book: Book, root: Visitor) -> None:
    alice = book.owner
    run = request(alice)
    ConsolidationRun.objects.update(selected=True, sessions_total=12, sessions_done=3, tokens=12_340, requests=3)
    claim(run.pk)
    artifact = artifact_put(book, "MEMORY.md", HANDBOOK, SOURCE)
    artifact_put(book, "MEMORY.md", HANDBOOK.replace("make ship", "make release"), SOURCE)
    Extraction.objects.create(
        owner=alice, book=book, session=alice.sessions.first(), run=run, state="extracted",
        raw_memory="- Deploys with make ship.", synopsis="How the shop is deployed.",
    )  # fmt: skip
    pages = {
        "runs": reverse("admin:reviews_consolidationrun_changelist"),
        "run": reverse("admin:reviews_consolidationrun_change", args=[run.pk]),
        "notes": reverse("admin:reviews_extraction_changelist"),
        "leases": reverse("admin:memories_lease_changelist"),
        "artifacts": reverse("admin:memories_artifact_changelist"),
        "artifact": reverse("admin:memories_artifact_change", args=[artifact.pk]),
        "book": reverse("admin:memories_book_change", args=[book.pk]),
        "start": f"{reverse('admin:memories_book_consolidate')}?book={book.pk}",
    }
    page = root.context.new_page()
    findings = {}
    for name, path in pages.items():
        page.goto(root.address + path)
        page.evaluate("() => document.fonts.ready.then(() => true)")
        findings[name] = [
            *serious_findings(page, without=NAVIGATION),
            *dark_contrast_findings(page, without=NAVIGATION),
        ]
    assert findings == {name: [] for name in pages}
