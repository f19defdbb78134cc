"""The rights of a request's key as they are now. Those that authentication remembers may be a minute old. Synchronous;
uses the database."""

from collections.abc import Iterator
from contextlib import contextmanager

from gateway.agents.rows import KEY_REVOKED
from gateway.authentication import require_memory
from gateway.keys import key_by_id, key_limits
from gateway.mcp.messages import NOT_PERMITTED, RpcError
from gateway.models import ApiKey
from memories.caller import Caller, KeyLimits
from memories.errors import DomainError, InvalidRequest, NotFound, Unauthorized


def current_key(caller: Caller) -> ApiKey:
    """Return the row of the caller's key. Raises Unauthorized for one that was revoked meanwhile."""
    key = key_by_id(caller.key_id) if caller.key_id else None
    if key is None:
        raise Unauthorized(KEY_REVOKED)
    return key


def current_limits(caller: Caller) -> KeyLimits:
    """Return the limits of a caller who may read memory. Raises Unauthorized, Forbidden."""
    key = current_key(caller)
    require_memory(caller)
    return key_limits(key)


@contextmanager
def refusals(not_there: int, **data: str) -> Iterator[None]:
    """Turn DomainErrors into errors of JSON-RPC, except that of a revoked key, which is answered with 401. `not_there`
    is the code for what is not there for this key, and `data` what is said with it."""
    try:
        yield
    except Unauthorized:
        raise
    except (NotFound, InvalidRequest) as error:
        raise RpcError(not_there, str(error), data=data or None) from None
    except DomainError as error:
        raise RpcError(NOT_PERMITTED, str(error), data={"code": error.code}) from None
