"""Maps people of an OpenID provider to users: by the provider's subject id, by a verified mail address, or by creating
an account. Their groups determine their role."""

import re
from contextlib import suppress
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from gateway.accounts.logins import logins_end, logins_of
from gateway.accounts.roles import USER, role_of, role_set
from gateway.accounts.settings import ROLES
from gateway.keys import api_key_revoke
from gateway.models import ApiKey, Identity, Webhook
from gateway.oauth.connections import app_disconnect
from gateway.sockets import recheck_logins
from gateway.webhooks.services import webhook_delete
from memories.audit.log import SYSTEM, Action, audit_record
from memories.errors import Forbidden
from memories.services import owner_for_user

NAME_LENGTH = 150  # of a username
_RETRIES = 10
_MAX_CANDIDATES = 100  # accounts with a similar address that are compared
_NOT_IN_NAMES = re.compile(r"[^\w.@+-]+")
_DEACTIVATED = "This account is deactivated. Ask an administrator."
_NOT_IN_GROUP = "You are not in a group that may use Daybook. Ask an administrator."


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person as described by the provider. `email` is empty unless the provider has verified it."""

    issuer: str
    subject: str
    name: str = ""
    email: str = ""
    first_name: str = ""
    last_name: str = ""
    groups: frozenset[str] = frozenset()


def person_sign_in(person: Person, roles: dict[str, str]) -> User:
    """Return the active user of a person, with the role of their groups. The first sign-in creates the user. Raises
    Forbidden if the account is deactivated, or if a group is required and the person is in none."""
    role = role_of_groups(person.groups, roles)
    user = _user_of(person)
    if not user.is_active:
        raise Forbidden(_DEACTIVATED)
    if role:
        _assign_role(user, role)
    return user


def role_of_groups(groups: frozenset[str], roles: dict[str, str]) -> str:
    """Return the highest role of these groups, or "" if no groups are configured. Without a configured group the role
    is USER, unless USER itself requires a group: then Forbidden is raised."""
    if not roles:
        return ""
    found = [roles[group] for group in groups if group in roles]
    if not found and USER in roles.values():
        raise Forbidden(_NOT_IN_GROUP)
    return max(found, key=ROLES.index, default=USER)


@transaction.atomic
def _assign_role(user: User, role: str) -> None:
    promoted = ROLES.index(role) > ROLES.index(role_of(user))
    if not role_set(user, role):
        return
    owner = owner_for_user(user)
    note = f"To {role}, as single sign-on says."
    audit_record(Action.ROLE_CHANGE, actor=SYSTEM, kind="user", object_id=user.pk, owner=owner, note=note)
    if promoted:
        _revoke_former_access(user)


def _revoke_former_access(user: User) -> None:
    """Remove an account's password, logins, keys, connected apps and webhooks, since a staff member may have set the
    password or created keys before the account belonged to this person, or before it had its role."""
    owner = owner_for_user(user)
    if user.has_usable_password():
        user.set_unusable_password()
        user.save(update_fields=["password"])
        note = "Taken away, as single sign-on is used."
        audit_record(Action.PASSWORD_CHANGE, actor=SYSTEM, kind="user", object_id=user.pk, owner=owner, note=note)
        logins_end(user, logins_of(user), by=SYSTEM)
        recheck_logins(owner.pk)
    for key in ApiKey.objects.filter(owner=owner, revoked_at=None).select_related("owner").order_by("pk"):
        if key.client_id:
            app_disconnect(key, by=SYSTEM)
        else:
            api_key_revoke(key, by=SYSTEM)
    for webhook in Webhook.objects.filter(owner=owner).order_by("pk"):
        webhook_delete(owner.pk, webhook.pk, by=SYSTEM)


def _user_of(person: Person) -> User:
    """Return the user of a person. Of concurrent first sign-ins, of one person or of several with the same name, one
    succeeds at a time."""
    for _ in range(_RETRIES):
        with suppress(IntegrityError), transaction.atomic():
            return _known_or_new(person)
    with transaction.atomic():
        return _known_or_new(person)


def _known_or_new(person: Person) -> User:
    known = Identity.objects.filter(issuer=person.issuer, subject=person.subject).select_related("user").first()
    if known is not None:
        return known.user
    user = _by_email(person)
    if user is None:
        user = _new_user(person)
    elif not user.is_superuser:  # administrators keep theirs: only they can set it, and it works without the provider
        _revoke_former_access(user)
    Identity.objects.create(user=user, issuer=person.issuer, subject=person.subject)
    owner = owner_for_user(user)
    audit_record(Action.IDENTITY_LINK, actor=SYSTEM, kind="user", object_id=user.pk, owner=owner)
    return user


def _by_email(person: Person) -> User | None:
    """Return the only account with this verified address, or None. An account that is linked to another subject of the
    provider belongs to a previous holder of the address. Raises Forbidden if the account is deactivated."""
    if not person.email:
        return None
    similar = User.objects.filter(email__iexact=person.email).exclude(identities__issuer=person.issuer)
    # PostgreSQL may fold non-ASCII letters to ASCII ones; bytes.lower() does not.
    email = person.email.encode().lower()
    found = [user for user in similar[:_MAX_CANDIDATES] if user.email.encode().lower() == email]
    if len(found) != 1:
        return None
    if not found[0].is_active:
        raise Forbidden(_DEACTIVATED)
    return found[0]


def _new_user(person: Person) -> User:
    taken = bool(person.email) and User.objects.filter(email__iexact=person.email).exists()
    user = User(
        username=_free_name(person),
        email="" if taken else person.email[:254],
        first_name=person.first_name[:150],
        last_name=person.last_name[:150],
    )
    user.set_unusable_password()
    user.save(force_insert=True)
    return user


def _free_name(person: Person) -> str:
    """Return an unused username: the provider's name of the person, with a number if it is taken."""
    # As forms do, or "ａlice" would be another name than "alice".
    preferred = User.normalize_username(person.name or person.email.partition("@")[0])
    base = _NOT_IN_NAMES.sub("-", preferred).strip("-.")[: NAME_LENGTH - 10] or "person"
    similar = User.objects.filter(username__istartswith=base).values_list("username", flat=True)[:10_000]
    taken = {name.lower() for name in similar}
    number, name = 1, base
    while name.lower() in taken:
        number += 1
        name = f"{base}-{number}"
    return name
