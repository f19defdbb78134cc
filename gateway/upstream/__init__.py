"""Access to the configured model servers (upstreams). `model()` is this process's client; tests `install` another."""

import json
from collections.abc import Sequence

from gateway.errors import UpstreamUnreachable
from gateway.requests import request_id
from gateway.upstream.answer import Chunk
from gateway.upstream.attempts import ResilientModel
from gateway.upstream.faults import parse_retry_after, retry_after_seconds
from gateway.upstream.request import CHAT, COMPLETIONS, EMBEDDINGS, Model, ModelRequest, ModelTarget
from gateway.upstream.wire import OpenAIModel, is_demo, missing_upstream

__all__ = [
    "CHAT", "COMPLETIONS", "EMBEDDINGS", "Chunk", "Model", "ModelRequest", "ModelTarget", "OpenAIModel",
    "ResilientModel", "disconnect", "embed", "install", "is_demo", "missing_upstream", "model", "parse_retry_after",
    "retry_after_seconds",
]  # fmt: skip

_model: Model = ResilientModel(OpenAIModel())


def model() -> Model:
    return _model


async def disconnect() -> None:
    """Close the connections that the running event loop holds; the next request makes new ones."""
    if isinstance(_model, ResilientModel | OpenAIModel):
        await _model.close()


async def embed(upstream: str, name: str, texts: Sequence[str]) -> list[list[float]]:
    """Return a vector per text, in order, from an embedding model. The caller limits the time. Raises DomainErrors."""
    request = ModelRequest(
        upstream=upstream,
        model=name,
        parameters={"input": list(texts), "encoding_format": "float"},
        path=EMBEDDINGS,
        request_id=request_id.get(),
    )
    answer = await _model.embeddings(request)
    try:
        rows = sorted(json.loads(answer)["data"], key=lambda row: row["index"])
        vectors = [[float(value) for value in row["embedding"]] for row in rows]
    except (KeyError, TypeError, ValueError):
        raise UpstreamUnreachable("The model server's answer contains no vectors.") from None
    if len(vectors) != len(texts):
        raise UpstreamUnreachable("The model server returned the wrong number of vectors.")
    return vectors


def install(replacement: Model) -> None:
    """Replace the model that this process uses (for tests)."""
    global _model
    _model = replacement
