"""Creates, finds, changes, rotates and revokes API keys. A key is 256 random bits; only its SHA-256 is stored."""

import csv
import hashlib
import secrets
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TypedDict, Unpack
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from gateway.models import Agent, ApiKey
from gateway.sockets import recheck_logins
from gateway.webhooks.services import webhook_warnings
from memories.audit.log import SYSTEM, Action, Actor, audit_record
from memories.bidi import isolated
from memories.caller import Caller, KeyLimits, check_book_name
from memories.database.statements import Given, Select
from memories.entry_rules import clean_moment
from memories.errors import Conflict, InvalidRequest
from memories.health import WARNING, Facts
from memories.models import Book, Owner
from memories.services import WriteRequired

PREFIX = "dbk_"
MAX_KEYS = 50  # valid keys that a person may create without an administrator
MAX_MONEY = 10**9  # maximum per day; somebody who enters more means no limit
MAX_OVERLAP = timedelta(days=7)
_KIND = "API key"
CONNECTION = "connected app"  # the audit log's name for a key with a client


class KeyRights(TypedDict, total=False):
    """The name of a key, its rights and limits, and its expiry."""

    name: str
    read_only: bool
    trusted: bool
    agents: Sequence[str]
    books: Sequence[str]
    requests_per_minute: int
    tokens_per_day: int
    money_per_day: float
    streams_at_once: int
    expires_at: datetime | None


@transaction.atomic
def api_key_create(
    *, owner: Owner, plain: str | None = None, by: Actor = SYSTEM, **rights: Unpack[KeyRights]
) -> tuple[ApiKey, str]:
    """Create a key on behalf of `by`, and return it with its plain text, which is not stored. `plain` is given for the
    key of the first start.

    Raises InvalidRequest for an unknown agent, an invalid book name, an expiry in the past, an owner without a user, or
    a `plain` that is not a key."""
    if owner.user_id is None:
        raise InvalidRequest("A key belongs to a user; a trusted key names its end users.", param="owner")
    plain = plain or _new_plain()
    if not plain.startswith(PREFIX) or len(plain) < 24:
        raise InvalidRequest(f"A key starts with {PREFIX} and has at least 24 characters.")
    key = ApiKey(owner=owner, prefix=plain[:8], sha256=key_hash(plain))
    _give_rights(key, rights)
    key.save(force_insert=True)
    audit_record(Action.KEY_CREATE, actor=by, kind=_KIND, object_id=key.pk, owner=owner)
    return key, plain


@transaction.atomic
def own_key_create(*, owner: Owner, by: Actor, **rights: Unpack[KeyRights]) -> tuple[ApiKey, str]:
    """Create a key that a person requests for themselves. Raises Conflict if they have MAX_KEYS, and what
    `api_key_create` raises."""
    Owner.objects.select_for_update().get(pk=owner.pk)  # so that concurrent requests keep to the limit
    if plain_keys().filter(owner=owner, revoked_at__isnull=True).count() >= MAX_KEYS:
        raise Conflict(f"You have {MAX_KEYS} keys. Revoke one first.", limit=MAX_KEYS)
    return api_key_create(owner=owner, by=by, **rights)


@transaction.atomic
def api_key_update(key: ApiKey, *, by: Actor = SYSTEM, **rights: Unpack[KeyRights]) -> None:
    """Change the rights of a key. Processes that have it in their cache notice the change within a minute. Raises
    InvalidRequest for an unknown agent or an expiry in the past, and Conflict for a revoked key."""
    _lock_valid(key)
    _give_rights(key, rights)
    key.save(update_fields=list(rights))
    audit_record(Action.KEY_CHANGE, actor=by, kind=_KIND, object_id=key.pk, owner=key.owner)
    recheck_logins(key.owner_id)


