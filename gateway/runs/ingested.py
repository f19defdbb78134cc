"""Stores conversations that took place elsewhere, as history of sessions. No run is opened, so no turn is counted.

Messages that a client ingests belong to a session that it names, or to one of their own (reviews.ingest). A
conversation of an import becomes an ended session with its original times and text: no job is queued, its messages
count as reviewed, and consolidation reads it by its own rules (registered with memories.imports.conversations)."""

from collections.abc import Sequence
from uuid import UUID

from django.utils import timezone

from gateway.errors import SessionBusy
from gateway.models import Agent, Message, Session
from gateway.runs.by_id import session_named
from gateway.runs.ending import release_lapsed
from gateway.runs.instructions import hashes_missing
from gateway.runs.rows import INSERT_MESSAGES, INSERT_SESSIONS, NEW_MESSAGE, messages_append, session_touch
from gateway.services import MAX_TITLE, sessions_delete
from gateway.sessions.message_index import history_index
from memories.caller import Caller, KeyLimits
from memories.database.batches import BatchSize, Slices
from memories.errors import Conflict, InvalidRequest
from memories.imports.contents import Conversation
from memories.imports.conversations import ConversationStore

TITLE = "From messages"
_PREFIX = "import:"


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


def conversations_check(owner_id: UUID, book: str, limits: KeyLimits) -> None:
    """Raises Conflict for a book that no agent uses, since a session needs an agent."""
    agent_of_book(limits, book)


def conversations_known(owner_id: UUID, keys: Sequence[str]) -> set[str]:
    """Return the keys whose conversations the owner has imported and not deleted. One query."""
    # The filter on agents makes the index usable.
    rows = Session.objects.filter(
        owner_id=owner_id, agent__in=Agent.objects.all(), history_hash__in=[_PREFIX + key for key in keys]
    )
    return {hash.removeprefix(_PREFIX) for hash in rows.values_list("history_hash", flat=True)}


def conversations_add(
    owner_id: UUID, book: str, limits: KeyLimits, change_set: UUID, conversations: Sequence[Conversation]
) -> None:
    """Store conversations as sessions of the book's first agent, in the caller's transaction. Raises Conflict."""
    agent = agent_of_book(limits, book)
    sessions = [_session(owner_id, agent, change_set, conversation) for conversation in conversations]
    INSERT_SESSIONS.execute(sessions)
    INSERT_MESSAGES.execute(
        [
            message
            for session, conversation in zip(sessions, conversations, strict=True)
            for message in _messages(session, conversation)
        ]
    )
    pairs = zip(sessions, conversations, strict=True)
    hashes_missing([session for session, conversation in pairs if conversation.reads_elsewhere])


def conversations_remove(owner_id: UUID, change_set: UUID, limits: KeyLimits) -> Slices[int]:
    """Delete the sessions of a change set that a key may use, in short transactions. Return their number."""
    rows = Session.objects.filter(owner_id=owner_id, external_id__startswith=_name(change_set, ""))
    rows = limits.filter(rows, agent="agent__name")
    keys = list(rows.order_by("pk").values_list("pk", flat=True))
    size = BatchSize(initial=5, maximum=100)
    count = 0
    for batch in size.parts(keys):
        with size.measured():
            count += sessions_delete(owner_id, batch)
        yield
    return count


STORE = ConversationStore(
    check=conversations_check,
    known=conversations_known,
    add=conversations_add,
    index=history_index,
    remove=conversations_remove,
)


def _name(change_set: UUID, key: str) -> str:
    """Return the external id of a session, which names the import it came from."""
    return f"{_PREFIX}{change_set.hex}:{key}"


def _session(owner_id: UUID, agent: Agent, change_set: UUID, conversation: Conversation) -> Session:
    count, now = len(conversation.messages), timezone.now()
    times = [message.at for message in conversation.messages if message.at]
    began = conversation.began_at or min(times, default=now)
    return Session(
        owner_id=owner_id,
        agent=agent,
        title=conversation.title[:MAX_TITLE],
        state=Session.State.ENDED,
        external_id=_name(change_set, conversation.key),
        history_hash=_PREFIX + conversation.key,
        turns=sum(message.role == Message.Role.USER for message in conversation.messages),
        message_seq=count,
        reviewed_through=count,
        created_at=began,
        last_active_at=max([began, *times]),
    )


def _messages(session: Session, conversation: Conversation) -> list[Message]:
    at = session.created_at
    rows = []
    for seq, message in enumerate(conversation.messages, start=1):
        at = message.at or at
        rows.append(
            NEW_MESSAGE.row(
                owner_id=session.owner_id,
                session_id=session.pk,
                seq=seq,
                role=message.role,
                kind=Message.Kind.HISTORY,
                text=message.text,
                created_at=at,
            )
        )
    return rows
