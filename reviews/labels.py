"""Sentences about reviews, for notifications."""

from collections.abc import Iterable

from memories.number_words import memories
from reviews.writes import ReviewWrite, WriteState


def saved_text(writes: Iterable[ReviewWrite]) -> str:
    """Return the sentence of a verbose review; empty when nothing is different after it."""
    kept, gone = counts(applied(writes))
    if kept:
        return f"Saved {memories(kept)} from your last conversation."
    return f"Removed {memories(gone)} after your last conversation." if gone else ""


def waiting_text(writes: Iterable[ReviewWrite], *, who: str = "A review") -> str:
    """Return the sentence about writes that wait for a person; `who` wants them."""
    kept, gone = counts(writes)
    return f"{who} wants to {'save' if kept else 'remove'} {memories(kept or gone)}."


def applied(writes: Iterable[ReviewWrite]) -> list[ReviewWrite]:
    """Return those of the writes that were saved and are in effect."""
    return [write for write in writes if write.state == WriteState.APPLIED]


def counts(writes: Iterable[ReviewWrite]) -> tuple[int, int]:
    """Return how many memories are saved (added or updated), and how many removed, after these writes in their order.
    One that is changed twice counts once; one that is added and deleted again not at all."""
    kept: dict[str, str] = {}
    for write in writes:
        key, before = write.key, kept.get(write.key)
        if write.action != "delete":
            kept[key] = "add" if before == "add" else write.action
        elif before == "add":
            del kept[key]
        else:
            kept[key] = "delete"
    gone = sum(1 for action in kept.values() if action == "delete")
    return len(kept) - gone, gone
