"""Users and rows with the product's defaults, created through our services so that they have revisions too."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone

from gateway.keys import api_key_create
from gateway.models import Agent, ApiKey, Login, Session
from gateway.oauth.connections import app_connect
from gateway.oauth.registration import client_register
from gateway.services import agent_save, session_create
from memories.audit.log import SYSTEM
from memories.caller import Caller
from memories.models import Book, ChangeSet, Memory, Owner, WriteOrigin
from memories.services import MemoryFields, Source, book_get_or_create, book_writing, owner_for_user
from reviews.models import ReviewRun

BY_HAND = Source(actor="user:1", origin=WriteOrigin.USER)
REMEMBERS: dict[str, Any] = {
    "instructions": "You are terse.",
    "tools": [{"type": "memory"}],
    "inject_memories": True,
    "user_char_limit": 8000,
    "memory_char_limit": 20000,
}


def owner_make(name: str, **fields: Any) -> Owner:
    """Create a Django user with its owner row."""
    return owner_for_user(User.objects.create_user(name, password=f"{name} knows it", **fields))


def agent_make(name: str = "assistant", **settings: Any) -> Agent:
    """Create an agent, by default with memory tools and injection."""
    return agent_save(name, {**REMEMBERS, **settings})


def key_make(owner: Owner, **fields: Any) -> tuple[ApiKey, str]:
    """Create an API key; return it and its plain text."""
    return api_key_create(owner=owner, name="test", **fields)


def app_make(owner: Owner, *, name: str = "Claude", book: str = "main", read_only: bool = False) -> ApiKey:
    """Connect an app to a person's book."""
    client = client_register(name, ["https://claude.example/api/mcp/auth_callback"])
    return app_connect(owner, client, book=book, read_only=read_only, by=SYSTEM)


def login_make(owner: Owner) -> Login:
    """Create a signed-in browser's login; no client has its cookie."""
    store = SessionStore()
    store.create()
    return Login.objects.create(
        user_id=owner.user_id or 0, session_id=store.session_key or "", device="Firefox on Linux"
    )


def caller_make(owner: Owner) -> Caller:
    """Return the caller that a login of this owner resolves to."""
    return Caller(owner_id=owner.pk, actor=f"user:{owner.user_id}")


def session_make(owner: Owner, agent: Agent, **fields: Any) -> Session:
    """Create an empty session."""
    return session_create(owner, agent, **fields)


def memory_make(owner: Owner, content: str = "Likes tea.", *, book: str = "main", **fields: Any) -> Memory:
    """Create a memory that the owner wrote."""
    source = Source(actor=f"user:{owner.user_id}", origin=WriteOrigin.USER, kind=ChangeSet.Kind.EDIT)
    with book_writing(book_get_or_create(owner.pk, book), source) as writer:
        return writer.add(MemoryFields(content=content, **{"target": "user", **fields})).memory


def expired_make(owner: Owner, content: str = "On holiday until Monday.", **columns: str) -> Memory:
    """Create a memory that has just expired."""
    memory = memory_make(owner, content, expires_at=timezone.now() + timedelta(hours=1))
    Memory.objects.filter(pk=memory.pk).update(expires_at=timezone.now() - timedelta(seconds=1), **columns)
    return memory


def review_make(book: Book, state: str = "saved", **fields: Any) -> ReviewRun:
    """Create a review of a session's first turn, without writes."""
    values = {"trigger": "interval", "first_seq": 1, "last_seq": 2, "agent_name": "assistant", "book_epoch": 1}
    return ReviewRun.objects.create(owner=book.owner, book=book, state=state, **{**values, **fields})
