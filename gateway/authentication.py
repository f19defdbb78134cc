"""Authenticates requests by API key, by access token or, for the native API, by session cookie with CSRF. Returns a
Caller with an owner; the layers below do not know Django users."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
from django.utils import timezone
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from gateway.keys import end_user_record, key_find, key_hash, key_limits
from gateway.limits.allowances import record_tokens_left
from gateway.limits.key_uses import record_key_use
from gateway.limits.rates import count_request
from gateway.models import ApiKey
from gateway.oauth.connections import token_find
from gateway.oauth.tokens import WRITE
from memories.caller import ApiRequest, Caller, SpendingLimits
from memories.database.access import in_read_thread, in_thread, working_for
from memories.errors import Forbidden, InvalidRequest, Unauthorized, UnsupportedMediaType
from memories.imports.formats import IMPORT_TYPES
from memories.services import WriteRequired, owner_for_end_user, owner_for_user

END_USER_HEADERS = {"x-daybook-user": "daybook", "x-openwebui-user-id": "openwebui"}
_IMPORT = "/api/import"
_FILES = frozenset({"application/x-ndjson", *IMPORT_TYPES}) - {"application/json"}  # that an import accepts
_COMPRESSIONS = frozenset({"gzip", "x-gzip", "deflate", "compress", "br", "zstd"})
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
# Read requests that have a body.
_QUERIES = frozenset({"/api/memories/search"})
UNKNOWN_TOKEN = "This access token is not known here, or it has expired or was revoked."  # noqa: S105 - words
_CACHE_SECONDS = 60.0
_CACHE_SIZE = 10_000
_USE_SECONDS = 60.0


# The callers of keys and end users, each with the time of its look-up.
_cache: "OrderedDict[tuple[str, str, str], tuple[Caller, float]]" = OrderedDict()


def forget_keys() -> None:
    """Empty the key cache, after a key was created, changed or revoked in this process (or in tests)."""
    _cache.clear()


Header = Callable[[str], str | None]  # returns the value of a header by its name in lower case


def given_key(header: Header) -> str:
    """Return the key in the headers Authorization: Bearer, X-API-Key or api-key; "" if there is none."""
    scheme, _, token = (header("authorization") or "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    return header("x-api-key") or header("api-key") or ""


def end_user(header: Header) -> tuple[str, str]:
    """Return `(namespace, external id)` of the end user in the headers, or two empty strings. Raises InvalidRequest for
    a header without a value: the program has lost its user's id, and an answer for the key's owner would show that user
    the owner's memories. The id is not decoded as in `header_text`, by which two ids could become the same."""
    for name, namespace in END_USER_HEADERS.items():
        given = header(name)
        if given is None:
            continue
        if not given.strip():
            raise InvalidRequest(f"{name} is empty: name the end user in it, or leave the header out.")
        return namespace, given.strip(" \t")  # no other characters: different ids would name the same person
    return "", ""


def known_caller(header: Header) -> Caller | None:
    """Return the caller of the key in these headers if this process accepted it within the last minute."""
    entry = _cache.get((key_hash(given_key(header)), *end_user(header)))
    return entry[0] if entry is not None and time.monotonic() - entry[1] <= _CACHE_SECONDS else None


async def caller_by_key(request: HttpRequest, *, cached: bool) -> Caller:
    """Return the caller of a request's key. With `cached`, results of the last minute are reused, which is only for
    paths whose opening transaction checks the key again. Raises Unauthorized, Forbidden, RateLimited."""
    plain = given_key(request.headers.get)
    if not plain:
        raise Unauthorized("An API key is needed: send it as Authorization: Bearer dbk_….")
    cache_key = (key_hash(plain), *end_user(request.headers.get))
    entry = _cache.get(cache_key) if cached else None
    now = time.monotonic()
    if entry is not None and now - entry[1] <= _CACHE_SECONDS:
        caller = entry[0]
    else:
        caller = await caller_of_key(*cache_key)
        if caller.trusted or not cache_key[2]:  # not for end users of untrusted keys: a second one changes it
            _cache[cache_key] = caller, now
        if len(_cache) > _CACHE_SIZE:
            _cache.popitem(last=False)
    working_for.set(caller.owner_id)
    await count_request(str(caller.key_id), caller.requests_per_minute)
    return caller


