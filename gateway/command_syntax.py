"""The `/memory` commands: their table, and what counts as one. A command is a whole message; a message with more text
around a command is sent to the model. What they do is registered in gateway.commands."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

COMMAND = "/memory"
# People try this one in the chat; on /v1 it may be a command of the client's own.
NATIVE_HELP = "/help"
_MOST_WORD = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One verb, and what it does, in words for people. `confirmed`: it takes the code of a confirmation."""

    verb: str
    about: str
    confirmed: bool = False

    @property
    def line(self) -> str:
        """What a person types."""
        return f"{COMMAND} {self.verb}"


COMMANDS = (
    Command(verb="view", about="Show exactly what the agent is given."),
    Command(verb="rebuild", about="Consolidate past sessions now."),
    Command(verb="enqueue", about="The same as rebuild."),
    Command(
        verb="clear",
        about="Delete all memory data of this book, after you confirm; it can be undone for a time.",
        confirmed=True,
    ),
    Command(verb="reset", about="The same as clear.", confirmed=True),
    Command(verb="help", about="Show this list."),
)
VERBS = tuple(command.verb for command in COMMANDS)
_CONFIRMED = "|".join(command.verb for command in COMMANDS if command.confirmed)
_WHOLE = re.compile(
    rf"{COMMAND}(?:[ \t]+(?:(?P<confirmed>{_CONFIRMED})[ \t]+confirm(?:[ \t]+(?P<code>\S{{1,{_MOST_WORD}}}))?"
    rf"|(?P<verb>\S{{1,{_MOST_WORD}}})))?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCommand:
    """A command as it was typed: its verb in small letters, and the code of a confirmation, "" for none.
    `known` is False for a word that is not in the table; it is answered with the help."""

    verb: str
    code: str = ""
    known: bool = True


def parse_command(text: str, *, native: bool = False) -> ParsedCommand | None:
    """Return the command that a message is, or None. `/memory` alone, or with an unknown verb, asks for help. `native`:
    sent by the page or the native API, where `/help` does so too."""
    text = text.strip()
    if native and text.lower() == NATIVE_HELP:
        return ParsedCommand(verb="help")
    match = _WHOLE.fullmatch(text)
    if match is None:
        return None
    verb = (match["confirmed"] or match["verb"] or "help").lower()
    if verb not in VERBS:
        return ParsedCommand(verb="help", known=False)
    return ParsedCommand(verb=verb, code=match["code"] or "")


def is_command(text: str) -> bool:
    """Return True if a message is a command, and not a sentence about one."""
    return parse_command(text) is not None


def command_text(content: Any) -> str:
    """Return the text of a message's content if it is text alone, else "": a command comes without pictures."""
    if isinstance(content, list):
        if any(not isinstance(part, dict) or part.get("type") != "text" for part in content):
            return ""
        return "\n".join(str(part.get("text", "")) for part in content)
    return content if isinstance(content, str) else ""


def answered_command(messages: Sequence[dict[str, Any]]) -> tuple[str, str] | None:
    """Return the last command of a resent conversation that stands there with its answer, and that answer."""
    found, command = None, ""
    for message in messages:
        text = command_text(message.get("content"))
        if message.get("role") == "user":
            command = text if is_command(text) else ""
        elif message.get("role") == "assistant" and command:
            found, command = (command, text), ""
    return found


def without_commands(messages: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return a resent conversation without its commands and their answers: they never go upstream."""
    kept = []
    answering = False
    for message in messages:
        role = message.get("role")
        if role == "user":
            answering = is_command(command_text(message.get("content")))
        if not answering or role not in {"user", "assistant"}:
            kept.append(message)
    return tuple(kept)
