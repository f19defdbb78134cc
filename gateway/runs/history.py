"""Messages from before a session was first seen, which a client sends with its first request. The session's first
review reads them, unless another session already contains them and is reviewed with them."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any
from uuid import UUID

from gateway.digests import digest
from gateway.models import Run, Session
from gateway.runs import fingerprint

# If a client changes a conversation while continuing it, several sessions begin alike.
_MAX_SESSIONS = 5


def known_message_count(session: Session, history: Sequence[dict[str, Any]]) -> int:
    """Return how many messages at the beginning of a new session's history are not to be reviewed with it. For a fork
    that is all of them, since they belong to the parent. Otherwise it is the turns whose user messages also begin an
    earlier session with this agent, whatever the answers. Two queries, none for a fork."""
    if session.parent_id is not None:
        return len(history)
    user_texts = ["".join(texts) for role, texts in fingerprint.canonical(history) if role == "user"]
    return _before_turn(history, _known_turns(session.owner_id, session.agent.name, user_texts)) if user_texts else 0


def _known_turns(owner_id: UUID, agent_name: str, texts: Sequence[str]) -> int:
    runs = Run.objects.filter(owner_id=owner_id, superseded=False, temporary=False)
    first = runs.filter(
        history_hash_before=fingerprint.first_history_hash(owner_id, agent_name), user_key=digest(texts[0])
    ).order_by("-id")
    sessions = list(first.values_list("session_id", flat=True)[:_MAX_SESSIONS])
    if not sessions:
        return 0
    rows = runs.filter(session_id__in=sessions, state=Run.State.COMPLETED, turn__lte=len(texts)).order_by("turn")
    known: dict[UUID, list[str]] = {}
    for session_id, key in rows.values_list("session_id", "user_key"):
        known.setdefault(session_id, []).append(key)
    user_keys = list(map(digest, texts))
    alike = (takewhile(lambda pair: pair[0] == pair[1], zip(keys, user_keys, strict=False)) for keys in known.values())
    return max((len(list(pairs)) for pairs in alike), default=0)


def _before_turn(messages: Sequence[dict[str, Any]], turns: int) -> int:
    """Return the number of messages in the first `turns` turns. Consecutive unanswered user messages are one turn."""
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
