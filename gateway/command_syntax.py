"""The table and the syntax of `/memory` commands. A command must be the whole message; a message with other text is
sent to the model. gateway.commands executes them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.messages import has_media, text_of

COMMAND = "/memory"
# People try this in the chat; on /v1 it may be the client's own command.
NATIVE_HELP = "/help"
_MAX_WORD = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A verb and its description for people. With `confirmed` it has to be confirmed with a code."""

    verb: str
    about: str
    confirmed: bool = False

    @property
    def line(self) -> str:
        """The text that a person types."""
        return f"{COMMAND} {self.verb}"


COMMANDS = (
    Command(verb="view", about="Show exactly what the agent is given."),
    Command(verb="rebuild", about="Consolidate past sessions now."),
    Command(verb="enqueue", about="Same as rebuild."),
    Command(
        verb="clear",
        about="Delete all memory data of this book, after you confirm; it can be undone for some time.",
        confirmed=True,
    ),
    Command(verb="reset", about="Same as clear.", confirmed=True),
    Command(verb="help", about="Show this list."),
)
VERBS = tuple(command.verb for command in COMMANDS)
_CONFIRMED = "|".join(command.verb for command in COMMANDS if command.confirmed)
_WHOLE = re.compile(
    rf"{COMMAND}(?:[ \t]+(?:(?P<confirmed>{_CONFIRMED})[ \t]+confirm(?:[ \t]+(?P<code>\S{{1,{_MAX_WORD}}}))?"
    rf"|(?P<verb>\S{{1,{_MAX_WORD}}})))?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCommand:
    """A parsed command: its verb in lower case, and the confirmation code or "". `known` is False for a word that is
    not in the table; it is answered with the help."""

    verb: str
    code: str = ""
    known: bool = True


def parse_command(text: str, *, native: bool = False) -> ParsedCommand | None:
    """Return the command in a message, or None. `/memory` alone or with an unknown verb means help. With `native`, for
    messages of the page or the native API, so does `/help`."""
    text = text.strip()
    if native and len(text) == len(NATIVE_HELP) and text.lower() == NATIVE_HELP:
        return ParsedCommand(verb="help")
    match = _WHOLE.fullmatch(text)
    if match is None:
        return None
    verb = (match["confirmed"] or match["verb"] or "help").lower()
    if verb not in VERBS:
        return ParsedCommand(verb="help", known=False)
    return ParsedCommand(verb=verb, code=match["code"] or "")


def is_command(text: str) -> bool:
    """Return True if the whole message is a command."""
    return parse_command(text) is not None


def command_text(content: Any) -> str:
    """Return the text of content that consists of text only, otherwise "", since a command has no attachments."""
    return "" if has_media(content) else text_of(content)


def without_commands(messages: Sequence[dict[str, Any]]) -> tuple[tuple[dict[str, Any], ...], tuple[str, str] | None]:
    """Return a conversation without commands and their answers, which are never sent upstream, and the last answered
    command with its answer."""
    others, last = [], None
    command, is_waiting = "", False
    for message in messages:
        role = message.get("role")
        if role == "user":
            text = command_text(message.get("content"))
            command, is_waiting = (text, True) if is_command(text) else ("", False)
        if not command or role not in {"user", "assistant"}:
            others.append(message)
        elif role == "assistant" and is_waiting:
            last, is_waiting = (command, command_text(message.get("content"))), False
    return tuple(others), last
