"""What counts as a `/memory` command: the whole message, nothing around it; anything else that begins so is talk about
one and goes to the model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

COMMAND = "/memory"
VERBS = ("view", "clear", "reset", "enqueue", "rebuild", "help")
_WHOLE = re.compile(
    rf"{COMMAND}(?:[ \t]+(?P<verb>{'|'.join(VERBS)}))?"
    r"(?:(?<=clear|reset)[ \t]+confirm[ \t]+(?P<code>[A-Za-z0-9]{4,32}))?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCommand:
    """A command as it was typed: its verb in small letters, and the code of a confirmation, "" for none."""

    verb: str
    code: str = ""


def parse_command(text: str) -> ParsedCommand | None:
    """The command that a message is, or None. `/memory` alone asks for help."""
    match = _WHOLE.fullmatch(text.strip())
    if match is None:
        return None
    return ParsedCommand(verb=(match["verb"] or "help").lower(), code=match["code"] or "")


def is_command(text: str) -> bool:
    """Whether a message is a command and not talk about one."""
    return parse_command(text) is not None


def command_text(content: Any) -> str:
    """The text of a message's content if it is text alone, else "": a command comes without pictures."""
    if isinstance(content, list):
        if any(not isinstance(part, dict) or part.get("type") != "text" for part in content):
            return ""
        return "\n".join(str(part.get("text", "")) for part in content)
    return content if isinstance(content, str) else ""


def answered_command(messages: Sequence[dict[str, Any]]) -> tuple[str, str] | None:
    """The last command of a resent conversation that stands there with its answer, and that answer."""
    found, command = None, ""
    for message in messages:
        text = command_text(message.get("content"))
        if message.get("role") == "user":
            command = text if is_command(text) else ""
        elif message.get("role") == "assistant" and command:
            found, command = (command, text), ""
    return found


def without_commands(messages: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """A resent conversation without its commands and their answers: they never go upstream."""
    kept = []
    answering = False
    for message in messages:
        role = message.get("role")
        if role == "user":
            answering = is_command(command_text(message.get("content")))
        if not answering or role not in {"user", "assistant"}:
            kept.append(message)
    return tuple(kept)
