"""Messages about an undo, for the administrator who asked for it."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest

from memories.changes import Undone


def say_undone(page: Any, request: HttpRequest, undone: Undone) -> None:
    """Show what was changed back or removed, and what was left alone because it was changed since."""
    back = [f"{words} changed back" for words in _counted("1 memory was", "memories were", len(undone.undone))]
    back += [f"{words} changed back" for words in _counted("1 document was", "documents were", len(undone.documents))]
    back += _counted("1 conversation was removed", "conversations were removed", undone.conversations)
    back += _counted("1 proposal was withdrawn", "proposals were withdrawn", undone.proposals)
    _say(page, request, undone, [f"Undone. {words}." for words in back], "There was nothing to undo.")


def say_restored(page: Any, request: HttpRequest, undone: Undone) -> None:
    """Show what came back when an undo itself was undone."""
    back = _counted("1 memory is as it was", "memories are as they were", len(undone.undone))
    _say(
        page,
        request,
        undone,
        [f"Restored. {words} before the undo." for words in back],
        "There was nothing to restore.",
    )


def _say(page: Any, request: HttpRequest, undone: Undone, done: Sequence[str], nothing: str) -> None:
    for words in done:
        page.message_user(request, words, messages.SUCCESS)
    left = [*(f"memory {number}" for number in undone.skipped), *undone.documents_skipped]
    if left:
        page.message_user(request, f"Left alone, because it was changed since: {', '.join(left)}.", messages.WARNING)
    if not done and not left:
        page.message_user(request, nothing, messages.WARNING)


def _counted(one: str, many: str, number: int) -> list[str]:
    return [one if number == 1 else f"{number} {many}"] if number else []
