"""What an undo did, said to the administrator who asked for it."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest

from memories.changes import Undone


def say_undone(page: Any, request: HttpRequest, undone: Undone) -> None:
    """Show how many memories were taken back, and which were left alone because they were changed since."""
    if undone.undone:
        count = "1 memory was" if len(undone.undone) == 1 else f"{len(undone.undone)} memories were"
        page.message_user(request, f"Undone. {count} taken back.", messages.SUCCESS)
    if undone.left_alone:
        numbers = ", ".join(map(str, undone.left_alone))
        page.message_user(request, f"Left alone, because it was changed since: memory {numbers}.", messages.WARNING)
    if not undone.undone and not undone.left_alone:
        page.message_user(request, "There was nothing to take back.", messages.WARNING)