async def caller_by_token(plain: str, resource: str, header: Header) -> Caller:
    """Return the caller of an access token for this resource. Tokens are not cached, so a revoked one is refused
    immediately. Raises Unauthorized, Forbidden, RateLimited."""
    caller = await _look_up(_find_by_token, plain, resource, *end_user(header))
    working_for.set(caller.owner_id)
    await count_request(str(caller.key_id), caller.requests_per_minute)
    return caller


async def caller_of_key(sha256: str, namespace: str, external_id: str) -> Caller:
    """Return the caller of the key with this hash, as `find_caller` does. Raises Unauthorized, Forbidden."""
    return await _look_up(find_caller, sha256, namespace, external_id)


async def _look_up(find: Callable[..., Caller], *given: object) -> Caller:
    """Call a function that finds a caller in a reading thread, and again in the writing thread if the owner or the end
    user is seen for the first time."""
    try:
        return await in_read_thread(find, *given, write=False)
    except WriteRequired:
        return await in_thread(find, *given)


def find_caller(sha256: str, namespace: str = "", external_id: str = "", *, write: bool = True) -> Caller:
    """Return the caller of the key with this hash and of the request's end user. Raises Unauthorized, Forbidden, and
    without `write` WriteRequired."""
    key = key_find(sha256)
    if key is None:
        raise Unauthorized("This API key is not known here, or it has expired or was revoked.")
    return replace(_caller_of(key, namespace, external_id, write=write), key_sha256=sha256)


def is_same_caller(caller: Caller, sha256: str, namespace: str, external_id: str) -> bool:
    """Return True if the key with this hash still results in this caller: it was neither revoked nor replaced, and its
    limits and its owner are the same. Does not count as a use of the key."""
    key = key_find(sha256)
    if key is None:
        return False
    try:
        owner_id, remembers = _owner_of(key, namespace, external_id, write=False)
    except (Forbidden, WriteRequired):
        return False
    return (owner_id, remembers, key_limits(key)) == (caller.owner_id, caller.remembers, caller.limits)


def still_allowed(request: ApiRequest) -> bool:
    """Return True if the key or login of a request still results in its caller."""
    caller = request.auth
    if caller.key_id is not None:
        return is_same_caller(caller, caller.key_sha256, *end_user(request.headers.get))
    try:
        return find_caller_by_cookie(request, write=False) == caller
    except (Unauthorized, WriteRequired):
        return False


def _find_by_token(plain: str, resource: str, namespace: str, external_id: str, *, write: bool = True) -> Caller:
    found = token_find(plain)
    if found is None or found.resources != [resource]:
        raise Unauthorized(UNKNOWN_TOKEN)
    caller = _caller_of(found.key, namespace, external_id, write=write)
    return replace(caller, app=True, read_only=caller.read_only or WRITE not in found.scopes)


def _caller_of(key: ApiKey, namespace: str, external_id: str, *, write: bool) -> Caller:
    if key.last_used_at is None or (timezone.now() - key.last_used_at).total_seconds() > _USE_SECONDS:
        record_key_use(key.pk)
    owner_id, remembers = _owner_of(key, namespace, external_id, write=write)
    return Caller(
        owner_id=owner_id,
        actor=f"key:{key.pk}",
        key_id=key.pk,
        limits=key_limits(key),
        spending_limits=SpendingLimits(key.tokens_per_day, key.money_per_day, key.streams_at_once),
        requests_per_minute=key.requests_per_minute,
        read_only=key.read_only,
        trusted=key.trusted,
        remembers=remembers,
    )


