"""Token estimates for requests, for the token counting endpoints. No model is called."""

import json
from collections.abc import Sequence
from typing import Any

from gateway.agents.rows import agent_find
from gateway.api.openai_body import CompletionBody
from gateway.runs.context import agent_config
from gateway.tokens import estimate
from gateway.turns.injection import injected_blocks
from memories import tools as memory_tools
from memories.books import book_state_if_made
from memories.caller import Caller
from memories.tokens import text_tokens


def estimate_request(body: CompletionBody) -> int:
    """Return the estimated tokens of a request without what Daybook adds."""
    return estimate(body.messages) + _tool_tokens(body.tools)


def estimate_with_memory(caller: Caller, body: CompletionBody, *, turn: bool) -> int:
    """Return the estimated tokens of the first model step, with what Daybook adds if the request is a turn. Uses the
    database. Raises ModelNotFound, Unauthorized."""
    agent = agent_find(caller, body.agent)
    tokens = estimate_request(body)
    if not turn:
        return tokens
    config = agent_config(agent)
    tokens += text_tokens(config.settings.instructions)
    book = book_state_if_made(caller.owner_id, agent.book) if caller.remembers else None
    if caller.remembers and (config.settings.memory_tools or config.consolidation.enabled):
        own_tools = memory_tools.tools_of_turn(memory=config.settings.memory_tools)
        tokens += _tool_tokens(memory_tools.definitions(own_tools))
    return tokens + (text_tokens(injected_blocks(book, config)) if book else 0)


def _tool_tokens(tools: Sequence[dict[str, Any]]) -> int:
    return text_tokens(json.dumps(tools, ensure_ascii=False)) if tools else 0
