"""Execution of tool calls: arguments are validated and handlers run. The writes of a turn form one change set and are
applied in order. Refusals are results that the model can act on, never exceptions.

A step that only reads takes no lock and waits for no writer. For a step that writes, arguments are parsed and texts are
scanned before the book is locked (`run_in_lane`)."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from pydantic import ValidationError

from memories.database.access import in_read_thread, in_thread
from memories.entry_rules import clean_content, clean_keywords
from memories.errors import DomainError
from memories.evidence import HeldWrites, proposal_store
from memories.json_input import read_json
from memories.limits import TOOL_ARGUMENTS
from memories.model_json import located_objects_in
from memories.models import Book, ChangeSet, WriteOrigin
from memories.recall.query_vectors import query_vectors
from memories.services import Source, book_writing
from memories.tools.reading import SEARCH_MEMORIES, SearchMemories
from memories.tools.table import TOOLS
from memories.tools.tool import Arguments, Tool, ToolCall, ToolResults, ToolRun, ToolScope, failure
from memories.tools.writing import AddMemory, UpdateMemory
from memories.verdicts import INLINE_SCAN_CHARS, verdict_of

TURNED_DOWN = "The person was asked about this before and did not want it. Do not try again; go on."
_MAX_NAME = 100  # characters of an invented name that are repeated to the model
_MAX_NAMED = 50
_MAX_REPAIRED = 20_000  # characters of arguments that are not JSON in which an object is looked for
CLEARED = failure(
    "book_cleared", "Everything was cleared or forgotten since this turn began. Nothing was written. Go on without it."
)
P = ParamSpec("P")
T = TypeVar("T")


async def run_in_lane(calls: Sequence[ToolCall], function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that executes these calls: in the read lane if none of them writes, else in the write lane, after
    scanning long texts."""
    if not any_writes(calls):
        return await in_read_thread(function, *args, **kwargs)
    if any(len(call.arguments) > INLINE_SCAN_CHARS for call in calls):
        await in_read_thread(_scan_ahead, calls)
    return await in_thread(function, *args, **kwargs)


async def searched_vectors(calls: Sequence[ToolCall], owner_id: UUID, book: str) -> Mapping[str, Sequence[float]]:
    """Return the query vectors of the searches among these calls, by text."""
    searches = (_checked(call) for call in calls if call.name == SEARCH_MEMORIES.name)
    queries = [arguments.query for arguments in searches if isinstance(arguments, SearchMemories)]
    return await query_vectors(owner_id, book, queries)


def run_calls(calls: Sequence[ToolCall], scope: ToolScope) -> ToolResults:
    """Execute the calls of a step in order; writes join the change set of the turn. Synchronous; uses the database."""
    checked = [(call, _checked(call)) for call in calls]
    step, held = ToolResults(), HeldWrites(session_id=scope.session_id, agent=scope.agent)
    if any_writes(calls):
        results = _write(checked, scope, step, held)
    else:
        run = ToolRun(scope, Book.objects.get(pk=scope.book.book_id), None, step, held)
        results = {call.id: _result(call, arguments, run) for call, arguments in checked}
    step.held = len(held.proposals)
    step.results = {call_id: json.dumps(result, ensure_ascii=False) for call_id, result in results.items()}
    return step


def parse_arguments(tool: Tool, call: ToolCall) -> Arguments | dict[str, Any]:
    """Return the validated arguments of a call, or an error result that tells the model what to correct."""
    if len(call.arguments) > TOOL_ARGUMENTS:
        return failure("invalid_arguments", f"The arguments of a call have at most {TOOL_ARGUMENTS} characters.")
    try:
        return _validated(tool, _storable_json(_object_text(call.arguments)))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "arguments"
        wrong = f"{where}: {first['msg'].removeprefix('Value error, ')}"
        return failure("invalid_arguments", f"{wrong}. Call {call.name} again with the arguments of its schema.")