def _owner_of(key: ApiKey, namespace: str, external_id: str, *, write: bool) -> tuple[UUID, bool]:
    """Return the owner of a request, and whether it may use memory."""
    if not external_id:
        return key.owner_id, True
    if key.trusted:
        who = {"namespace": namespace, "external_id": external_id}
        return owner_for_end_user(parent=key.owner, **who, write=write).pk, True
    if namespace == "daybook":
        raise Forbidden("This key may not name end users; an administrator can mark it as trusted.")
    return key.owner_id, not end_user_record(key, namespace, external_id, write=write)


def find_caller_by_cookie(request: HttpRequest, *, write: bool = True) -> Caller:
    """Return the caller of a session cookie. Raises Unauthorized."""
    request.session = SessionStore(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    user = get_user(request)
    if not user.is_authenticated or not user.is_active:
        raise Unauthorized("Sign in, or send an API key as Authorization: Bearer dbk_….")
    owner = owner_for_user(user, write=write)
    return Caller(owner_id=owner.pk, actor=f"user:{user.pk}")


def require_json(request: HttpRequest) -> None:
    """Raise UnsupportedMediaType for a body that is neither JSON nor, for an import, a file, or is compressed."""
    if request.method not in _WRITES or not request.body:
        return
    encodings = request.headers.get("content-encoding", "").lower().split(",")
    if not _COMPRESSIONS.isdisjoint(map(str.strip, encodings)):  # some programs name the character set there
        raise UnsupportedMediaType("Send the body without Content-Encoding: a compressed body is not read.")
    kind, files = (request.content_type or "").lower(), ""
    if request.path_info.rstrip("/") == _IMPORT:
        if kind in _FILES:
            return
        files = f", or a file as {', '.join(sorted(_FILES))}"
    if kind != "application/json" and not kind.endswith("+json"):
        raise UnsupportedMediaType(f"Send JSON with Content-Type: application/json{files}.")


def require_writer(caller: Caller) -> None:
    """Raise Forbidden for a read-only key."""
    if caller.read_only:
        raise Forbidden("This key may only read.")


class _BearerAuth(AuthBase):
    openapi_type = "http"
    openapi_scheme = "bearer"
    is_async = True


class KeyAuth(_BearerAuth):
    """For /v1: keys only."""

    async def __call__(self, request: HttpRequest) -> Caller:
        is_post = request.method == "POST"
        caller = await caller_by_key(request, cached=is_post)
        require_json(request)
        if not is_post:  # a POST checks them before it asks a model
            await record_tokens_left(caller)
        return caller


def require_memory(caller: Caller) -> None:
    """Raise Forbidden for a key that several people share, since their memories would be merged."""
    if not caller.remembers:
        raise Forbidden("This key was used for several end users and is not trusted to name them; it gets no memory.")


class NativeAuth(_BearerAuth):
    """For /api: a key, or the session cookie with CSRF. A wrong key never falls back to the cookie."""

    async def __call__(self, request: HttpRequest) -> Caller:
        if given_key(request.headers.get):
            caller = await caller_by_key(request, cached=False)
            require_json(request)
            if request.method in _WRITES and request.path_info not in _QUERIES:
                require_writer(caller)
            return caller
        caller = await _look_up(find_caller_by_cookie, request)
        working_for.set(caller.owner_id)
        if end_user(request.headers.get)[0] == "daybook":
            raise Forbidden("A login may not name end users; a trusted key may.")
        require_json(request)  # before Django looks for the token in a form
        if refused := check_csrf(request):
            raise Forbidden(f"The CSRF token is missing or wrong. Reload the page. ({refused.status_code})")
        return caller


class MemoryAuth(NativeAuth):
    """For the parts of /api that read or write memory."""

    async def __call__(self, request: HttpRequest) -> Caller:
        caller = await super().__call__(request)
        require_memory(caller)
        return caller
