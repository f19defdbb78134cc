"""The model servers of this installation, and the model that this process uses. Tests replace it with `install`."""

import json
from collections.abc import Sequence

from gateway.errors import UpstreamUnreachable
from gateway.requests import request_id
from gateway.upstream.answer import Chunk
from gateway.upstream.attempts import Attempts
from gateway.upstream.faults import retry_after_seconds, seconds_of_retry_after
from gateway.upstream.request import CHAT, COMPLETIONS, EMBEDDINGS, Model, ModelRequest, ModelTarget
from gateway.upstream.wire import OpenAIModel, is_demo, missing_upstream

__all__ = [
    "CHAT", "COMPLETIONS", "EMBEDDINGS", "Attempts", "Chunk", "Model", "ModelRequest", "ModelTarget", "OpenAIModel",
    "disconnect", "embed", "install", "is_demo", "missing_upstream", "model", "retry_after_seconds",
    "seconds_of_retry_after",
]  # fmt: skip

_model: Model = Attempts(OpenAIModel())


def model() -> Model:
    return _model


async def disconnect() -> None:
    """Close the connections that the running event loop holds; the next request makes new ones."""
    if isinstance(_model, Attempts | OpenAIModel):
        await _model.close()


async def embed(upstream: str, name: str, texts: Sequence[str]) -> list[list[float]]:
    """Return the vectors of texts from an embedding model, in the order of the texts. The caller sets the time limit.
    Raises DomainErrors."""
    request = ModelRequest(
        upstream=upstream,
        model=name,
        parameters={"input": list(texts), "encoding_format": "float"},
        path=EMBEDDINGS,
        request_id=request_id.get(),
    )
    answer = await _model.passed(request)
    try:
        rows = sorted(json.loads(answer)["data"], key=lambda row: row["index"])
        found = [[float(value) for value in row["embedding"]] for row in rows]
    except (KeyError, TypeError, ValueError):
        raise UpstreamUnreachable("The model server gave an answer that holds no vectors.") from None
    if len(found) != len(texts):
        raise UpstreamUnreachable("The model server gave another number of vectors than it was asked for.")
    return found


def install(replacement: Model) -> Model:
    """Replace the model that this process uses, and return the one before (for tests)."""
    global _model
    previous, _model = _model, replacement
    return previous