def _validated(tool: Tool, text: str) -> Arguments:
    """Return the arguments in a JSON text, also if small models wrote around it or broke lines within strings, or if
    servers sent it twice or after an empty object. Raises ValidationError."""
    try:
        return tool.arguments.model_validate_json(text)
    except ValidationError as error:
        if error.errors(include_input=False, include_url=False)[0]["type"] != "json_invalid":
            raise
        found = list(located_objects_in(text)) if len(text) <= _MAX_REPAIRED else []
        given = [data for _, _, data in found if data] or [data for _, _, data in found]
        is_cut_off = any("{" in before for _, before, _ in found)
        if not given or given != given[:1] * len(given) or is_cut_off:
            raise  # nothing, several, or one within an object that was cut off
        return tool.arguments.model_validate_json(_storable_json(json.dumps(given[0])))


def unknown_tool(call: ToolCall, known: Iterable[str]) -> str:
    """Return the result of a call of an unknown tool, as JSON text that names the `known` ones."""
    refusal = _no_such_tool(call)
    names = ", ".join(sorted(known)[:_MAX_NAMED])
    return json.dumps(
        refusal | ({"message": f"{refusal['message']} There are: {names}."} if names else {}), ensure_ascii=False
    )


def any_writes(calls: Sequence[ToolCall]) -> bool:
    """Return True if one of these calls writes."""
    return any(call.name in TOOLS and TOOLS[call.name].writes for call in calls)


def _scan_ahead(calls: Sequence[ToolCall]) -> None:
    """Scan the texts that these calls will write. Errors are ignored here, as the handlers find them again."""
    for arguments in map(_checked, calls):
        if isinstance(arguments, AddMemory | UpdateMemory):
            with suppress(DomainError):
                verdict_of(clean_content(arguments.content), clean_keywords(arguments.keywords or ()))


def _write(
    checked: Sequence[tuple[ToolCall, Arguments | dict[str, Any]]],
    scope: ToolScope,
    step: ToolResults,
    held: HeldWrites,
) -> dict[str, dict[str, Any]]:
    source = Source(
        actor=scope.actor,
        origin=WriteOrigin.TOOL,
        kind=ChangeSet.Kind.TOOL,
        session_id=scope.session_id,
        run_id=scope.run_id,
        hold=scope.hold,
    )
    if scope.conversation is not None:
        scope.conversation.prepare()  # before the lock is taken
    with book_writing(Book(pk=scope.book.book_id), source) as writer:
        run = ToolRun(scope, writer.book, writer, step, held)
        is_as_read = writer.book.epoch == scope.book.epoch
        results = {
            call.id: _result(call, arguments, run) if is_as_read or not any_writes([call]) else dict(CLEARED)
            for call, arguments in checked
        }
    for change in step.changes:
        change["change_set"] = str(writer.change_set.pk) if writer.change_set else None
    if held.proposals:
        # Not under the book's lock.
        asked_before = proposal_store().keep(writer.book, held)
        for result in results.values():
            if earlier := asked_before.get(result.get("proposal_id", "")):
                result |= {"proposal_id": earlier.id} | ({"message": TURNED_DOWN} if earlier.rejected else {})
    return results


def _checked(call: ToolCall) -> Arguments | dict[str, Any]:
    tool = TOOLS.get(call.name)
    return _no_such_tool(call) if tool is None else parse_arguments(tool, call)


def _result(call: ToolCall, arguments: Arguments | dict[str, Any], run: ToolRun) -> dict[str, Any]:
    return arguments if isinstance(arguments, dict) else TOOLS[call.name].handler(run, arguments)


def _no_such_tool(call: ToolCall) -> dict[str, Any]:
    return failure("unknown_tool", f"There is no tool called {call.name[:_MAX_NAME]}.")


def _object_text(text: str) -> str:
    """Return the arguments of a call as the JSON text of an object: some servers encode it as a JSON string, even
    twice. An empty text and `null` become an empty object."""
    text = text.strip()
    for _ in range(2):
        if not text.startswith('"'):
            break
        try:
            text = str(json.loads(text)).strip()
        except (ValueError, RecursionError):
            break
    return "{}" if text in {"", "null"} else text


def _storable_json(text: str) -> str:
    """Return JSON without escaped NULs. Text that is not JSON is returned unchanged and refused later."""
    if "\\u0000" not in text:
        return text
    try:
        return json.dumps(read_json(text, repair=True))
    except DomainError:
        return text
