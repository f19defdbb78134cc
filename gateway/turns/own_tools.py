"""Our own tools in a turn: which ones a model step offers, and the execution of their calls."""

import json
from collections.abc import Mapping, Sequence
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
_FAILED = json.dumps(memory_tools.failure("memory_failed", "The memory did not respond. Go on without it."))


class OwnTools:
    """Our tools in one run: the `definitions` and `names` that its requests offer, and the memory `changes` that they
    made. `client_names` are the client's tools."""

    def __init__(self, context: TurnContext, options: TurnOptions, output: RunOutput, part_of: telemetry.Span) -> None:
        self._output, self._part_of = output, part_of
        self._client_tools = options.client_tools
        self.client_names = tool_names(options.client_tools)
        # A resumed run keeps the name that its guidance mentions; otherwise a client tool of that name has precedence.
        free_name = memory_tools.free_read_name(self.client_names)
        self.read_name: str = (context.injected or {}).get("read_tool") or free_name
        self.changes: list[dict[str, Any]] = []
        self.definitions = self._offered(context, options.parameters)
        self.names = frozenset(tool["function"]["name"] for tool in self.definitions)

    def _offered(self, context: TurnContext, parameters: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        agent = context.agent
        if parameters.get("n") not in (None, 1):
            return ()  # with several choices it is undefined whose calls to execute
        if parameters.get("functions"):
            return ()  # OpenAI's servers refuse tools beside them
        if asks_for_calls(parameters.get("tool_choice")):
            return ()  # a call of our tool would not satisfy the client's demand
        if context.book is None or not (agent.settings.memory_tools or agent.consolidation.enabled):
            return ()
        taken = self.client_names.intersection(memory_tools.TOOLS)
        return _definitions(agent.settings.memory_tools, self.read_name, taken)

    async def run(
        self, calls: Sequence[StepCall], context: TurnContext, injection: Injection
    ) -> tuple[Sequence[ToolCall], dict[str, str]]:
        """Execute those of a step's calls that are ours. Return them, under the names of our tools, and the results of
        all `calls` by id: those of invented tools tell the model which ones there are. Never raises."""
        meant = ((call, memory_tools.tool_meant(call.name, self.names)) for call in calls if not call.custom)
        own_calls = [replace(call, name=name) for call, name in meant if name in self.names]
        known = self.names | self.client_names
        results = {call.id: memory_tools.unknown_tool(call, known) for call in calls}
        if own_calls:
            results |= dict.fromkeys((call.id for call in own_calls), _FAILED)
            with contained("tools", self._output.trace):
                results |= await self._executed(own_calls, context, injection)
        return own_calls, results

    async def _executed(
        self, calls: Sequence[ToolCall], context: TurnContext, injection: Injection
    ) -> Mapping[str, str]:
        """Return the results of our calls. Writes are checked against the conversation so far and the injected
        memories."""
        named = [replace(call, name=memory_tools.READ.name) if call.name == self.read_name else call for call in calls]
        trace = self._output.trace  # counts go on if the run is resumed
        assert context.book is not None
        scope = ToolScope(
            book=context.book,
            search=context.agent.settings.memory_search,
            session_id=context.session_id,
            run_id=context.run_id,
            agent=context.agent.name,
            hold=Hold(context.agent.settings.memory_hold),
            held=trace.get(_HELD, 0),
        )
        if memory_tools.any_writes(named):
            conversation = await in_read_thread(conversation_of, context, self._output, injection, self._client_tools)
            scope = replace(scope, conversation=conversation)
        if may_embed(agent_upstreams(context.agent.settings)):
            vectors = await memory_tools.searched_vectors(named, context.owner_id, scope.book.name)
            scope = replace(scope, vectors=vectors)
        used = ",".join(call.name for call in named)
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": used}
        with telemetry.span("daybook.tool", attributes, parent=self._part_of):
            step = await memory_tools.run_in_lane(named, memory_tools.run_calls, named, scope)
        counts = {MISSED_QUOTES: scope.conversation.missed if scope.conversation else 0, _HELD: scope.held + step.held}
        trace |= {name: count for name, count in counts.items() if count}
        self.changes.extend(step.changes)
        return step.results

    async def all_changes(self, context: TurnContext) -> list[dict[str, Any]]:
        """Return the run's memory changes, including those from before it was resumed if they can be read."""
        if context.earlier.trace.get("steps"):
            with contained("changes", self._output.trace):
                return await in_read_thread(memory_tools.changes_of_run, context.owner_id, context.run_id)
        return self.changes


@lru_cache(_MAX_DEFINITION_SETS)
def _definitions(memory: bool, read_name: str, taken: frozenset[str]) -> tuple[dict[str, Any], ...]:
    ours = memory_tools.tools_of_turn(memory=memory)
    named = [replace(tool, name=read_name) if tool is memory_tools.READ else tool for tool in ours]
    return memory_tools.definitions(tool for tool in named if tool.name not in taken)
