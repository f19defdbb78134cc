"""Stores the conversations of an import. Each becomes an ended session with its original times and text. No run is
opened and no job queued: the messages count as reviewed, and consolidation reads the sessions by its own rules.
Registered with memories.imports.conversations."""

from collections.abc import Sequence
from uuid import UUID

from django.utils import timezone

from gateway.models import Agent, Message, Session
from gateway.runs.ingested import agent_of_book
from gateway.services import MAX_TITLE, sessions_delete
from gateway.sessions.message_index import history_index
from memories.caller import KeyLimits
from memories.database.batches import BatchSize, Slices
from memories.database.statements import Insert, RowFactory
from memories.imports.contents import Conversation
from memories.imports.conversations import ConversationStore

_PREFIX = "import:"
_NEW_MESSAGE = RowFactory(Message)
_INSERT_SESSIONS: Insert[Session] = Insert(Session)
_INSERT_MESSAGES: Insert[Message] = Insert(Message)


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
    _INSERT_SESSIONS.execute(sessions)
    _INSERT_MESSAGES.execute(
        [
            message
            for session, conversation in zip(sessions, conversations, strict=True)
            for message in _messages(session, conversation)
        ]
    )


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
            _NEW_MESSAGE.row(
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
