"""Consolidation works completely with the demo model, without a key."""

import pytest

from memories.models import Owner
from reviews.models import Extraction
from tests.reviews.consolidation.rows import add_turns, consolidate, document, settings_make, talk

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def test_plain_statements_become_documents(alice: Owner) -> None:
    settings_make()
    session = talk(alice, "I prefer <b>short</b> answers.", "How are you?")
    talk(alice, "What is the weather?")
    run = consolidate(alice)
    assert (run.state, run.sessions_done, run.sessions_empty) == ("completed", 2, 1)
    assert document(alice, "MEMORY.md") == "# Memory\n\n- Prefers <b>short</b> answers."
    assert "- Prefers <b>short</b> answers." in document(alice, "memory_summary.md")
    add_turns(session, "I live in Bergen.")
    consolidate(alice)
    assert document(alice, "MEMORY.md").splitlines()[2:] == [
        "- Prefers <b>short</b> answers.",
        "- Lives in Bergen.",
    ]
    assert Extraction.objects.count() == 2