@transaction.atomic
def api_key_rotate(key: ApiKey, *, overlap: timedelta = timedelta(), by: Actor = SYSTEM) -> str:
    """Give a key a new plain text and return it; the old one remains valid for `overlap`. Rights, end users and limits
    do not change. Raises InvalidRequest for an overlap of more than a week, and Conflict for a revoked key."""
    _lock_valid(key)
    if not timedelta() <= overlap <= MAX_OVERLAP:
        raise InvalidRequest("The old key can stay valid for a week at most.", param="overlap_seconds")
    plain = _new_plain()
    key.previous_sha256, key.previous_until = (key.sha256, timezone.now() + overlap) if overlap else ("", None)
    key.sha256, key.prefix = key_hash(plain), plain[:8]
    key.save(update_fields=["sha256", "prefix", "previous_sha256", "previous_until"])
    audit_record(Action.KEY_CHANGE, actor=by, kind=_KIND, object_id=key.pk, owner=key.owner, note="It was rotated.")
    recheck_logins(key.owner_id)
    return plain


def names_given(text: str) -> list[str]:
    """Return the names in a text in which commas separate them. A name with a comma is in quotation marks."""
    return [
        name.strip() for row in csv.reader(text.splitlines(), skipinitialspace=True) for name in row if name.strip()
    ]


def names_listed(names: Iterable[str]) -> str:
    """Return names as a text that names_given reads."""
    return ", ".join('"{}"'.format(name.replace('"', '""')) if {",", '"'} & set(name) else name for name in names)


def _new_plain() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def _give_rights(key: ApiKey, rights: KeyRights) -> None:
    agents = rights.get("agents", ())
    if unknown := sorted(set(agents) - set(Agent.objects.filter(name__in=agents).values_list("name", flat=True))):
        raise InvalidRequest(f"There is no agent {', '.join(unknown)}.", param="agents")
    for book in rights.get("books", ()):
        check_book_name(book, param="books")
    if end := clean_moment(rights.get("expires_at"), "A key ends between", "expires_at"):
        if end <= timezone.now():
            raise InvalidRequest("A key cannot end in the past.", param="expires_at")
        rights = {**rights, "expires_at": end}
    for name, value in rights.items():
        setattr(key, name, value)
    key.agents, key.books = (list(dict.fromkeys(names)) for names in (key.agents, key.books))
    key.name = key.name[:80]


def _lock_valid(key: ApiKey) -> None:
    """Lock the key's row and read it again. Raises Conflict for a revoked key."""
    key.refresh_from_db(from_queryset=ApiKey.objects.select_for_update())
    if key.revoked_at:
        raise Conflict("This key was revoked. Create another one.")


@transaction.atomic
def api_key_revoke(key: ApiKey, *, by: Actor = SYSTEM) -> None:
    """Revoke a key; it remains listed for a while. No process accepts it after this commit."""
    if ApiKey.objects.filter(pk=key.pk, revoked_at__isnull=True).update(revoked_at=timezone.now()):
        kind = CONNECTION if key.client_id else _KIND
        audit_record(Action.KEY_REVOKE, actor=by, kind=kind, object_id=key.pk, owner=key.owner)
    recheck_logins(key.owner_id)


def plain_keys() -> QuerySet[ApiKey]:
    """Return the keys of people and programs, without those of connected apps."""
    return ApiKey.objects.filter(client=None)


def valid_keys() -> QuerySet[ApiKey]:
    """Return the valid keys: not revoked, not expired, and of an active user."""
    return _valid_at(timezone.now())


def _valid_at(now: datetime | Given) -> QuerySet[ApiKey]:
    lasting = Q(expires_at=None) | Q(expires_at__gt=now)
    return ApiKey.objects.filter(lasting, revoked_at__isnull=True, owner__user__is_active=True)


def _has_hash(sha256: str | Given, now: datetime | Given) -> Q:
    """Return the condition for keys with this hash, which may be that from before a rotation."""
    return Q(sha256=sha256) | Q(previous_sha256=sha256, previous_until__gt=now)


# Used by every request except those that open a turn.
_now, _sha256 = Given("now", ApiKey, "expires_at"), Given("sha256", ApiKey, "sha256")
_BY_HASH = Select(lambda: _valid_at(_now).filter(_has_hash(_sha256, _now)).order_by("pk")[:1])


def key_find(sha256: str) -> ApiKey | None:
    """Return the valid key with this hash, which may be that from before a rotation."""
    return _BY_HASH.instance(now=timezone.now(), sha256=sha256)


