"""Model servers that search the web or read documents themselves. Nothing shows the gateway what they read, so what the
model says then is no evidence for a memory."""

import re
from collections.abc import Mapping
from typing import Any

from gateway.runs.utterances import SEARCHED
from gateway.upstream import ModelRequest
from gateway.upstream.dialects import dialect_of

# OpenAI, xAI, OpenRouter, Perplexity, DashScope (Qwen)
_PARAMETERS = frozenset({"web_search_options", "search_parameters", "plugins", "search_domain_filter", "enable_search"})
_CITATIONS = ("citations", "search_results")  # of a whole answer: Perplexity, xAI
_OF_CLIENTS = ("function", "custom")  # types of tools whose results a client sends
# Models of OpenRouter, Perplexity, Groq, OpenAI
_SEARCHING = re.compile(r"[:-]online\b|\bsonar\b|\bcompound\b|-search\b|\bdeep-research\b", re.IGNORECASE)


def note_request(trace: dict[str, Any], request: ModelRequest, upstream: str, model: str) -> None:
    """Note in a run's trace if a request lets the server and model that answer it read something themselves."""
    dialect = dialect_of(upstream)
    sent = {"model": model, **request.parameters, "tools": request.tools, **dialect.set}
    if isinstance(extra := sent.get("extra_body"), Mapping):  # which LiteLLM and others merge into the request
        sent |= extra
    asked = {name for name in _PARAMETERS if sent.get(name) not in (None, False, [])}  # {} asks for a search, too
    tools = sent["tools"] or ()
    on_server = not isinstance(tools, list | tuple) or not all(map(_is_of_client, tools))
    if on_server or asked.difference(dialect.drop) or _SEARCHING.search(str(sent["model"])):
        trace[SEARCHED] = True


def _is_of_client(tool: Any) -> bool:
    return (
        isinstance(tool, Mapping)
        and tool.get("type", "function") in _OF_CLIENTS
        and any(isinstance(tool.get(kind), dict) for kind in _OF_CLIENTS)
    )


def note_answer(trace: dict[str, Any], choice: Mapping[str, Any], around: Mapping[str, Any]) -> None:
    """Note in a run's trace if a piece of an answer cites what the model server has read."""
    part = choice.get("delta") or choice.get("message")
    cites = isinstance(part, dict) and part.get("annotations")
    if cites or any(around.get(name) for name in _CITATIONS):
        trace[SEARCHED] = True
