"""People of an OpenID provider: found by the provider's id of a person, linked to an account by a verified mail
address, or created. Their groups determine their role."""

import re
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from gateway.accounts.logins import logins_end, logins_of
from gateway.accounts.roles import USER, role_give, role_of
from gateway.accounts.settings import ROLES
from gateway.keys import api_key_revoke
from gateway.models import ApiKey, Identity
from gateway.oauth.connections import app_disconnect
from gateway.sockets import recheck_logins
from memories.audit.log import SYSTEM, Action, audit_record
from memories.errors import Forbidden
from memories.models import Owner
from memories.services import owner_for_user

NAME_LENGTH = 150  # of an account
_MOST_ALIKE = 100  # accounts whose addresses are compared
_NOT_IN_NAMES = re.compile(r"[^\w.@+-]+")
_OFF = "This account is switched off. Ask an administrator."
_NOT_IN_GROUP = "You are not in a group that may use Daybook. Ask an administrator."


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person as the provider describes them. `email` is empty unless the provider has verified it."""

    issuer: str
    subject: str
    name: str = ""
    email: str = ""
    first_name: str = ""
    last_name: str = ""
    groups: frozenset[str] = frozenset()


def person_sign_in(person: Person, roles: dict[str, str]) -> User:
    """Return the active user of a person, with the role of their groups; the user is created at the first sign-in.
    Raises Forbidden for a deactivated account, and for a person in no configured group if a group is required."""
    role = role_of_groups(person.groups, roles)
    try:
        with transaction.atomic():
            user = _user_of(person)
    except IntegrityError:  # the person's first sign-in happened in two windows at once
        with transaction.atomic():
            user = _user_of(person)
    if not user.is_active:
        raise Forbidden(_OFF)
    if role:
        _give_role(user, role)
    return user


def role_of_groups(groups: frozenset[str], roles: dict[str, str]) -> str:
    """Return the highest role of these groups; "" if no groups are configured. Somebody in none of them is a user,
    unless a group is configured for users: then Forbidden is raised."""
    if not roles:
        return ""
    given = [roles[group] for group in groups if group in roles]
    if not given and USER in roles.values():
        raise Forbidden(_NOT_IN_GROUP)
    return max(given, key=ROLES.index, default=USER)


@transaction.atomic
def _give_role(user: User, role: str) -> None:
    rises = ROLES.index(role) > ROLES.index(role_of(user))
    if not role_give(user, role):
        return
    owner = owner_for_user(user)
    note = f"To {role}, as single sign-on says."
    audit_record(Action.ROLE_CHANGE, actor=SYSTEM, kind="user", object_id=user.pk, owner=owner, note=note)
    if rises and user.has_usable_password():
        _end_former_access(user)


def _end_former_access(user: User) -> None:
    """Take away an account's password, logins, keys and connected apps: somebody of the staff may have set the password
    before the account was this person's, or before it had a role."""
    owner = owner_for_user(user)
    if user.has_usable_password():
        _end_password(user, owner)
    for key in ApiKey.objects.filter(owner=owner, revoked_at=None).select_related("owner").order_by("pk"):
        if key.client_id:
            app_disconnect(key, by=SYSTEM)
        else:
            api_key_revoke(key, by=SYSTEM)


def _end_password(user: User, owner: Owner) -> None:
    user.set_unusable_password()
    user.save(update_fields=["password"])
    note = "Taken away, as single sign-on is used."
    audit_record(Action.PASSWORD_CHANGE, actor=SYSTEM, kind="user", object_id=user.pk, owner=owner, note=note)
    logins_end(user, logins_of(user), by=SYSTEM)
    recheck_logins(owner.pk)


def _user_of(person: Person) -> User:
    known = Identity.objects.filter(issuer=person.issuer, subject=person.subject).select_related("user").first()
    if known is not None:
        return known.user
    user = _by_email(person)
    if user is None:
        user = _new_user(person)
    elif not user.is_superuser:  # only administrators set their passwords, which let them in if the provider is away
        _end_former_access(user)
    Identity.objects.create(user=user, issuer=person.issuer, subject=person.subject)
    owner = owner_for_user(user)
    audit_record(Action.IDENTITY_LINK, actor=SYSTEM, kind="user", object_id=user.pk, owner=owner)
    return user


def _by_email(person: Person) -> User | None:
    """Return the only account with this verified address. An account that the provider knows under another id belongs
    to a previous holder of the address. Raises Forbidden for a deactivated account."""
    if not person.email:
        return None
    alike = User.objects.filter(email__iexact=person.email).exclude(identities__issuer=person.issuer)[:_MOST_ALIKE]
    # PostgreSQL takes letters of other alphabets for ASCII ones; bytes.lower does not.
    found = [user for user in alike if user.email.encode().lower() == person.email.encode().lower()]
    if len(found) != 1:
        return None
    if not found[0].is_active:
        raise Forbidden(_OFF)
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
    """Return a name that no account has: the provider's name of the person, with a number if it is taken."""
    given = person.name or person.email.partition("@")[0]
    base = _NOT_IN_NAMES.sub("-", given).strip("-.")[: NAME_LENGTH - 10] or "person"
    taken = set(User.objects.filter(username__istartswith=base).values_list("username", flat=True)[:10_000])
    lower = {name.lower() for name in taken}
    number, name = 1, base
    while name.lower() in lower:
        number += 1
        name = f"{base}-{number}"
    return name
