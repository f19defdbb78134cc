"""Our own tools in a turn: which ones a model step offers, and the execution of their calls."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from gateway import telemetry
from gateway.agents.model_choice import agent_upstreams, may_embed
from gateway.runs.client_tools import asks_for_calls
from gateway.runs.context import RunOutput, TurnContext
from gateway.tool_calls import tool_names
from gateway.turns.events import TurnOptions
from gateway.turns.evidence import MISSED_QUOTES, conversation_of
from gateway.upstream.calls import StepCall
from memories import tools as memory_tools
from memories.database.access import in_read_thread
from memories.evidence import Hold
from memories.recall.failures import contained
from memories.recall.two_lanes import Injection
from memories.tools import ToolCall, ToolScope

_HELD = "held"  # key in a run's trace: how many of its writes wait for the person's decision
_MAX_DEFINITION_SETS = 64  # client tools that share names with ours create further sets


class OwnTools:
    """Our tools in one run. `client_names` are the client's tools; `changes` are the memory changes made by ours."""

    def __init__(self, context: TurnContext, options: TurnOptions) -> None:
        self._client_tools = options.client_tools
        self.client_names = tool_names(options.client_tools)
        # A resumed run keeps the name that its guidance mentions; otherwise a client tool of that name has precedence.
        free_name = memory_tools.free_read_name(self.client_names)
        self.read_name: str = (context.injected or {}).get("read_tool") or free_name
        self.changes: list[dict[str, Any]] = []

    def offered(self, context: TurnContext, parameters: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Return the definitions of our tools to offer in a request with the client's `parameters`."""
        agent = context.agent
        if parameters.get("n") not in (None, 1):
            return ()  # with several choices it is undefined whose calls to execute
        if asks_for_calls(parameters.get("tool_choice")):
            return ()  # a call of our tool would not satisfy the client's demand
        if context.book is None or not (agent.settings.memory_tools or agent.consolidation.enabled):
            return ()
        taken = self.client_names.intersection(memory_tools.TOOLS)
        return _definitions(agent.settings.memory_tools, self.read_name, taken)

    async def run(
        self,
        calls: Sequence[ToolCall],
        context: TurnContext,
        output: RunOutput,
        injection: Injection,
        part_of: telemetry.Span,
    ) -> dict[str, str]:
        """Execute the calls of a step and return their results by call id. Writes are checked against the conversation
        so far and the injected memories."""
        named = [replace(call, name=memory_tools.READ.name) if call.name == self.read_name else call for call in calls]
        trace = output.trace  # counts go on if the run is resumed
        scope = self._scope(context, held=trace.get(_HELD, 0))
        if memory_tools.any_writes(named):
            conversation = await in_read_thread(conversation_of, context, output, injection, self._client_tools)
            scope = replace(scope, conversation=conversation)
        if may_embed(agent_upstreams(context.agent.settings)):
            vectors = await memory_tools.searched_vectors(named, context.owner_id, scope.book.name)
            scope = replace(scope, vectors=vectors) if vectors else scope
        used = ",".join(call.name for call in named)
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": used}
        with telemetry.span("daybook.tool", attributes, parent=part_of):
            step = await memory_tools.run_in_lane(named, memory_tools.run_calls, named, scope)
        counts = {MISSED_QUOTES: scope.conversation.missed if scope.conversation else 0, _HELD: scope.held + step.held}
        trace |= {name: count for name, count in counts.items() if count}
        self.changes.extend(step.changes)
        return step.results

    async def all_changes(self, context: TurnContext, trace: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the run's memory changes, including those from before it was resumed if they can be read."""
        if context.earlier.trace.get("steps"):
            with contained("changes", trace):
                return await in_read_thread(memory_tools.changes_of_run, context.owner_id, context.run_id)
        return self.changes

    def _scope(self, context: TurnContext, *, held: int) -> ToolScope:
        assert context.book is not None
        return ToolScope(
            book=context.book,
            search=context.agent.settings.memory_search,
            session_id=context.session_id,
            run_id=context.run_id,
            agent=context.agent.name,
            hold=Hold(context.agent.settings.memory_hold),
            held=held,
        )


def own_calls_of(calls: Iterable[StepCall], own_names: Collection[str]) -> list[StepCall]:
    """Return the calls of our tools, with the names under which the tools are offered."""
    meant = ((call, memory_tools.tool_meant(call.name, own_names)) for call in calls if not call.custom)
    return [replace(call, name=name) for call, name in meant if name in own_names]


@lru_cache(_MAX_DEFINITION_SETS)
def _definitions(memory: bool, read_name: str, taken: frozenset[str]) -> tuple[dict[str, Any], ...]:
    ours = memory_tools.tools_of_turn(memory=memory)
    named = [replace(tool, name=read_name) if tool is memory_tools.READ else tool for tool in ours]
    return memory_tools.definitions(tool for tool in named if tool.name not in taken)
