"""Hooks by which the gateway calls the reviews app, which it may not import. They are registered when Django starts."""

from collections.abc import Callable, Sequence
from uuid import UUID

from gateway.models import Session
from gateway.runs.context import TurnContext
from memories.registered import Registered

# Called for a counted turn inside its closing transaction, with the session's locked row, which includes this turn.
# Returns True if it has handled the turns so far, so that the session's counter is reset.
turn_completed = Registered[Callable[[TurnContext, Session], bool]]("what follows a turn")
# Called with a session's locked row. Returns the number of the last message that a review has read or is about to read.
review_position = Registered[Callable[[Session], int]]("how far sessions are reviewed")
# Called with owner and sessions inside the transaction that deletes the sessions or their records. Locks reviews, and
# then the owner's books.
sessions_forgotten = Registered[Callable[[UUID, Sequence[UUID]], None]]("what is forgotten with sessions")
