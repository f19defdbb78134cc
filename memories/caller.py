"""Who asks: what authentication ends in, and all that the floors below the edge know of a request."""

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The owner, and the key if it was one (whose revocation the opening transaction of a turn looks at again)."""

    owner_id: UUID
    actor: str  # user:ID or key:ID
    key_id: UUID | None = None
    agents: tuple[str, ...] = ()
    read_only: bool = False
    trusted: bool = False
    remembers: bool = True  # False: nothing of memory is read or written, since people would be merged


class ApiRequest(HttpRequest):
    """A request that has passed an API's authentication."""

    auth: Caller
