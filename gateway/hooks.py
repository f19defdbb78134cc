"""What the app above does when a turn is complete or a session is forgotten. It registers this when Django starts, as
the gateway may not import it."""

from collections.abc import Callable
from uuid import UUID

from gateway.models import Session
from gateway.runs.context import TurnContext
from memories.registered import Registered

# Called for a counted user turn inside its closing transaction, with the session's locked row, which counts this turn.
# Returns True if it has handled the turns so far, so that the session's counter is reset.
turn_completed = Registered[Callable[[TurnContext, Session], bool]]("what follows a turn")
# Called with owner and session inside the transaction that deletes a session or forgets its record; its row is locked.
session_forgotten = Registered[Callable[[UUID, UUID], None]]("what is forgotten with a session")
