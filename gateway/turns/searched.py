"""Model servers that search the web or read documents themselves. Nothing shows the gateway what they read, so what the
model says then is no evidence for a memory."""

from collections.abc import Mapping
from typing import Any

from gateway.runs.utterances import SEARCHED
from gateway.upstream import ModelRequest

# OpenAI, xAI, OpenRouter, Perplexity, DashScope (Qwen)
_PARAMETERS = frozenset({"web_search_options", "search_parameters", "plugins", "search_domain_filter", "enable_search"})
_CITATIONS = ("citations", "search_results")  # of a whole answer: Perplexity, xAI
_OF_CLIENTS = ("function", "custom")  # types of tools whose results a client sends


def note_request(trace: dict[str, Any], request: ModelRequest) -> None:
    """Note in a run's trace if a request lets the model server read something itself."""
    on_server = not all(any(isinstance(tool.get(kind), dict) for kind in _OF_CLIENTS) for tool in request.tools)
    asked = (request.parameters.get(name) for name in _PARAMETERS)  # {} asks for a search, too
    if on_server or any(value not in (None, False, []) for value in asked):
        trace[SEARCHED] = True


def note_answer(trace: dict[str, Any], choice: Mapping[str, Any], around: Mapping[str, Any]) -> None:
    """Note in a run's trace if a piece of an answer cites what the model server has read."""
    part = choice.get("delta") or choice.get("message")
    cites = isinstance(part, dict) and part.get("annotations")
    if cites or any(around.get(name) for name in _CITATIONS):
        trace[SEARCHED] = True
