"""The current rights of a request's key, since those cached by authentication may be a minute old. Synchronous; uses
the database."""

from collections.abc import Iterator
from contextlib import contextmanager

from gateway.agents.rows import KEY_REVOKED
from gateway.authentication import require_memory
from gateway.keys import key_limits, keys_of
from gateway.mcp.protocol import NOT_PERMITTED, RpcError
from gateway.models import ApiKey
from memories.caller import Caller, KeyLimits
from memories.errors import DomainError, InvalidRequest, NotFound, Unauthorized


def current_key(caller: Caller) -> ApiKey:
    """Return the row of the caller's key. Raises Unauthorized if it has been revoked."""
    key = keys_of(caller).first()
    if key is None:
        raise Unauthorized(KEY_REVOKED)
    return key


def current_limits(caller: Caller) -> KeyLimits:
    """Return the current limits of the caller's key. Raises Unauthorized, and Forbidden if it may not read memory."""
    key = current_key(caller)
    require_memory(caller)
    return key_limits(key)


@contextmanager
def rpc_errors(not_found_code: int, **data: str) -> Iterator[None]:
    """Convert DomainErrors to RpcErrors, except Unauthorized, which becomes a 401. Missing and invalid objects get
    `not_found_code` and `data`."""
    try:
        yield
    except Unauthorized:
        raise
    except (NotFound, InvalidRequest) as error:
        raise RpcError(not_found_code, str(error), data=data or None) from None
    except DomainError as error:
        raise RpcError(NOT_PERMITTED, str(error), data={"code": error.code}) from None
