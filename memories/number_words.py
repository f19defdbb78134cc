"""Counts with nouns, for pages, the admin, commands and notifications."""


def counted(number: int, singular: str, plural: str = "") -> str:
    """`1 session`, `3,000 sessions`. Give `plural` if it is not formed with an s."""
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"


def memories(number: int) -> str:
    """`1 memory`, `3 memories`."""
    return counted(number, "memory", "memories")


def times(number: int) -> str:
    """`once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")
