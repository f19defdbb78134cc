"""About how many tokens a request takes, for the APIs that let a client ask. No model is asked."""

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


def tokens_given(body: CompletionBody) -> int:
    """Return about how many tokens a request holds, without what Daybook adds to it."""
    return estimate(body.messages) + _tokens_of(body.tools)


def tokens_sent(caller: Caller, body: CompletionBody, *, turn: bool) -> int:
    """Return about how many tokens the first model step would get. Uses the database. Raises ModelNotFound,
    Unauthorized."""
    agent = agent_find(caller, body.agent)
    counted = tokens_given(body)
    if not turn:
        return counted
    config = agent_config(agent)
    counted += text_tokens(config.settings.instructions)
    book = book_state_if_made(caller.owner_id, agent.book) if caller.remembers else None
    if caller.remembers and (config.settings.memory_tools or config.consolidation.enabled):
        ours = memory_tools.tools_of_turn(memory=config.settings.memory_tools)
        counted += _tokens_of(memory_tools.definitions(ours))
    return counted + (text_tokens(injected_blocks(book, config)) if book else 0)


def _tokens_of(tools: Sequence[dict[str, Any]]) -> int:
    return text_tokens(json.dumps(tools, ensure_ascii=False)) if tools else 0
