"""Model servers that search the web or read documents themselves. Nothing shows the gateway what they read, so what the
model says then is no evidence for a memory."""

import re
from collections.abc import Mapping
from typing import Any

from gateway.runs.utterances import SEARCHED
from gateway.upstream import ModelRequest, ModelTarget
from gateway.upstream.dialects import dialect_of

# OpenAI, xAI, OpenRouter, Perplexity, DashScope (Qwen)
_PARAMETERS = frozenset({"web_search_options", "search_parameters", "plugins", "search_domain_filter", "enable_search"})
_CITATIONS = ("citations", "search_results")  # of a whole answer: Perplexity, xAI
_OF_CLIENTS = ("function", "custom")  # types of tools whose results a client sends
_SEARCHING = re.compile(r":online\b|\bsonar\b|\bcompound\b|-search\b")  # models of OpenRouter, Perplexity, Groq, OpenAI


def note_request(trace: dict[str, Any], request: ModelRequest) -> None:
    """Note in a run's trace if a request lets a model server that may answer it read something itself."""
    for target in ModelTarget(request.upstream, request.model, request.fallbacks).all:
        sent = {**request.parameters, "tools": request.tools, **dialect_of(target.upstream).set}
        asked = any(sent.get(name) not in (None, False, []) for name in _PARAMETERS)  # {} asks for a search, too
        if asked or not all(map(_is_of_client, sent["tools"] or ())) or _SEARCHING.search(target.model):
            trace[SEARCHED] = True


def _is_of_client(tool: Mapping[str, Any]) -> bool:
    return tool.get("type", "function") in _OF_CLIENTS and any(isinstance(tool.get(kind), dict) for kind in _OF_CLIENTS)


def note_answer(trace: dict[str, Any], choice: Mapping[str, Any], around: Mapping[str, Any]) -> None:
    """Note in a run's trace if a piece of an answer cites what the model server has read."""
    part = choice.get("delta") or choice.get("message")
    cites = isinstance(part, dict) and part.get("annotations")
    if cites or any(around.get(name) for name in _CITATIONS):
        trace[SEARCHED] = True
