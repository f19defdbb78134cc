"""Messages about an undo, for the administrator who asked for it."""

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
    for words in back:
        page.message_user(request, f"Undone. {words}.", messages.SUCCESS)
    left = [*(f"memory {number}" for number in undone.skipped), *undone.documents_skipped]
    if left:
        page.message_user(request, f"Left alone, because it was changed since: {', '.join(left)}.", messages.WARNING)
    if not back and not left:
        page.message_user(request, "There was nothing to undo.", messages.WARNING)


def say_restored(page: Any, request: HttpRequest, undone: Undone) -> None:
    """Show what came back when an undo itself was undone."""
    for words in _counted("1 memory is as it was", "memories are as they were", len(undone.undone)):
        page.message_user(request, f"Restored. {words} before the undo.", messages.SUCCESS)
    if undone.skipped:
        left = ", ".join(f"memory {number}" for number in undone.skipped)
        page.message_user(request, f"Left alone, because it was changed since: {left}.", messages.WARNING)
    elif not undone.undone:
        page.message_user(request, "There was nothing to restore.", messages.WARNING)


def _counted(one: str, many: str, number: int) -> list[str]:
    return [one if number == 1 else f"{number} {many}"] if number else []
