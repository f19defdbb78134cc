"""Texts of the notifications about reviews."""

from collections.abc import Iterable

from memories.number_words import memories
from reviews.writes import ReviewWrite, WriteState


def saved_text(writes: Iterable[ReviewWrite]) -> str:
    """Return what a verbose review reports; empty if it changed nothing."""
    saved, removed = counts(applied(writes))
    if saved:
        return f"Saved {memories(saved)} from your last conversation."
    return f"Removed {memories(removed)} after your last conversation." if removed else ""


def waiting_text(writes: Iterable[ReviewWrite], *, requester: str) -> str:
    """Return the sentence that asks a person to approve writes."""
    saved, removed = counts(writes)
    return f"{requester} wants to {'save' if saved else 'remove'} {memories(saved or removed)}."


def applied(writes: Iterable[ReviewWrite]) -> list[ReviewWrite]:
    """Return the writes that were saved and are in effect."""
    return [write for write in writes if write.state == WriteState.APPLIED]


def counts(writes: Iterable[ReviewWrite]) -> tuple[int, int]:
    """Return how many memories the writes, taken in order, save (add or update) and how many they remove. A memory
    that is changed twice counts once; one that is added and deleted again does not count."""
    net: dict[str, str] = {}
    for write in writes:
        key, before = write.key, net.get(write.key)
        if write.action != "delete":
            net[key] = "add" if before == "add" else write.action
        elif before == "add":
            del net[key]
        else:
            net[key] = "delete"
    removed = sum(1 for action in net.values() if action == "delete")
    return len(net) - removed, removed
