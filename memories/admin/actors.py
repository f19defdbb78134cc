"""Names of the actors of writes, which are stored as `user:1`, `key:…` or `model`."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from memories.history.provenance import key_names
from memories.ids import parse_uuid
from memories.models import WriteOrigin

# What the model worked for, by the origin of the write.
_MODEL_WRITERS = {WriteOrigin.BACKGROUND_REVIEW: "A review", WriteOrigin.CONSOLIDATION: "Consolidation"}


def actor_names(actors: Iterable[str]) -> dict[str, str]:
    """Return the names of people and keys by actor, with placeholders for deleted ones. At most two queries; none if
    only models and the system wrote."""
    named = {actor: actor.partition(":") for actor in actors if ":" in actor}
    users = _user_names({key for kind, _, key in named.values() if kind != "key"})
    keys = key_names({id for kind, _, key in named.values() if kind == "key" and (id := parse_uuid(key))})
    return {actor: _name(kind, key, users, keys) for actor, (kind, _, key) in named.items()}


def actor_words(actor: str, origin: str, names: Mapping[str, str]) -> str:
    """Return the author of a write, capitalised to begin a sentence; `names` comes from actor_names."""
    if actor == "model":
        return _MODEL_WRITERS.get(WriteOrigin(origin), "The agent")
    return "Daybook" if actor == "system" else names.get(actor, actor)


def actors_add(rows: Iterable[Any]) -> None:
    """Set `actor_words` on rows that have an `actor` and a `write_origin`. At most two queries."""
    listed = list(rows)
    names = actor_names(row.actor for row in listed)
    for row in listed:
        row.actor_words = actor_words(row.actor, row.write_origin, names)


def actors_named(name: str) -> list[str]:
    """Return the actors of the account with that name; a text that is an actor already is returned itself. At most one
    query."""
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
        id = parse_uuid(key)
        return keys.get(id, "A deleted key") if id else "A deleted key"
    name = users.get(key)
    if name is None:
        return "A deleted account"
    return f"Administrator {name}" if kind == "staff" else name
