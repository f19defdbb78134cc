"""An embedding model that runs in this process, from a folder of the operator (`DAYBOOK_EMBEDDING_PATH`) with the files
that sentence-transformers exports for ONNX. Nothing is downloaded. It is reached like any other upstream, so time
limits, usage and `/v1/embeddings` are the same for it.

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
"""Its name as an upstream. Names of others come from variables, which hold no hyphen."""
LONGEST: Final = 512
"""Tokens of a text that are read, where the tokenizer sets no smaller limit; BERT models know no more places."""
MOST_TEXTS: Final = 256
"""Texts of one request."""
_AT_ONCE = 16  # texts in one run of the model, which needs memory for the length of the longest
# One thread, so that vectors take one core at most. Requests take turns after each run.
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
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._takes_first = _takes_first(folder)
        self._tokenizer = _tokenizer(folder)

    def embed(self, texts: list[str]) -> tuple[Floats, int]:
        """Return the normalised vectors of texts as an array (T, D), and the number of their tokens."""
        encoded = self._tokenizer.encode_batch(texts)
        ids = np.array([one.ids for one in encoded], dtype=np.int64)
        mask = np.array([one.attention_mask for one in encoded], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        found = self._session.run(None, {name: given[name] for name in given.keys() & self._inputs})[0]
        return unit(self._pooled(np.asarray(found, dtype=np.float32), mask)), int(mask.sum())

    def _pooled(self, found: Floats, mask: Any) -> Floats:
        """Return one row per text: the model's own, the first token's, or the mean over the tokens."""
        if found.ndim == 2:
            return found
        if self._takes_first:
            return found[:, 0]
        weights = mask[:, :, None].astype(np.float32)
        return np.asarray((found * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1), dtype=np.float32)


class EmbeddingTransport(httpx2.AsyncBaseTransport):
    """Serves POST /embeddings from the model in a folder, which is loaded with the first request."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(await request.aread())
        if not request.url.path.endswith("/embeddings"):
            return _refused("This model makes vectors and nothing else.", "model")
        texts = [body["input"]] if isinstance(body.get("input"), str) else body.get("input")
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
            return _refused("This model takes a text or a list of texts.", "input")
        if len(texts) > MOST_TEXTS:
            return _refused(f"This model takes at most {MOST_TEXTS} texts at once.", "input")
        rows: list[Floats] = []
        tokens = 0
        for start in range(0, len(texts), _AT_ONCE):  # a client that has gone is noticed between two runs
            some = texts[start : start + _AT_ONCE]
            found, count = await asyncio.get_running_loop().run_in_executor(
                _thread, lambda texts: _model(self._folder).embed(texts), some
            )
            rows.extend(found)
            tokens += count
        if body.get("dimensions") not in (None, len(rows[0])):
            return _refused(f"This model's vectors have {len(rows[0])} numbers.", "dimensions")
        as_text = body.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": at, "embedding": _base64(row) if as_text else row.tolist()}
            for at, row in enumerate(rows)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        answer = {"object": "list", "data": data, "model": body.get("model"), "usage": usage}
        return httpx2.Response(200, json=answer)


@cache
def _model(folder: Path) -> EmbeddingModel:
    return EmbeddingModel(folder)


def _weights(folder: Path) -> Path | None:
    found = (path for name in ("model.onnx", "onnx/model.onnx") if (path := folder / name).is_file())
    return next(found, None)


def _takes_first(folder: Path) -> bool:
    """Return True if the model's first token (CLS) represents the text; in most models the mean of all does."""
    try:
        pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    except FileNotFoundError:
        return False
    return bool(pooling.get("pooling_mode_cls_token"))


def _tokenizer(folder: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    cut = tokenizer.truncation or {}
    tokenizer.enable_truncation(min(cut.get("max_length", LONGEST), LONGEST))
    filler = tokenizer.padding or {}
    # A fixed length in the file would pad every text to that length.
    tokenizer.enable_padding(pad_id=filler.get("pad_id", 0), pad_token=filler.get("pad_token", "[PAD]"), length=None)
    return tokenizer


def _base64(row: Floats) -> str:
    return base64.b64encode(row.astype("<f4").tobytes()).decode()


def _refused(message: str, param: str) -> httpx2.Response:
    return httpx2.Response(400, json={"error": {"message": message, "type": "invalid_request_error", "param": param}})
