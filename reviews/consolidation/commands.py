"""The `/memory` verbs of consolidation: clear and reset, which need a confirmation code, and enqueue and rebuild."""

from django.conf import settings

from gateway.command_syntax import COMMAND
from gateway.commands import CommandCall, CommandReply, register_handler
from memories.database.batches import Slices
from memories.errors import Conflict
from memories.models import Book
from memories.number_words import counted, memories
from reviews.consolidation.clear import CODE_MINUTES, Contents, clear_code_create, clear_confirmed, contents_of
from reviews.consolidation.requests import Trigger, consolidation_request
from reviews.consolidation.standing import standing_of
from reviews.models import ConsolidationRun

_TEMPORARY = "Temporary session. No memory is read and none is saved, so there is nothing to do here."


def register_commands() -> None:
    """Register the verbs' handlers; called from the AppConfig's ready()."""
    for verb, handler in (("clear", _clear), ("reset", _clear), ("enqueue", _rebuild), ("rebuild", _rebuild)):
        register_handler(verb, handler)


def _clear(call: CommandCall) -> Slices[CommandReply]:
    if call.temporary:
        return CommandReply(text=_TEMPORARY)
    book = _book(call)
    if not call.command.code:
        return CommandReply(text=_ask(book, call.command.verb))
    try:
        cleared = yield from clear_confirmed(book, call.command.code, actor=call.caller.actor)
    except Conflict as refused:
        return CommandReply(text=f"Nothing was deleted. {refused} `{COMMAND} {call.command.verb}` returns one.")
    text = (
        f"Deleted {_words(cleared.contents)} in book {book.name}. "
        f"You can undo this for {settings.UNDO_DAYS} days on the Memories page, "
        f"or with change set {cleared.change_set}."
    )
    return CommandReply(text=text, changes=cleared.changes)


def _ask(book: Book, verb: str) -> str:
    contents = contents_of(book)
    if not (contents.memories or contents.documents or contents.sessions or contents.proposals):
        return f"Book {book.name} is empty. There is nothing to delete."
    code = clear_code_create(book)
    return (
        f"This deletes {_words(contents)} in book {book.name}. Nothing is deleted yet. To confirm, send within "
        f"{CODE_MINUTES} minutes:\n\n`{COMMAND} {verb} confirm {code}`\n\n"
        f"You can undo it for {settings.UNDO_DAYS} days on the Memories page."
    )


def _rebuild(call: CommandCall) -> CommandReply:
    if call.temporary:
        return CommandReply(text=_TEMPORARY)
    book = _book(call)
    try:
        run = consolidation_request(book, trigger=Trigger.REQUEST, actor=call.caller.actor, force=True)
    except Conflict as refused:
        return CommandReply(text=str(refused))
    standing = standing_of(book, force=True)
    if run.state == ConsolidationRun.State.SCHEDULED and not run.selected:
        none = "" if standing.ready else " No session can be read now, so it uses the existing notes."
        text = f"Consolidation of book {book.name} is scheduled.{none} {standing.text} Memories shows its progress."
        return CommandReply(text=text)
    done = f"{run.sessions_done} of {run.sessions_total} sessions"
    return CommandReply(text=f"Consolidation of book {book.name} is under way: {done}. {standing.text}")


def _book(call: CommandCall) -> Book:
    return Book.objects.select_related("owner").get(pk=call.book.book_id, owner_id=call.caller.owner_id)


def _words(contents: Contents) -> str:
    waiting = f", the proposals of {counted(contents.proposals, 'review')}" if contents.proposals else ""
    return (
        f"{memories(contents.memories)}, {counted(contents.documents, 'document')}{waiting} "
        f"and the notes of {counted(contents.sessions, 'session')}"
    )
