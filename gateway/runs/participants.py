"""Participants of a group chat. A client that passes on what other agents or people wrote sends their messages as the
user's, with a `name`: AutoGen, LangGraph's supervisors, bots in channels."""

from collections.abc import Mapping, Sequence, Set
from typing import Any

from gateway.messages import ChatMessage

MAX_NAME = 64
_PERSON_NAMES = frozenset({"", "user", "human", "user_proxy"})
_MANAGER_NAMES = frozenset({"chat_manager", "magenticoneorchestrator"})  # never a person's: AutoGen and AG2


def other_participants(messages: Sequence[ChatMessage]) -> frozenset[str]:
    """Return the names of those who wrote user messages in the person's conversation, without the person's own.

    The person's messages have no name, or one that says so ("user"). If there is no such message, the first name is the
    person's, as a client may name the only person it has, unless it is that of a team's manager, which is a model."""
    if not has_names(messages):
        return frozenset()
    names = [name_of(message) for message in messages if message.get("role") == "user"]
    person = {name for name in names if name.casefold() in _PERSON_NAMES} or set(names[:1])
    person = {name for name in person if name.casefold() not in _MANAGER_NAMES}
    return frozenset(names) - person


def has_names(messages: Sequence[ChatMessage]) -> bool:
    """Return True if a user message names its author. Clients may name the assistant, too."""
    return any("name" in message and message.get("role") == "user" for message in messages)


def is_from_other(message: Mapping[str, Any], others: Set[str]) -> bool:
    """Return True for a user message of one of these participants."""
    return bool(others) and message.get("role") == "user" and name_of(message) in others


def name_of(message: Mapping[str, Any]) -> str:
    """Return the name that a message gives its author, or "" without one, cut to MAX_NAME characters."""
    name = message.get("name")
    return name.strip()[:MAX_NAME] if isinstance(name, str) else ""
