"""The memory tools: their table (`table`), the tools themselves (`writing`, `reading`, `documents`), and the execution
of calls (`calls`). Used by gateway.turns.engine, gateway.mcp and reviews.staged."""

from memories.tools.calls import any_writes, parse_arguments, run_calls, run_in_lane, searched_vectors, unknown_tool
from memories.tools.documents import READ, free_read_name
from memories.tools.table import TOOLS, definitions, tool_meant, tools_at, tools_of_turn
from memories.tools.tool import Stage, Tool, ToolCall, ToolScope, failure, output_schema
from memories.tools.writing import change_json, changes_of_run, memory_number
