"""What the key of a request may use at this moment: what authentication remembers of it may be a minute old.
Synchronous; uses the database."""

from gateway.agents.rows import KEY_REVOKED
from gateway.authentication import require_memory
from gateway.keys import key_by_id, key_limits
from gateway.models import ApiKey
from memories.caller import Caller, KeyLimits
from memories.errors import Unauthorized


def present_key(caller: Caller) -> ApiKey:
    """Return the row of the caller's key. Raises Unauthorized for one that was revoked meanwhile."""
    key = key_by_id(caller.key_id) if caller.key_id else None
    if key is None:
        raise Unauthorized(KEY_REVOKED)
    return key


def present_limits(caller: Caller) -> KeyLimits:
    """Return the limits of a caller who may read memory. Raises Unauthorized, Forbidden."""
    key = present_key(caller)
    require_memory(caller)
    return key_limits(key)
