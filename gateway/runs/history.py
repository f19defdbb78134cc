"""History that a client brings: the messages before a session was first seen. They are reviewed once, with the
session's first review, unless another session has them already and is reviewed with them."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any
from uuid import UUID

from gateway.models import Run, Session
from gateway.runs import fingerprint

# A conversation that a client changes as it goes on may be in several sessions that began alike.
_MOST_SESSIONS = 5


def known_messages(session: Session, history: Sequence[dict[str, Any]]) -> int:
    """Return how many messages at the beginning of a new session's history are not to be reviewed with it. In a fork
    these are all of them, since they belong to the parent. Otherwise they are the turns whose messages of the person
    also begin an earlier session with this agent, whatever became of the answers. Two queries, none for a fork."""
    if session.parent_id is not None:
        return len(history)
    said = ["".join(texts) for role, texts in fingerprint.canonical(history) if role == "user"]
    return _before_turn(history, _known_turns(session.owner_id, session.agent.name, said)) if said else 0


def _known_turns(owner_id: UUID, agent_name: str, said: Sequence[str]) -> int:
    standing = Run.objects.filter(owner_id=owner_id, superseded=False, temporary=False)
    first = standing.filter(
        history_hash_before=fingerprint.first_history_hash(owner_id, agent_name), user_key=fingerprint.digest(said[0])
    ).order_by("-id")
    sessions = list(first.values_list("session_id", flat=True)[:_MOST_SESSIONS])
    if not sessions:
        return 0
    rows = standing.filter(session_id__in=sessions, state=Run.State.COMPLETED, turn__lte=len(said)).order_by("turn")
    known: dict[UUID, list[str]] = {}
    for session_id, key in rows.values_list("session_id", "user_key"):
        known.setdefault(session_id, []).append(key)
    ours = list(map(fingerprint.digest, said))
    alike = (takewhile(lambda pair: pair[0] == pair[1], zip(keys, ours, strict=False)) for keys in known.values())
    return max((len(list(pairs)) for pairs in alike), default=0)


def _before_turn(messages: Sequence[dict[str, Any]], turns: int) -> int:
    """Return the number of messages before a turn, given the number of turns before it; unanswered messages in a row
    are one turn."""
    count, answered = 0, True
    for place, message in enumerate(messages):
        if message.get("role") == "user":
            count += answered
            if count > turns:
                return place
            answered = False
        elif message.get("role") == "assistant" and fingerprint.canonical_content(message.get("content")):
            answered = True
    return len(messages)
