"""Names for the actors of writes: the column holds `user:1`, `key:…` or `model`, and administrators see a name."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from memories.history.provenance import key_names
from memories.ids import parse_uuid
from memories.models import WriteOrigin

# Who the model of a write worked for, by the write's origin.
_MODELS = {WriteOrigin.BACKGROUND_REVIEW: "A review", WriteOrigin.CONSOLIDATION: "Consolidation"}


def actor_names(actors: Iterable[str]) -> dict[str, str]:
    """Return the names of people and keys, by actor. Accounts and keys that are gone are named as such. Two queries at
    most; none where only models and the system wrote."""
    named = {actor: actor.partition(":") for actor in actors if ":" in actor}
    users = _user_names({key for kind, _, key in named.values() if kind != "key"})
    keys = key_names({found for kind, _, key in named.values() if kind == "key" and (found := parse_uuid(key))})
    return {actor: _name(kind, key, users, keys) for actor, (kind, _, key) in named.items()}


def actor_words(actor: str, origin: str, names: Mapping[str, str]) -> str:
    """Return who wrote, to begin a sentence with; `names` come from actor_names."""
    if actor == "model":
        return _MODELS.get(WriteOrigin(origin), "The agent")
    return "Daybook" if actor == "system" else names.get(actor, actor)


def actors_add(rows: Iterable[Any]) -> None:
    """Set `actor_words` of rows that have an `actor` and a `write_origin`. Two queries at most."""
    listed = list(rows)
    names = actor_names(row.actor for row in listed)
    for row in listed:
        row.actor_words = actor_words(row.actor, row.write_origin, names)


def actors_named(name: str) -> list[str]:
    """Return the actors that somebody typed: those of an account by its name, else the text itself. One query, none
    for what is an actor already."""
    if ":" in name or name in {"model", "system"}:
        return [name]
    keys = User.objects.filter(username=name).values_list("pk", flat=True)
    return [f"{kind}:{key}" for key in keys for kind in ("user", "staff")]


def _user_names(keys: Iterable[str]) -> dict[str, str]:
    ids = [int(key) for key in keys if key.isdecimal() and len(key) < 19]
    if not ids:
        return {}
    return {str(pk): name for pk, name in User.objects.filter(pk__in=ids).values_list("pk", "username")}


def _name(kind: str, key: str, users: Mapping[str, str], keys: Mapping[UUID, str]) -> str:
    if kind == "key":
        found = parse_uuid(key)
        return keys.get(found, "A deleted key") if found else "A deleted key"
    name = users.get(key)
    if name is None:
        return "A deleted account"
    return f"Administrator {name}" if kind == "staff" else name