def keys_of(caller: Caller) -> QuerySet[ApiKey]:
    """Return a queryset with the caller's key, if it is still valid with the plain text that was sent. No query."""
    if caller.key_id is None:
        return ApiKey.objects.none()
    now = timezone.now()
    rows = _valid_at(now).filter(pk=caller.key_id)
    return rows.filter(_has_hash(caller.key_sha256, now)) if caller.key_sha256 else rows


def sent_key() -> QuerySet[ApiKey]:
    """Return a queryset for a statement: the key with the id `key`, if valid at `now` and with the hash `sha256`."""
    return _valid_at(_now).filter(_has_hash(_sha256, _now), pk=Given("key", ApiKey, "pk"))


def key_limits(key: ApiKey) -> KeyLimits:
    """Return the books and agents that a key may use. A key with books may use its agents that currently have one of
    them; a key without books may use the books of its agents. A connected app has a book and no agent. One query for a
    limited key, otherwise none."""
    if key.client_id:
        return KeyLimits(books=tuple(key.books))
    if not (key.agents or key.books):
        return KeyLimits()
    agents = Agent.objects.filter(**({"name__in": key.agents} if key.agents else {"book__in": key.books}))
    book_of = dict(agents.order_by("name").values_list("name", "book"))
    if not key.books:
        books = dict.fromkeys(book_of[name] for name in key.agents if name in book_of)
        return KeyLimits(tuple(key.agents), tuple(books))
    allowed = (name for name in key.agents or book_of if book_of.get(name) in key.books)
    return KeyLimits(tuple(allowed), tuple(key.books))


def rate_words(key: ApiKey) -> list[str]:
    """Return a phrase for each limit of a key that is set."""
    limits = (
        (key.requests_per_minute, f"{key.requests_per_minute} requests a minute"),
        (key.tokens_per_day, f"{key.tokens_per_day} tokens a day"),
        (key.money_per_day, f"{key.money_per_day:.12g} a day in money"),
        (key.streams_at_once, f"{key.streams_at_once} answers at once"),
    )
    return [words for limit, words in limits if limit]


def end_user_record(key: ApiKey, namespace: str, external_id: str, *, write: bool = True) -> bool:
    """Record the end user of an untrusted key. Return True once the key was used for two, whose memories must not be
    merged. Without `write`, raise WriteRequired if there is something to record."""
    if key.end_users_mixed_at:
        return True
    seen = hashlib.sha256(f"{namespace} {external_id}".encode()).hexdigest()
    if key.end_user_seen == seen:
        return False
    if not write:
        raise WriteRequired
    rows = ApiKey.objects.filter(pk=key.pk)
    if not key.end_user_seen and rows.filter(end_user_seen="").update(end_user_seen=seen) == 1:
        return False
    # It is a second end user, or another request recorded the first one at the same time.
    return rows.exclude(end_user_seen=seen).update(end_users_mixed_at=timezone.now()) == 1


def key_warnings(owner_id: UUID) -> list[str]:
    """Return a line for each key of an owner that several people share."""
    mixed = ApiKey.objects.filter(owner_id=owner_id, revoked_at__isnull=True, end_users_mixed_at__isnull=False)
    return [
        f"The API key {key} was used for several end users and is not trusted to name them; they get no memory."
        for key in mixed.order_by("created_at")
    ]


def key_facts(books: Sequence[Book], now: datetime) -> dict[UUID, Facts]:
    """Return the warnings about keys and webhooks for memories.health; they are the same for each book of an owner."""
    owner_id = books[0].owner_id
    warnings = [*key_warnings(owner_id), *webhook_warnings(owner_id)]
    sentences = tuple((WARNING, warning) for warning in warnings)
    facts = Facts(figures={"warnings": warnings}, sentences=sentences, of_owner=True)
    return {book.pk: facts for book in books}


def key_names(keys: Collection[UUID]) -> dict[UUID, str]:
    """Return a label for each key, with its owner, for memories.history.provenance. One query."""
    rows = ApiKey.objects.filter(pk__in=keys).select_related("owner__user")
    return {key.pk: f"{key.owner}'s key “{isolated(key.name)}”" for key in rows}


def key_hash(plain: str) -> str:
    """Return the hash by which a key is stored and found, and under which the library stores tokens of OAuth apps. 256
    random bits need no slow hash."""
    return hashlib.sha256(plain.encode()).hexdigest()
