"""What counts as a `/memory` command: the whole message, nothing around it."""

COMMAND = "/memory"


def is_command(text: str) -> bool:
    """Whether a message is a command and not talk about one."""
    return text.strip() == COMMAND or (text.strip().startswith(COMMAND + " ") and "\n" not in text.strip())
