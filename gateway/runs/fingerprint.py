"""Fingerprints of conversations: clients that resend everything name no session, so it is recognised by the
conversation's own text. Pure functions.

Canonical messages are user and assistant texts: without white space (clients trim and join texts in different ways),
consecutive messages of a role joined, parts that are not text as hashes; system, developer and tool messages are
ignored, and so are `/memory` commands with their answers.

`history_hash(n) = H(history_hash(n-1), user_n, assistant_n)`, `history_hash(0) = H(owner, agent)`."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from gateway.attachments.references import Hashed, Part, data_of
from gateway.command_syntax import is_command
from gateway.models import Run
from memories.json_output import LongTextEncoder

Message = dict[str, Any]
COMMANDS_ONLY = "command:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A resent conversation `[u1 a1 … un]`, reduced to what identifies it."""

    history_hash_before: str  # history_hash(n-1): everything before the last user message
    user: str  # canonical text of the last user message
    user_key: str  # its hash
    previous_user_key: str  # of the user message before it
    # Of the user messages just before the last one, where no answer stands between them: that one was never answered.
    unanswered_user_key: str
    # The alternating canonical texts before the last user message, history_hash(0) to (n-1), and what was answered to
    # that message in this very request.
    said: Sequence[str] = field(default=(), repr=False, compare=False)
    hashes: Sequence[str] = field(default=(), repr=False, compare=False)
    answer: str = field(default="", repr=False, compare=False)

    @property
    def turns_before(self) -> int:
        """Return n - 1."""
        return len(self.said) // 2

    @property
    def is_first(self) -> bool:
        """Return True if nothing was said before the last user message."""
        return not (self.turns_before or self.unanswered_user_key)

    def matches(self, run: Run) -> bool:
        """Return True if a run was opened for this conversation."""
        return (run.history_hash_before, run.user_key) == (self.history_hash_before, self.user_key)

    def history_hash_after(self) -> str:
        """Return history_hash(n) of a request that holds an answer to its last user message, "" without one."""
        return next_history_hash(self.history_hash_before, self.user, self.answer) if self.answer else ""

    def latest(self, most: int) -> tuple[list[str], list[str]]:
        """Return the latest history_hashes of the conversation, without history_hash(0), and the keys of its latest
        pairs, with that of its answer."""
        hashes, texts = list(self.hashes[1:]), list(self.said[-2 * most :])
        if self.answer:
            hashes.append(self.history_hash_after())
            texts += (self.user, self.answer)
        pairs = [pair_key(user, answer) for user, answer in zip(texts[::2], texts[1::2], strict=True)]
        return hashes[-most:], pairs[-most:]

    def first(self) -> dict[str, str]:
        """Return how a run that began with the same message is looked up."""
        return {
            "history_hash_before": self.hashes[0],
            "user_key": digest(self.said[0]) if self.said else self.user_key,
        }


def digest(*parts: str) -> str:
    """SHA-256 over parts that cannot run into each other."""
    pieces: list[bytes] = []
    for part in parts:
        data = part.encode()
        pieces += (len(data).to_bytes(8, "big"), data)
    return hashlib.sha256(b"".join(pieces)).hexdigest()


def first_history_hash(owner_id: UUID, agent_name: str) -> str:
    """history_hash(0)."""
    return digest(str(owner_id), agent_name)


def next_history_hash(history_hash: str, user: str, assistant: str) -> str:
    """history_hash(n) from history_hash(n-1) and canonical texts."""
    return digest(history_hash, user, assistant)


def pair_key(user: str, assistant: str) -> str:
    """Return a hash of the latest pair, in canonical texts: clients that cut off older messages still send it."""
    return digest(user, assistant)


def commands_key(owner_id: UUID, agent_name: str, said: str, answer: str) -> str:
    """Return the key of a session that contains only `/memory` commands, made of the latest one."""
    return (
        COMMANDS_ONLY
        + digest(first_history_hash(owner_id, agent_name), strip_whitespace(said), strip_whitespace(answer))[:56]
    )


def fold(text: str) -> str:
    """Return the text with its white space folded."""
    return " ".join(text.split())


def strip_whitespace(text: str) -> str:
    """Canonical text: no white space at all, so that it does not matter how the texts of several steps were joined."""
    return "".join(text.split())


def text_of(content: Any) -> str:
    """Return the text of a message's content; parts that are not text are left out."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            [str(part.get("text", "")) for part in content if isinstance(part, dict) and part.get("type") == "text"]
        )
    return ""


def last_asked(messages: Sequence[Message]) -> int:
    """Return the index of the last message of the person, -1 for none."""
    return next((at for at in reversed(range(len(messages))) if messages[at].get("role") == "user"), -1)


def canonical_content(content: Any) -> str:
    """Content as it identifies a message: canonical text, other parts as hashes."""
    if not isinstance(content, list):
        return strip_whitespace(text_of(content))
    pieces = []
    for part in content:
        if isinstance(part, dict) and part.get("type") == "text":
            pieces.append(strip_whitespace(str(part.get("text", ""))))
        else:
            pieces.append(part_digest(part))
    return "".join(pieces)


def part_digest(part: Part) -> str:
    """Return the hash that identifies a part which is not text: made once where its text is long, and kept with what is
    stored of it."""
    known = data_of(part) if isinstance(part, dict) else None
    if isinstance(known, Hashed):
        return known.digest
    return digest(json.dumps(part, sort_keys=True, cls=LongTextEncoder))


def canonical(messages: Sequence[Message]) -> list[tuple[str, list[str]]]:
    """`(role, texts)` with alternating roles, starting with the user; the texts of consecutive messages of a role stand
    together. A user's `/memory` command goes with its answer."""
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


def read_conversation(owner_id: UUID, agent_name: str, messages: Sequence[Message]) -> Conversation:
    """Reduce a request's messages. The last user message is the new one; what follows it does not identify."""
    turns = canonical(messages)
    answer = "".join(turns.pop()[1]) if turns and turns[-1][0] == "assistant" else ""
    last = turns.pop()[1] if turns else [""]
    user, unanswered = "".join(last), "".join(last[:-1])
    texts = ["".join(said) for _, said in turns]
    hashes = [first_history_hash(owner_id, agent_name)]
    for said, answered in zip(texts[::2], texts[1::2], strict=True):
        hashes.append(next_history_hash(hashes[-1], said, answered))
    return Conversation(
        history_hash_before=hashes[-1],
        user=user,
        user_key=digest(user),
        previous_user_key=digest(texts[-2] if texts else ""),
        unanswered_user_key=digest(unanswered) if unanswered else "",
        said=texts,
        hashes=hashes,
        answer=answer,
    )
