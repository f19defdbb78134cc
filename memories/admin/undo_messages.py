"""Messages that tell an administrator the result of an undo."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest

from memories.history.undo import UndoResult
from memories.number_words import counted


def say_undone(page: Any, request: HttpRequest, undone: UndoResult) -> None:
    """Show what was undone, and what was left alone because it was changed since."""
    back = [
        f"{counted(number, *words)} {done}"
        for number, words, done in (
            (len(undone.undone), ("memory was", "memories were"), "changed back"),
            (len(undone.documents), ("document was", "documents were"), "changed back"),
            (undone.conversations, ("conversation was", "conversations were"), "removed"),
            (undone.proposals, ("proposal was", "proposals were"), "withdrawn"),
        )
        if number
    ]
    _say(page, request, undone, [f"Undone. {words}." for words in back], "There was nothing to undo.")


def say_restored(page: Any, request: HttpRequest, undone: UndoResult) -> None:
    """Show what was restored by undoing an undo."""
    number = len(undone.undone)
    words = counted(number, "memory is as it was", "memories are as they were")
    back = [f"Restored. {words} before the undo."] if number else []
    _say(page, request, undone, back, "There was nothing to restore.")


def _say(page: Any, request: HttpRequest, undone: UndoResult, done: Sequence[str], nothing: str) -> None:
    for words in done:
        page.message_user(request, words, messages.SUCCESS)
    left = [*(f"memory {number}" for number in undone.skipped), *undone.documents_skipped]
    if left:
        page.message_user(request, f"Left alone, because it was changed since: {', '.join(left)}.", messages.WARNING)
    if not done and not left:
        page.message_user(request, nothing, messages.WARNING)
