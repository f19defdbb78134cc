"""`manage.py apikey create | list | revoke`: API keys from the command line."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from gateway.keys import MAX_MONEY, api_key_create, api_key_revoke, names_given, names_listed, plain_keys, rate_words
from gateway.models import ApiKey
from memories.errors import DomainError
from memories.ids import parse_uuid
from memories.models import Owner
from memories.services import owner_for_user

_LIMITS = ("requests_per_minute", "tokens_per_day", "money_per_day", "streams_at_once")


class Command(BaseCommand):
    help = "Create, list and revoke API keys. A new key is printed once and not stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="create|list|revoke")
        create = verbs.add_parser("create", help="print a new key")
        create.add_argument("--user", required=True, help="name of the user the key belongs to")
        create.add_argument("--name", required=True, help="what the key is for")
        create.add_argument("--read-only", action="store_true", help="may read, but not write or chat")
        create.add_argument("--trusted", action="store_true", help="may name end users")
        create.add_argument("--agents", metavar="A,B", help="agents it may use (default: all)")
        create.add_argument("--books", metavar="A,B", help="books it may use (default: those of its agents)")
        create.add_argument("--requests-per-minute", type=int, default=0, metavar="N", help="0: no limit")
        create.add_argument("--tokens-per-day", type=int, default=0, metavar="N", help="0: no limit")
        create.add_argument("--money-per-day", type=float, default=0.0, metavar="X", help="0: no limit")
        create.add_argument("--streams-at-once", type=int, default=0, metavar="N", help="answers at once (0: no limit)")
        create.add_argument("--days", type=int, default=0, metavar="N", help="it expires after so many days (0: never)")
        listed = verbs.add_parser("list", help="list keys, newest first")
        listed.add_argument("--user", default="", help="only of this user")
        revoke = verbs.add_parser("revoke", help="revoke a key, at once and in every process")
        revoke.add_argument("key", help="its id, or its beginning (as listed)")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        try:
            {"create": self._create, "list": self._list, "revoke": self._revoke}[verb](options)
        except DomainError as error:
            raise CommandError(str(error)) from None

    def _create(self, options: dict[str, Any]) -> None:
        for name in _LIMITS:
            if not 0 <= options[name] <= MAX_MONEY:
                raise CommandError(f"--{name.replace('_', '-')} is a number from 0 to {MAX_MONEY}.")
        if not 0 <= options["days"] <= 36_500:
            raise CommandError("--days is a number from 0 to 36500.")
        if not (name := " ".join(options["name"].split())):
            raise CommandError("--name says what the key is for.")
        key, plain = api_key_create(
            owner=_owner(options["user"]),
            name=name,
            read_only=options["read_only"],
            trusted=options["trusted"],
            agents=_names(options, "agents"),
            books=_names(options, "books"),
            **{name: options[name] for name in _LIMITS},
            expires_at=timezone.now() + timedelta(days=options["days"]) if options["days"] else None,
        )
        self.stdout.write(plain)
        self.stderr.write(f"This is the key {key}. Copy it now: it is not shown again, and not stored.")

    def _list(self, options: dict[str, Any]) -> None:
        keys = plain_keys().select_related("owner__user").order_by("-created_at")
        if options["user"]:
            keys = keys.filter(owner=_owner(options["user"]))
        for key in keys:
            state = f"revoked {key.revoked_at:%Y-%m-%d}" if key.revoked_at else "valid"
            if key.expires_at:
                state += f" until {key.expires_at:%Y-%m-%d}"
            used = f"used {key.last_used_at:%Y-%m-%d}" if key.last_used_at else "never used"
            self.stdout.write(f"{key.pk}  {key.prefix}…  {key.owner}  {key.name}  {state}, {used}{_limits(key)}")

    def _revoke(self, options: dict[str, Any]) -> None:
        key = _key(options["key"])
        if key.revoked_at:
            raise CommandError(f"The key {key} was revoked already.")
        api_key_revoke(key)
        self.stdout.write(f"Revoked {key}.")


def _names(options: dict[str, Any], option: str) -> list[str]:
    """Return the names in an option, or none if it was not given. Raises CommandError for an option without names,
    which would not limit the key."""
    if options[option] is None:
        return []
    names = names_given(options[option])
    if not names:
        raise CommandError(f"--{option} names at least one. Leave it out for a key without that limit.")
    return names


def _limits(key: ApiKey) -> str:
    words = [
        "read-only" * key.read_only,
        "trusted" * key.trusted,
        f"agents {names_listed(key.agents)}" if key.agents else "",
        f"books {names_listed(key.books)}" if key.books else "",
        *rate_words(key),
        "several end users, no memory for them" if key.end_users_mixed_at else "",
    ]
    return "".join(f", {word}" for word in words if word)


def _owner(name: str) -> Owner:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"There is no user {name}.")
    return owner_for_user(user)


def _key(given: str) -> ApiKey:
    by_id = parse_uuid(given)
    keys = list(plain_keys().filter(**{"pk": by_id} if by_id else {"prefix": given.rstrip("…")})[:2])
    if not keys:
        raise CommandError(f"There is no key {given}; `apikey list` shows them.")
    if len(keys) > 1:
        raise CommandError(f"Several keys begin with {given}; give the id.")
    return keys[0]
