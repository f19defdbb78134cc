"""An embedding model that runs in this process. The operator provides a folder (`DAYBOOK_EMBEDDING_PATH`) with the
files that sentence-transformers exports for ONNX; nothing is downloaded. The model is called like any other upstream,
so time limits, usage and `/v1/embeddings` work the same.

onnxruntime is not a dependency of Daybook: `make install-local-embeddings` installs it."""

import asyncio
import base64
import json
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import httpx2
import numpy as np
from tokenizers import Tokenizer

from search.vectors import Floats, unit

IN_PROCESS: Final = "in-process"
"""Its name as an upstream. It cannot clash with others: theirs come from variables, which have no hyphens."""
_MAX_TOKENS: Final = 512
"""Tokens read of each text, unless the tokenizer has a smaller limit. BERT models have no more positions."""
_MAX_TEXTS: Final = 256
"""Texts per request."""
_BATCH_SIZE = 16  # every text in a batch takes the memory of the longest one
# A single thread, so that embedding uses at most one core. Requests take turns after each batch.
_thread = ThreadPoolExecutor(1, thread_name_prefix="embedding")


def unusable(folder: Path) -> str:
    """Return the reason why the model in a folder cannot be used, as the end of a sentence; "" if there is none."""
    if find_spec("onnxruntime") is None:
        return "it needs onnxruntime, which `make install-local-embeddings` installs"
    if not os.access(folder, os.R_OK | os.X_OK):
        return "it must be a folder that can be read"
    if _weights(folder) is None:
        return "the folder holds neither model.onnx nor onnx/model.onnx"
    if not (folder / "tokenizer.json").is_file():
        return "the folder holds no tokenizer.json"
    return ""


class EmbeddingModel:
    def __init__(self, folder: Path) -> None:
        onnxruntime = import_module("onnxruntime")
        options = onnxruntime.SessionOptions()
        # The other cores are for people's requests.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(_weights(folder)), sess_options=options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {item.name for item in self._session.get_inputs()}
        self._uses_first_token = _uses_first_token(folder)
        self._tokenizer = _tokenizer(folder)

    def embed(self, texts: list[str]) -> tuple[Floats, int]:
        """Return the normalised vectors of the texts as an array of shape (texts, dimensions), and the token count."""
        encoded = self._tokenizer.encode_batch(texts)
        ids = np.array([encoding.ids for encoding in encoded], dtype=np.int64)
        mask = np.array([encoding.attention_mask for encoding in encoded], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        output = self._session.run(None, {name: inputs[name] for name in inputs.keys() & self._inputs})[0]
        return unit(self._pooled(np.asarray(output, dtype=np.float32), mask)), int(mask.sum())

    def _pooled(self, output: Floats, mask: Any) -> Floats:
        """Return one row per text: the model's own if it pools, the first token's, or the mean over the tokens."""
        if output.ndim == 2:
            return output
        if self._uses_first_token:
            return output[:, 0]
        weights = mask[:, :, None].astype(np.float32)
        return np.asarray((output * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1), dtype=np.float32)


class EmbeddingTransport(httpx2.AsyncBaseTransport):
    """Serves POST /embeddings from the model in a folder, which is loaded on the first request."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(await request.aread())
        if not request.url.path.endswith("/embeddings"):
            return _refused("This model makes vectors and nothing else.", "model")
        texts = [body["input"]] if isinstance(body.get("input"), str) else body.get("input")
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
            return _refused("This model takes a text or a list of texts.", "input")
        if len(texts) > _MAX_TEXTS:
            return _refused(f"This model takes at most {_MAX_TEXTS} texts at once.", "input")
        rows: list[Floats] = []
        tokens = 0
        for start in range(0, len(texts), _BATCH_SIZE):  # a disconnected client is noticed between two batches
            batch = texts[start : start + _BATCH_SIZE]
            made, count = await asyncio.get_running_loop().run_in_executor(
                _thread, lambda texts: _model(self._folder).embed(texts), batch
            )
            rows.extend(made)
            tokens += count
        if body.get("dimensions") not in (None, len(rows[0])):
            return _refused(f"This model's vectors have {len(rows[0])} numbers.", "dimensions")
        if body.get("encoding_format") == "base64":
            vectors: list[Any] = [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in rows]
        else:
            vectors = [row.tolist() for row in rows]
        data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        answer = {"object": "list", "data": data, "model": body.get("model"), "usage": usage}
        return httpx2.Response(200, json=answer)


@cache
def _model(folder: Path) -> EmbeddingModel:
    return EmbeddingModel(folder)


def _weights(folder: Path) -> Path | None:
    return next((path for name in ("model.onnx", "onnx/model.onnx") if (path := folder / name).is_file()), None)


def _uses_first_token(folder: Path) -> bool:
    """Return True if the model's first token (CLS) represents the text. For most models it is the mean of all."""
    try:
        pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    except FileNotFoundError:
        return False
    return bool(pooling.get("pooling_mode_cls_token"))


def _tokenizer(folder: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    truncation, padding = tokenizer.truncation or {}, tokenizer.padding or {}
    tokenizer.enable_truncation(min(truncation.get("max_length", _MAX_TOKENS), _MAX_TOKENS))
    # Without a length, since a fixed one in the file would pad every text to it.
    tokenizer.enable_padding(pad_id=padding.get("pad_id", 0), pad_token=padding.get("pad_token", "[PAD]"), length=None)
    return tokenizer


def _refused(message: str, param: str) -> httpx2.Response:
    return httpx2.Response(400, json={"error": {"message": message, "type": "invalid_request_error", "param": param}})
