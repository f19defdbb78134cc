"""Stores messages that a client ingests without asking for an answer as history of a session. No run is opened, so no
turn is counted. Called by reviews.ingest."""

from collections.abc import Sequence

from gateway.errors import SessionBusy
from gateway.models import Agent, Message, Session
from gateway.runs.by_id import session_named
from gateway.runs.lapsed import release_lapsed
from gateway.runs.rows import messages_append, session_touch
from memories.caller import Caller, KeyLimits
from memories.errors import Conflict, InvalidRequest

TITLE = "From messages"


def messages_add(caller: Caller, messages: Sequence[Message], *, book: str | None, session_ref: str) -> Session:
    """Append rows from `message_rows` to the session that `session_ref` names (our id or the client's own), in the
    caller's transaction. An unknown name creates a session; without a name the messages get a new session that has
    already ended.

    A new session gets the agent of `agent_of_book`; without `book` that is the key's default. Raises NotFound,
    SessionEnded, SessionBusy, InvalidRequest for a session with another book, and Conflict for a book that no agent
    uses."""
    session = session_named(caller, session_ref) if session_ref else None
    if session is None:
        session = _new_session(caller, book, session_ref)
    else:
        _require_free(caller, session, book)
    messages_append(session, messages)
    session_touch(session)
    return session


def agent_of_book(limits: KeyLimits, book: str) -> Agent:
    """Return the agent for ingested sessions of a book: the first one, by name, that the key may use. Raises Conflict
    if there is none."""
    agent = limits.filter(Agent.objects.filter(book=book), agent="name").order_by("name").first()
    if agent is None:
        raise Conflict(
            f"No agent uses the book {book}, so it cannot have conversations. "
            f"Name the book of an agent, or give an agent `book: {book}` in the agents file or the admin.",
            param="book",
        )
    return agent


def _new_session(caller: Caller, book: str | None, session_ref: str) -> Session:
    agent = agent_of_book(caller.limits, caller.limits.book_name(book))
    session = Session(owner_id=caller.owner_id, agent=agent)
    if session_ref:
        session.external_id = session_ref
    else:
        session.title, session.state = TITLE, Session.State.ENDED
    return session


def _require_free(caller: Caller, session: Session, book: str | None) -> None:
    if book is not None and book != session.agent.book:
        caller.limits.require_books([book])
        raise InvalidRequest(
            f"This session's memories are in the book {session.agent.book}: leave `book` out.", param="book"
        )
    if waiting := release_lapsed(session):
        raise SessionBusy(
            "A turn of this session waits for results of client tools. First send them, or continue without them.",
            run_id=str(waiting[0].pk),
        )
