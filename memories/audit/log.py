"""The audit log: who viewed or changed which objects of whom, and when. The functions here are its only writers, and
`audit_purge` is the only way to delete entries, which must be old.
Entries identify accounts and objects by name, kind and id, and never contain text that people wrote: no titles, no
memories. The outermost middleware sets the origin of a request."""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypedDict, Unpack

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from memories.audit.triggers import create_statements, drop_statements
from memories.caller import Caller
from memories.errors import InvalidRequest
from memories.models import AuditEntry, Owner

Action = AuditEntry.Action
KIND = "audit entry"  # the kind of the log's own entries
_ACCOUNT = "user"
SAME_LIST = "In the same list."  # the note of further entries of a list that shows rows of several people
RETENTION_DAYS = 30  # newer entries cannot be purged
_PURGE_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Actor:
    """An account in the log: its name, and `user:ID`, `key:ID` or `system`."""

    name: str
    id: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a request came from."""

    address: str = ""
    request_id: str = ""


SYSTEM = Actor("system", "system")
NOBODY = Actor("", "")
origin: ContextVar[Origin] = ContextVar("audit_origin", default=Origin())  # noqa: B039 - frozen


def actor_of(user: AbstractBaseUser | AnonymousUser | None) -> Actor:
    """Return the actor for a user, or NOBODY if not signed in."""
    return Actor(user.get_username(), f"user:{user.pk}") if user is not None and user.pk else NOBODY


def actor_of_caller(caller: Caller) -> Actor:
    """Return the actor of an API request: the owner's name, with the key or login that was used. One query."""
    owner = Owner.objects.select_related("user").get(pk=caller.owner_id)
    return Actor(str(owner), caller.actor)


class About(TypedDict, total=False):
    """The fields of an entry about its object. `note` is a sentence without text that people wrote."""

    kind: str
    object_id: object
    owner: Owner | None
    count: int
    note: str


def audit_record(action: Action, *, actor: Actor, **about: Unpack[About]) -> AuditEntry:
    """Add an entry, in the caller's transaction."""
    entry = audit_entry(action, actor=actor, **about)
    entry.save()
    return entry


def audit_record_own(action: Action, caller: Caller, **about: Unpack[About]) -> None:
    """Add an entry for an action of an owner, by login or key, on an object of their own."""
    about["owner"] = owner = Owner.objects.select_related("user").get(pk=caller.owner_id)
    audit_record(action, actor=Actor(str(owner), caller.actor), **about)


def audit_record_each(entries: Sequence[AuditEntry]) -> None:
    """Add several entries with one statement."""
    AuditEntry.objects.bulk_create(entries)


def audit_entry(action: Action, *, actor: Actor, **about: Unpack[About]) -> AuditEntry:
    """Return an unsaved entry."""
    where, owner = origin.get(), about.get("owner")
    return AuditEntry(
        action=action,
        actor=actor.name[:255],
        actor_id=actor.id[:80],
        kind=about.get("kind", "")[:64],
        object_id=str(about.get("object_id", ""))[:80],
        owner=str(owner)[:255] if owner else "",
        owner_id=str(owner.pk) if owner else "",
        count=about.get("count", 1),
        note=about.get("note", "")[:200],
        address=where.address[:64],
        request_id=where.request_id[:64],
    )


def audit_sentence(entry: AuditEntry) -> str:
    """Return an entry as a sentence: `bob opened memory 0199… of alice.`"""
    counted = entry.count != 1 or entry.action == Action.LIST
    what = f"{entry.count} × {entry.kind}" if counted else entry.kind
    what = f"{what} {entry.object_id}".strip()
    if entry.kind == _ACCOUNT and entry.owner:
        joined = ["as"] if entry.action in {Action.SIGN_IN_FAILED, Action.SIGN_IN_REFUSED} else []
        whom = [*joined, f"{entry.owner} ({what})"]
    else:
        whom = [what, f"of {entry.owner}" if entry.owner else ""]
    parts = [entry.actor or "Somebody", Action(entry.action).label, *whom]
    return " ".join(part for part in parts if part) + "." + (f" {entry.note}" if entry.note else "")


def audit_entries(*, actor: str = "", owner: str = "", action: str = "") -> "QuerySet[AuditEntry]":
    """Return the entries with these values, unordered."""
    given = {"actor": actor, "owner": owner, "action": action}
    return AuditEntry.objects.filter(**{name: value for name, value in given.items() if value})


def audit_purgeable(before: datetime) -> "QuerySet[AuditEntry]":
    """Return the entries from before a time that a purge deletes: all except records of purges.

    Raises InvalidRequest if that would delete entries of the last RETENTION_DAYS days."""
    if before > timezone.now() - timedelta(days=RETENTION_DAYS):
        raise InvalidRequest(f"Entries of the last {RETENTION_DAYS} days are kept.", param="before")
    rows: QuerySet[AuditEntry] = QuerySet(AuditEntry)  # the model's own manager refuses to delete
    return rows.filter(at__lt=before).exclude(action=Action.PURGE)


def audit_purge(before: datetime, *, actor: Actor) -> int:
    """Delete the entries from before a time, record this, and return their number.

    The triggers are dropped only within the transaction of each batch, which is invisible to others. Raises
    InvalidRequest as audit_purgeable does."""
    rows = audit_purgeable(before)
    count = rows.count()
    if count:
        # First, so that an interrupted purge is recorded as well.
        audit_record(Action.PURGE, actor=actor, kind=KIND, count=count, note=f"Older than {before.isoformat()}.")
    deleted = 0
    while batch := list(rows.order_by("pk").values_list("pk", flat=True)[:_PURGE_BATCH]):
        with transaction.atomic(), connection.cursor() as cursor:
            for statement in drop_statements(connection.vendor):
                cursor.execute(statement)
            deleted += rows.filter(pk__in=batch).delete()[0]
            for statement in create_statements(connection.vendor):
                cursor.execute(statement)
    return deleted
