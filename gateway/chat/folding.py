"""Long messages of people, which the chat page shows folded. static/gateway/fold.js has the same rule."""

LINES = 30
CHARACTERS = 3_000


def folded_size(text: str) -> str:
    """Return the size of a text that is shown folded, as "50 kB" or "31 lines"; "" for one that is not."""
    lines = text.count("\n") + 1
    if lines <= LINES and len(text) <= CHARACTERS:
        return ""
    size = len(text.encode(errors="replace"))
    return f"{round(size / 1000)} kB" if size >= 1000 else f"{lines} lines"
