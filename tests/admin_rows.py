"""Users and rows for the admin tests, created through our services so that they have revisions too."""

from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from gateway.models import Agent, Message, Run, Session
from gateway.services import agent_save, session_create
from memories.audit.auditors import AUDITORS, auditors_make
from memories.models import Book, Memory, Owner, WriteOrigin
from memories.services import (
    MemoryFields,
    Source,
    book_get_or_create,
    book_writing,
    owner_for_user,
)


def user_make(name: str, **fields: Any) -> User:
    """Create a user; `fields` may be `is_staff` and `is_superuser`."""
    return User.objects.create_user(name, **fields)  # no password: hashing it takes longer than the test


def owner_make(name: str = "alice") -> Owner:
    """Return the owner row of the user with this name; create the user if necessary."""
    user = User.objects.filter(username=name).first() or user_make(name)
    return owner_for_user(user)


def book_make(owner: Owner | None = None, name: str = "main") -> Book:
    """Return a book of `owner`, by default Alice."""
    return book_get_or_create((owner or owner_make()).pk, name)


def memory_make(content: str = "Likes tea.", *, book: Book | None = None, **fields: Any) -> Memory:
    """Create a memory as the agent would, by default in Alice's book."""
    origin = fields.pop("origin", WriteOrigin.TOOL)
    with book_writing(book or book_make(), Source(actor="model", origin=origin)) as writer:
        return writer.add(MemoryFields(content=content, **fields)).memory


def memory_delete(memory: Memory) -> None:
    """Delete a memory as its owner."""
    with book_writing(memory.book, Source(actor="user:1", origin=WriteOrigin.USER)) as writer:
        writer.delete(memory.number)


def memory_block(memory: Memory, rule: str = "instruction_override") -> None:
    """Mark a memory as the scan marks a row that was written without being scanned."""
    Memory.objects.filter(pk=memory.pk).update(scan_rule=rule, scan_reason="gives orders", scan_hash="of these words")


def agent_make(name: str = "assistant", **settings: Any) -> Agent:
    """Create an agent with these settings."""
    return agent_save(name, settings)


def session_make(owner: Owner | None = None, *, title: str = "Tea", turns: int = 0) -> Session:
    """Create a session, by default Alice's, with `turns` completed turns of two messages each."""
    session = session_create(owner or owner_make(), Agent.objects.first() or agent_make(), title=title)
    session.turns, session.message_seq = turns, 2 * turns
    session.save()
    for turn in range(1, turns + 1):
        run = Run.objects.create(
            owner=session.owner, session=session, turn=turn, state=Run.State.COMPLETED, request_id=f"request-{turn}"
        )
        for seq, role, text in ((2 * turn - 1, "user", f"Question {turn}"), (2 * turn, "assistant", f"Answer {turn}")):
            Message.objects.create(owner=session.owner, session=session, run=run, seq=seq, role=role, text=text)
    return session


def staff_client(*, superuser: bool = False, auditor: bool = False, may: tuple[str, ...] = ()) -> Client:
    """Return a client signed in as Bob: a superuser, a memory auditor, or staff with the permissions `may`."""
    user = user_make("bob", is_staff=True, is_superuser=superuser)
    if auditor:
        auditors_make()
        user.groups.add(Group.objects.get(name=AUDITORS))
    for name in may:
        app, codename = name.split(".")
        user.user_permissions.add(Permission.objects.get(content_type__app_label=app, codename=codename))
    client = Client()
    client.force_login(user)
    return client


def row_url(row: Model, page: str = "change") -> str:
    """Return the URL of a row's page, or another one of the row, such as that of its `object_action`s."""
    return reverse(f"admin:{row._meta.label_lower.replace('.', '_')}_{page}", args=[row.pk])


def object_action(client: Client, row: Model, verb: str, **form: Any) -> Any:
    """Press a button on a row's page, and return the page that follows."""
    return client.post(row_url(row, "object_action"), {"verb": verb, **form}, follow=True)


def listed(client: Client, path: str, **query: Any) -> list[Any]:
    """Return the rows that a list page shows."""
    answer = client.get(path, query)
    assert answer.status_code == 200
    return list(answer.context["cl"].result_list)


def bob() -> str:
    """Return the actor under which Bob's actions are recorded."""
    return f"staff:{User.objects.get(username='bob').pk}"
