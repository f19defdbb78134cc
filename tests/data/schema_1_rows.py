"""The rows of the stored database: two people, their conversations, memories, reviews and a consolidation."""

import secrets
from datetime import timedelta
from uuid import uuid4

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone
from django_q.models import Task
from django_q.tasks import async_task
from reviews.consolidation.clearing import book_clear, clear_code_make

from gateway import upstream
from gateway.models import Compaction, Session, Worker
from memories.artifacts.store import artifact_read
from memories.history.undo import undo_changes
from memories.models import Artifact, ChangeSet, Lease, Memory, MemoryVector, Owner, ScanDay, WriteOrigin
from memories.services import MemoryFields, Source, book_get_or_create, book_writing
from tests.factories import agent_make, key_make, memory_make, owner_make, session_make
from tests.reviews.consolidation.answering_model import AnsweringModel
from tests.reviews.consolidation.rows import consolidate, settings_make, talk
from tests.reviews.talk import DONE, adds, newest_review, run_review, say
from tests.scripted_model import ScriptedModel


def fill() -> None:
    """Make every kind of row."""
    alice, bob = owner_make("alice"), owner_make("bob", is_staff=True, is_superuser=True)
    agent = agent_make(memory_review_interval=1, memory_review_timeout=30)
    careful = agent_make("careful", memory_review_interval=1, memory_review_approval=True, book="waiting")
    key_make(alice)
    _memories(alice)
    _reviews(alice, session_make(alice, agent, title="Food"), session_make(alice, careful))
    settings_make()
    upstream.install(AnsweringModel())
    talk(alice, agent, "I deploy with make ship.", "On Fridays we do not deploy.")
    consolidate(alice)
    artifact_read(Artifact.objects.filter(owner=alice).first())
    clear_code_make(book_get_or_create(alice.pk, "main"))
    memory_make(bob, "Looks after the server.")
    _records(alice, bob)


def _memories(owner: Owner) -> None:
    """Added, changed, deleted, deleted and restored."""
    for number in range(12):
        memory_make(owner, f"Plain fact number {number}.", keywords=[f"fact{number}"], pinned=number == 3)
    book = book_get_or_create(owner.pk, "main")
    first, second, third = Memory.objects.filter(owner=owner).order_by("number")[:3]
    with _writing(owner) as writer:
        writer.update(first.number, MemoryFields(content="A fact that was changed.", category="preference"))
    with _writing(owner) as writer:
        writer.delete(second.number)
    with _writing(owner) as writer:
        writer.delete(third.number)
    undo_changes(ChangeSet.objects.filter(book=book).latest("id"), _source(owner, ChangeSet.Kind.UNDO))
    memory = Memory.objects.get(owner=owner, number=first.number)
    MemoryVector.objects.create(
        memory=memory, owner=owner, book=book, model="small", content_key=memory.content_key, values=bytes(16)
    )


def _writing(owner: Owner):  # type: ignore[no-untyped-def]
    return book_writing(book_get_or_create(owner.pk, "main"), _source(owner, ChangeSet.Kind.EDIT))


def _source(owner: Owner, kind: ChangeSet.Kind) -> Source:
    return Source(actor=f"user:{owner.user_id}", origin=WriteOrigin.USER, kind=kind)


def _reviews(owner: Owner, saved: Session, waiting: Session) -> None:
    """One that saved, one whose writes wait, and one that a clear withdrew."""
    model = ScriptedModel()
    upstream.install(model)
    say(saved, "I am a vegetarian.")
    model.script(adds("Is a vegetarian."), DONE)
    run_review(newest_review())
    say(waiting, "My cat is called Otto.")
    model.script(adds("Has a cat called Otto."), DONE)
    run_review(newest_review())
    book_clear(book_get_or_create(owner.pk, "waiting"), actor=f"user:{owner.user_id}")
    say(waiting, "My dog is called Anna.")
    model.script(adds("Has a dog called Anna."), DONE)
    run_review(newest_review())
    say(waiting, "Nothing yet has looked at this.")
    Compaction.objects.create(owner=owner, session=saved, up_to=1, summary="They said what they eat.")


def _records(alice: Owner, bob: Owner) -> None:
    """What Django, the queue and the worker keep."""
    user: User = bob.user  # type: ignore[assignment]
    store = SessionStore()
    store["_auth_user_id"] = str(user.pk)
    store.create()
    LogEntry.objects.create(
        user=user,
        content_type=ContentType.objects.get_for_model(Memory),
        object_id="1",
        object_repr="Memory 1",
        action_flag=CHANGE,
    )
    async_task("reviews.tasks.review_execute", str(uuid4()), sync=False)
    now = timezone.now()
    Task.objects.create(id=uuid4().hex, name="old", func="reviews.tasks.review_execute", started=now, stopped=now)
    Lease.objects.create(name="consolidation:old", token=uuid4(), expires_at=now)
    Worker.objects.create(host="old-host", pid=4_000_000)
    ScanDay.objects.create(day=timezone.now().date() - timedelta(days=1), rule="api_key", kind="secret", number=2)
    alice.end_users.create(namespace="daybook", external_id=secrets.token_hex(4))
