"""Calls of the tools: their arguments are checked and their handlers run.
A step's writes are one change set, applied in order; a refusal is a result the model can act on, never an exception."""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from memories.errors import DomainError
from memories.json_input import read_json
from memories.models import Book, ChangeSet, WriteOrigin
from memories.services import Source, book_writing
from memories.tools.table import TOOLS
from memories.tools.tool import Arguments, StepResult, Tool, ToolCall, ToolRun, ToolScope, failure


def run_calls(calls: Sequence[ToolCall], scope: ToolScope) -> StepResult:
    """Run a step's calls in order, its writes as one change set. Synchronous; uses the database."""
    step = StepResult()
    source = Source(
        actor=scope.actor,
        origin=WriteOrigin.TOOL,
        kind=ChangeSet.Kind.TOOL,
        session_id=scope.session_id,
        run_id=scope.run_id,
    )
    with book_writing(Book(pk=scope.book.book_id), source) as writer:
        run = ToolRun(scope, writer, step)
        for call in calls:
            step.results[call.id] = json.dumps(_result(call, run), ensure_ascii=False)
    for change in step.changes:
        change["change_set"] = str(writer.change_set.pk) if writer.change_set else None
    return step


def parse_arguments(tool: Tool, call: ToolCall) -> Arguments | dict[str, Any]:
    """The checked arguments of a call, or the error result that tells the model what to correct."""
    try:
        return tool.arguments.model_validate_json(_storable_json(call.arguments or "{}"))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "arguments"
        return failure(
            "invalid_arguments",
            f"{where}: {first['msg']}. Call {call.name} again with the arguments of its schema.",
        )


def unknown_tool(call: ToolCall) -> str:
    """The result, as JSON text, of a call of a tool that nobody offered."""
    return json.dumps(_no_such_tool(call), ensure_ascii=False)


def _result(call: ToolCall, run: ToolRun) -> dict[str, Any]:
    tool = TOOLS.get(call.name)
    if tool is None:
        return _no_such_tool(call)
    arguments = parse_arguments(tool, call)
    return arguments if isinstance(arguments, dict) else tool.handler(run, arguments)


def _no_such_tool(call: ToolCall) -> dict[str, Any]:
    return failure("unknown_tool", f"There is no tool called {call.name}.")


def _storable_json(text: str) -> str:
    """JSON without escaped NULs; what is not JSON stays as it is, to be refused."""
    if "\\u0000" not in text:
        return text
    try:
        return json.dumps(read_json(text, repair=True))
    except DomainError:
        return text
