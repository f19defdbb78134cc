"""Fingerprints of conversations. Clients that resend everything name no session, so the session is found by hashes of
the conversation's text. Pure functions.

Canonical messages are the user and assistant texts: white space is removed (clients trim and join texts in different
ways), consecutive messages of a role are joined, and parts that are not text become hashes. System, developer and tool
messages are ignored, and so are `/memory` commands with their answers.

`history_hash(n) = H(history_hash(n-1), user_n, assistant_n)`, `history_hash(0) = H(owner, agent)`. An empty answer does
not change the hash, since clients resend it differently or not at all: its message then belongs to the next turn."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from gateway.attachments.references import part_digest
from gateway.command_syntax import is_command
from gateway.digests import digest
from gateway.messages import ChatMessage, text_of
from gateway.models import Run

COMMANDS_ONLY = "command:"
_SLICE = 50_000  # characters of a long text: splitting one of 12 MB holds the interpreter lock for 0.15 s


@dataclass(frozen=True, slots=True, kw_only=True)
class ResentConversation:
    """The fingerprint of a resent conversation `[u1 a1 … un]`."""

    history_hash_before: str  # history_hash(n-1): everything before the last user message
    user: str  # canonical text of the last user message
    user_key: str  # its hash
    previous_user_key: str  # hash of the user message before it
    # Hash of the user messages directly before the last one, which were never answered
    unanswered_user_key: str
    # The alternating canonical texts before the last user message, history_hash(0) to (n-1), and the answer to that
    # message in the request itself
    texts_before: Sequence[str] = field(default=(), repr=False, compare=False)
    hashes: Sequence[str] = field(default=(), repr=False, compare=False)
    answer: str = field(default="", repr=False, compare=False)

    @property
    def turns_before(self) -> int:
        """The number of complete turns before the last user message, n - 1."""
        return len(self.texts_before) // 2

    @property
    def is_first(self) -> bool:
        """True if there is no message before the last user message."""
        return not (self.turns_before or self.unanswered_user_key)

    def same_turn(self) -> dict[str, str]:
        """Return filters for the runs that were opened for this conversation."""
        return {"history_hash_before": self.history_hash_before, "user_key": self.user_key}

    def matches(self, run: Run) -> bool:
        """Return True if a run was opened for this conversation."""
        return all(getattr(run, name) == value for name, value in self.same_turn().items())

    def history_hash_after(self) -> str:
        """Return history_hash(n) if the request contains an answer to its last user message, otherwise ""."""
        return next_history_hash(self.history_hash_before, self.user, self.answer) if self.answer else ""

    def latest_keys(self, limit: int) -> tuple[list[str], list[str]]:
        """Return the last `limit` history hashes, without history_hash(0), and the keys of the last pairs. Both include
        the request's own answer, if it has one."""
        hashes, texts = list(self.hashes[1:]), list(self.texts_before[-2 * limit :])
        if self.answer:
            hashes.append(self.history_hash_after())
            texts += (self.user, self.answer)
        pairs = [pair_key(user, answer) for user, answer in zip(texts[::2], texts[1::2], strict=True)]
        return hashes[-limit:], pairs[-limit:]

    def first_turn_filters(self) -> dict[str, str]:
        """Return filters for the first runs of conversations that began with the same message."""
        return {
            "history_hash_before": self.hashes[0],
            "user_key": digest(self.texts_before[0]) if self.texts_before else self.user_key,
        }


def first_history_hash(owner_id: UUID, agent_name: str) -> str:
    """Return history_hash(0)."""
    return digest(str(owner_id), agent_name)


def next_history_hash(history_hash: str, user: str, assistant: str) -> str:
    """Return history_hash(n) for history_hash(n-1) and canonical texts."""
    return digest(history_hash, user, assistant) if assistant else history_hash


def pair_key(user: str, assistant: str) -> str:
    """Return the hash of a pair of canonical texts. Clients that cut off older messages still send the latest pair."""
    return digest(user, assistant)


def commands_key(owner_id: UUID, agent_name: str, command: str, answer: str) -> str:
    """Return the history hash of a session that contains only `/memory` commands, built from the latest one."""
    first = first_history_hash(owner_id, agent_name)
    return COMMANDS_ONLY + digest(first, strip_whitespace(command), strip_whitespace(answer))[:56]


def strip_whitespace(text: str) -> str:
    """Return the canonical text: without any white space, so that the way in which steps are joined does not matter."""
    if len(text) <= _SLICE:
        return "".join(text.split())
    return "".join([strip_whitespace(text[start : start + _SLICE]) for start in range(0, len(text), _SLICE)])


def canonical_content(content: Any) -> str:
    """Return the content that identifies a message: canonical text, with hashes for other parts."""
    if not isinstance(content, list):
        return strip_whitespace(text_of(content))
    pieces = []
    for part in content:
        if isinstance(part, dict) and part.get("type") == "text":
            pieces.append(strip_whitespace(str(part.get("text", ""))))
        else:
            pieces.append(part_digest(part))
    return "".join(pieces)


def is_said(content: Any) -> bool:
    """Return True unless the canonical content is empty, without reading a long one."""
    parts = content if isinstance(content, list) else [{"type": "text", "text": text_of(content)}]
    return any(part.get("type") != "text" or str(part.get("text", "")).strip() for part in parts)


def user_texts(messages: Sequence[ChatMessage]) -> list[str]:
    """Return the user's texts of `canonical`, one for each turn, without reading the answers."""
    short = [
        {**message, "content": "." if is_said(message.get("content")) else ""}
        if message.get("role") == "assistant"
        else message
        for message in messages
    ]
    return ["".join(texts) for role, texts in canonical(short) if role == "user"]


def canonical(messages: Sequence[ChatMessage]) -> list[tuple[str, list[str]]]:
    """Return `(role, texts)` with alternating roles, starting with the user, with the texts of consecutive messages of
    a role together. `/memory` commands and their answers are dropped."""
    found: list[tuple[str, list[str]]] = []
    after_command = False
    for message in messages:
        role = message.get("role")
        if role not in {"user", "assistant"}:
            continue
        content = message.get("content")
        if role == "user":
            after_command = is_command(text_of(content))
        if after_command:
            continue
        text = canonical_content(content)
        if found and found[-1][0] == role:
            found[-1][1].append(text)
        elif text or role == "user":
            found.append((role, [text]))
    if found and found[0][0] == "assistant":
        found.insert(0, ("user", [""]))
    return found


def read_conversation(owner_id: UUID, agent_name: str, messages: Sequence[ChatMessage]) -> ResentConversation:
    """Return the fingerprint of a request's messages. The last user message is the new one; messages after it do not
    affect the hashes."""
    turns = canonical(messages)
    answer = "".join(turns.pop()[1]) if turns and turns[-1][0] == "assistant" else ""
    last = turns.pop()[1] if turns else [""]
    user, unanswered = "".join(last), "".join(last[:-1])
    texts = ["".join(parts) for _, parts in turns]
    hashes = [first_history_hash(owner_id, agent_name)]
    for question, reply in zip(texts[::2], texts[1::2], strict=True):
        hashes.append(next_history_hash(hashes[-1], question, reply))
    return ResentConversation(
        history_hash_before=hashes[-1],
        user=user,
        user_key=digest(user),
        previous_user_key=digest(texts[-2] if texts else ""),
        unanswered_user_key=digest(unanswered) if unanswered else "",
        texts_before=texts,
        hashes=hashes,
        answer=answer,
    )
