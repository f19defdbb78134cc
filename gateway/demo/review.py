"""The demo model as a reviewer: what it writes after a conversation. Statements become new memories or correct the one
they are about; what the person asks to forget is deleted; what is known already is left alone."""

import re
from collections.abc import Sequence
from typing import Any

from gateway.demo.repeated import repeated_wishes
from gateway.demo.statements import Listener, Statement, terms
from gateway.demo.topics import shared_topics, topic_keywords

MOST_WRITES = 5
_FORGET = re.compile(
    r"(?:^|[.!?,;]\s+|\b(?:and|please|just|so|but) )(?:please )?(?:forget|(?:don't|do not) (?:keep|remember|save|store"
    r"|note|write|record)|(?:delete|remove|erase|drop) (?:that|it|this|what|the (?:note|memory|entry|bit|part)"
    r"|every|any))\b(?! to\b)|\boff the record\b|\bbetween (?:us|you and me)\b",
    re.IGNORECASE,
)
_KNOWN = 0.75
# Of these a person has one.
_PLACE = re.compile(r"(?:Wants to be called|Lives in|Their [\w' ]{2,30}? (?:is|are)) ")

Call = tuple[str, dict[str, Any]]


def review_calls(conversation: Sequence[tuple[str, str]], existing: Sequence[tuple[str, str]]) -> list[Call]:
    """The tool calls of a review: of `(role, text)` messages, beside `(id, content)` of what is stored."""
    forgotten, unsaid = _asked_to_forget(conversation, existing)
    calls: list[Call] = [("delete_memory", {"id": number}) for number in forgotten]
    kept = [(number, content) for number, content in existing if number not in forgotten]
    for said, context in sorted(_statements(conversation, unsaid), key=lambda found: found[0].rank):
        known = [content for _, content in kept] + [call[1]["content"] for call in calls if "content" in call[1]]
        if any(_is_known(said.content, content) for content in known):
            continue
        stale = _outdated(said, context, kept)
        if stale is not None:
            calls.append(
                ("update_memory", {"id": stale, "content": said.content, "keywords": topic_keywords(said.content)})
            )
            kept = [(number, content) for number, content in kept if number != stale]
        elif said.alone:
            calls.append(add_call(said))
    return calls[:MOST_WRITES]


def add_call(said: Statement) -> Call:
    """The call that saves a statement."""
    return "add_memory", {
        "content": said.content,
        "target": said.target,
        "category": said.category,
        "keywords": topic_keywords(said.content),
    }


def _statements(conversation: Sequence[tuple[str, str]], unsaid: set[int]) -> list[tuple[Statement, str]]:
    """Statements with what the assistant had said before them."""
    listener = Listener()
    found: list[tuple[Statement, str]] = []
    before = ""
    for place, (role, text) in enumerate(conversation):
        if role != "user":
            before = text
            continue
        statements = listener.hear(text)
        if place not in unsaid:
            found.extend((said, before) for said in statements)
    wishes = repeated_wishes([text for role, text in conversation if role == "user"])
    return [*found, *((wish, "") for wish in wishes)]


def _asked_to_forget(
    conversation: Sequence[tuple[str, str]], existing: Sequence[tuple[str, str]]
) -> tuple[list[str], set[int]]:
    """Ids of what to forget, and the places of messages that nothing is saved from."""
    ids: list[str] = []
    unsaid: set[int] = set()
    users = [place for place, (role, _) in enumerate(conversation) if role == "user"]
    for at, place in enumerate(users):
        text = conversation[place][1].replace("’", "'")
        if not _FORGET.search(text):
            continue
        unsaid.add(place)
        meant = _meant(text, conversation[place - 1][1] if place else "", existing)
        if meant is None:
            unsaid.update(users[at - 1 : at])
        elif meant not in ids:
            ids.append(meant)
    return ids, unsaid


def _meant(text: str, context: str, existing: Sequence[tuple[str, str]], *, least: float = 1) -> str | None:
    """The id of the memory that a text is about: most words in common; what the assistant had just said counts half."""
    own, around = terms(text), terms(context)

    def shared(content: str) -> float:
        held = terms(content)
        return len(held & own) + shared_topics(content, text) + 0.5 * len(held & around - own)

    best = max(existing, key=lambda memory: shared(memory[1]), default=None)
    return best[0] if best is not None and shared(best[1]) >= least else None


def _outdated(said: Statement, context: str, existing: Sequence[tuple[str, str]]) -> str | None:
    """The id of the memory that a statement corrects: it says so, or it fills the same place."""
    if said.change:
        return _meant(said.content, context, existing, least=1 if said.alone else 1.5)
    place = _PLACE.match(said.content)
    return next((n for n, content in existing if place and content.casefold().startswith(place[0].casefold())), None)


def _is_known(said: str, content: str) -> bool:
    """Whether a memory says nearly all of what a statement says."""
    words = terms(said)
    return len(words & terms(content)) >= _KNOWN * len(words)
