"""/api/keys: a person's own API keys. The plain text of a key is only in the answer that creates or rotates it.

Keys are managed with a login or with a key without limits, since a limited key could grant itself more. Only an
administrator lets a key act for end users (`trusted`), so a key without that right cannot change one that has it."""

from datetime import timedelta
from typing import Annotated, Any

from ninja import Router, Status
from pydantic import AfterValidator, AwareDatetime, Field, StringConstraints

from gateway import keys
from gateway.api import answers
from gateway.authentication import forget_keys
from gateway.models import ApiKey
from memories.api.answers import as_shape, documented, list_of
from memories.api.bodies import Body, BookName
from memories.api.operations import reading, without_fields, writing
from memories.audit.log import actor_of_caller
from memories.caller import ApiRequest, Caller
from memories.errors import Forbidden, NotFound
from memories.ids import parse_uuid
from memories.limits import LIST_LENGTH, PageSize, ShortText
from memories.models import Owner
from memories.pagination import DEFAULT_LIMIT, list_json
from scanning import is_blank

router = Router(tags=["Keys"])


def _visible(name: str) -> str:
    if is_blank(name):
        raise ValueError("a name needs a visible character")
    return name


_Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80), AfterValidator(_visible)]


class KeyIn(
    Body, json_schema_extra={"examples": [{"name": "my laptop", "agents": ["assistant"], "requests_per_minute": 60}]}
):
    name: _Name
    read_only: bool = False
    agents: list[ShortText] = Field([], max_length=LIST_LENGTH, description="Agents it may use; none: all.")
    books: list[BookName] = Field(
        [],
        max_length=LIST_LENGTH,
        description="Books it may use, and agents whose book is one of them; none: those of its agents, or all.",
    )
    requests_per_minute: int = Field(0, ge=0, le=1_000_000, description="0 = no limit.")
    tokens_per_day: int = Field(0, ge=0, le=10**15, description="Input and output, a UTC day; 0 = no limit.")
    money_per_day: float = Field(
        0.0, ge=0, le=keys.MAX_MONEY, allow_inf_nan=False, description="In the currency of the prices; 0 = no limit."
    )
    streams_at_once: int = Field(0, ge=0, le=100_000, description="Concurrent answers, streamed or not; 0 = no limit.")
    expires_at: AwareDatetime | None = Field(None, description="When the key expires.")


class KeyPatch(KeyIn, json_schema_extra={"examples": [{"name": "my old laptop"}]}):
    name: _Name = ""


class RotateIn(Body, json_schema_extra={"examples": [{"overlap_seconds": 3600}]}):
    overlap_seconds: Annotated[
        int, Field(ge=0, le=int(keys.MAX_OVERLAP.total_seconds()), description="How long the old key still works.")
    ] = 0


@router.get("/keys", response=list_of(answers.Key, "Keys, newest first."))
@reading
def key_list(request: ApiRequest, limit: PageSize = DEFAULT_LIMIT, after: ShortText | None = None) -> dict[str, Any]:
    """The person's keys, newest first; revoked ones too."""
    return list_json(_keys(request.auth), limit=limit, after=after, show=key_json)


@router.post("/keys", response={201: documented(answers.NewKey)})
@writing
def key_create(request: ApiRequest, body: KeyIn) -> Status[Any]:
    """Create a key. Its plain text, `key`, is only in this answer."""
    _keys(request.auth)
    owner = Owner.objects.get(pk=request.auth.owner_id)
    key, plain = keys.own_key_create(owner=owner, by=actor_of_caller(request.auth), **body.model_dump())
    return Status(201, key_json(key) | {"key": plain})


@router.get("/keys/{key_id}", response=documented(answers.Key))
@reading
def key_get(request: ApiRequest, key_id: str) -> dict[str, Any]:
    """One key."""
    return key_json(_key(request.auth, key_id))


@router.patch("/keys/{key_id}", response=documented(answers.Key))
@writing
def key_patch(request: ApiRequest, key_id: str, body: KeyPatch) -> dict[str, Any]:
    """Change a key's name or its limits. It may take a minute until every process applies the change."""
    key = _key(request.auth, key_id, to_change=True)
    keys.api_key_update(key, by=actor_of_caller(request.auth), **body.model_dump(exclude_unset=True))
    forget_keys()
    return key_json(key)


@router.delete("/keys/{key_id}", response={204: None})
@without_fields
@writing
def key_delete(request: ApiRequest, key_id: str) -> Status[Any]:
    """Revoke a key immediately, in every process."""
    keys.api_key_revoke(_key(request.auth, key_id), by=actor_of_caller(request.auth))
    forget_keys()
    return Status(204, None)


@router.post("/keys/{key_id}/rotate", response=documented(answers.NewKey))
@writing
def key_rotate(request: ApiRequest, key_id: str, body: RotateIn | None = None) -> dict[str, Any]:
    """Replace the plain text of a key. The new one is only in this answer; the old one works for `overlap_seconds`."""
    key = _key(request.auth, key_id, to_change=True)
    overlap = timedelta(seconds=body.overlap_seconds if body else 0)
    plain = keys.api_key_rotate(key, overlap=overlap, by=actor_of_caller(request.auth))
    forget_keys()
    return key_json(key) | {"key": plain}


def key_json(key: ApiKey) -> dict[str, Any]:
    return as_shape(answers.Key, key, object="key")


def _keys(caller: Caller) -> Any:
    """Return the caller's keys. Raises Forbidden if the caller uses a limited key."""
    if caller.key_id:
        own = ApiKey.objects.filter(pk=caller.key_id, owner_id=caller.owner_id).first()
        if own is None or own.read_only or own.agents or own.books or own.expires_at or keys.rate_words(own):
            raise Forbidden("Keys are managed with a login, or with a key without limits.")
    return keys.plain_keys().filter(owner_id=caller.owner_id)


def _key(caller: Caller, key_id: str, *, to_change: bool = False) -> ApiKey:
    """Return one of the caller's keys. `to_change` raises Forbidden if the key is trusted and the caller's is not,
    which could otherwise take it over by rotating it."""
    number = parse_uuid(key_id)
    key: ApiKey | None = _keys(caller).select_related("owner").filter(pk=number).first() if number else None
    if key is None:
        raise NotFound("There is no such key.")
    if to_change and key.trusted and caller.key_id and not caller.trusted:
        raise Forbidden("A key that may name end users can only be changed with a login, or with such a key.")
    return key
