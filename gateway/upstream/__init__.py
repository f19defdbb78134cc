"""Access to the configured model servers (upstreams). `model()` is this process's client; tests `install` another."""

from gateway.upstream.answer import Chunk
from gateway.upstream.attempts import ResilientModel
from gateway.upstream.request import CHAT, COMPLETIONS, EMBEDDINGS, Model, ModelRequest, ModelTarget
from gateway.upstream.wire import OpenAIModel, is_demo, missing_upstream

__all__ = [
    "CHAT", "COMPLETIONS", "EMBEDDINGS", "Chunk", "Model", "ModelRequest", "ModelTarget", "OpenAIModel",
    "ResilientModel", "disconnect", "install", "is_demo", "missing_upstream", "model",
]  # fmt: skip

_model: Model = ResilientModel(OpenAIModel())


def model() -> Model:
    return _model


async def disconnect() -> None:
    """Close the connections that the running event loop holds; the next request makes new ones."""
    if isinstance(_model, ResilientModel | OpenAIModel):
        await _model.close()


def install(replacement: Model) -> None:
    """Replace the model that this process uses (for tests)."""
    global _model
    _model = replacement
