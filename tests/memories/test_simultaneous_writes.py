"""Writes to a book by several processes at the same time, each with its own database connection"""

import pytest

from gateway.models import Session
from gateway.services import session_delete
from memories.models import ChangeSet, Evidence, EvidenceKind, Memory, Owner, Revision, WriteOrigin
from memories.services import MemoryFields, Source, book_get_or_create, book_writing
from tests.overlapping import only_postgresql, overlap

pytestmark = [pytest.mark.django_db(transaction=True), only_postgresql]
BY_HAND = Source(actor="user:1", origin=WriteOrigin.USER, kind=ChangeSet.Kind.EDIT)


def test_a_write_does_not_restore_the_quote_of_a_session_that_is_deleted(alice: Owner, session: Session) -> None:
    quoted = Evidence(kind=EvidenceKind.OWN_WORDS, quote="I drink tea.", session_id=session.pk)
    book = book_get_or_create(alice.pk, "main")
    with book_writing(book, BY_HAND) as writer:
        memory = writer.add(MemoryFields(content="Likes tea.", target="user", evidence=quoted)).memory

    def pin() -> None:
        with book_writing(book, BY_HAND) as writer:
            writer.update(memory.number, MemoryFields(pinned=True))

    overlap(pin, lambda: session_delete(session), pause_after="SELECT memories_memory")
    assert Memory.objects.get().pinned
    assert [row.evidence.quote for row in (*Memory.objects.all(), *Revision.objects.all())] == ["", "", ""]
