"""Numbers with their words, as pages, the admin, commands and notifications write them."""


def counted(number: int, one: str, many: str = "") -> str:
    """`1 session`, `3,000 sessions`; `many` is the plural that is not made with an s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def memories(number: int) -> str:
    """`1 memory`, `3 memories`."""
    return counted(number, "memory", "memories")


def times(number: int) -> str:
    """`once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")
