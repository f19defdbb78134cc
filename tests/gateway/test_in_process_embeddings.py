"""gateway.upstream.in_process: an embedding model from a folder for searches and /v1/embeddings"""

import asyncio
import base64
import json
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.apps import apps

from config.environment import ConfigurationError
from gateway import embeddings, upstream
from gateway.agents.model_choice import embedding_upstream, may_embed
from gateway.errors import RequestRefused
from gateway.models import Agent
from gateway.upstream import OpenAIModel, ResilientModel, in_process
from gateway.upstream.in_process import IN_PROCESS, EmbeddingModel, unusable
from memories.models import Book, Owner
from memories.recall.vectors import vectors_of_book
from tests.conftest import Api
from tests.factories import memory_make

FOLDER = Path(__file__).parents[1] / "data" / "tiny_embeddings"


@pytest.fixture(autouse=True)
def _configured(settings: Any) -> None:
    settings.EMBEDDING_PATH, settings.EMBEDDING_MODEL = FOLDER, FOLDER.name
    upstream.install(ResilientModel(OpenAIModel()))


async def embed(*texts: str) -> np.ndarray[Any, Any]:
    return np.array(await embeddings.embed("tiny", texts))


async def test_vectors_are_normalised_and_reflect_the_meaning() -> None:
    cello, question, tea = await embed("Plays the cello", "Which instrument", "Drinks tea")
    assert np.linalg.norm(cello) == pytest.approx(1, abs=1e-6)
    assert cello @ question > 0.4 > cello @ tea


async def test_the_vector_of_a_text_does_not_depend_on_its_batch() -> None:
    together = await embed("tea", *(f"cello {'viola ' * n}" for n in range(40)))
    assert len(together) == 41
    assert np.allclose(together[0], (await embed("tea"))[0], atol=1e-6)


def test_texts_are_truncated_and_not_padded() -> None:
    model = EmbeddingModel(FOLDER)
    assert model.embed(["tea"])[1] == 1  # the tokenizer file would pad it to 32
    assert model.embed(["tea " * 5000])[1] == 512


def test_cls_pooling_is_supported(tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "model")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    (first, alone), _ = EmbeddingModel(folder).embed(["cello tea tea tea", "cello"])
    assert np.allclose(first, alone)


def test_missing_files_and_packages_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert unusable(FOLDER) == ""
    assert "neither model.onnx nor onnx/model.onnx" in unusable(tmp_path)
    assert unusable(tmp_path / "none") == "it must be a folder that can be read"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.access", lambda *_: False)  # root may read everything
        assert unusable(FOLDER) == "it must be a folder that can be read"
    (tmp_path / "onnx").mkdir()
    shutil.copy(FOLDER / "model.onnx", tmp_path / "onnx")
    assert "no tokenizer.json" in unusable(tmp_path)
    monkeypatch.setattr("gateway.upstream.in_process.find_spec", lambda name: None)
    assert "make install-local-embeddings" in unusable(FOLDER)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"EMBEDDING_PATH": Path("/no/such")}, r"^DAYBOOK_EMBEDDING_PATH is /no/such; it must be a folder"),
        ({"EMBEDDING_UPSTREAM": "default"}, "are both set; set one"),
    ],
)
def test_a_process_does_not_start_with_an_unusable_model(settings: Any, more: dict[str, Any], said: str) -> None:
    for name, value in more.items():
        setattr(settings, name, value)
    with pytest.raises(ConfigurationError, match=said):
        apps.get_app_config("config").ready()


def test_texts_of_every_agent_may_be_embedded() -> None:
    assert embedding_upstream() == IN_PROCESS
    assert may_embed({"a", "b"})


@pytest.mark.django_db(transaction=True)
def test_memories_are_embedded(alice: Owner) -> None:
    memory_make(alice, "Plays the cello")
    memory_make(alice, "Drinks tea")
    book = Book.objects.get()
    assert embeddings.embed_book(str(book.pk)) == 2
    found = vectors_of_book(alice.pk, book.pk)
    assert (found.model, sorted(found.by_number)) == ("tiny_embeddings", [1, 2])


async def test_the_query_of_a_turn_is_embedded(alice: Owner, agent: Agent) -> None:
    vector, trace = await embeddings.query_vector("Which instrument", upstreams={"elsewhere"})
    assert trace == {"embedding": "ok"}
    assert vector is not None
    assert len(vector) == 4


async def test_clients_get_vectors_through_their_agent(alice_api: Api, agent: Agent) -> None:
    body_for_agent = {"model": agent.name, "input": "cello"}
    status, body = await alice_api.post("/v1/embeddings", body_for_agent)
    assert (status, body["usage"]["prompt_tokens"]) == (200, 1)
    packed = (await alice_api.post("/v1/embeddings", body_for_agent | {"encoding_format": "base64"}))[1]
    numbers = np.frombuffer(base64.b64decode(packed["data"][0]["embedding"]), dtype="<f4")
    assert np.allclose(numbers, body["data"][0]["embedding"])
    for wrong in ({"input": [[1, 2]]}, {"input": []}, {"input": ["tea"] * 257}, {"dimensions": 3}):
        status, body = await alice_api.post("/v1/embeddings", body_for_agent | wrong)
        assert (status, body["error"]["param"]) == (400, next(iter(wrong)))


async def test_work_stops_when_the_client_disconnects(monkeypatch: pytest.MonkeyPatch) -> None:
    started, may_continue, seen = threading.Event(), threading.Event(), []

    def blocking_embed(self: EmbeddingModel, texts: list[str]) -> Any:
        seen.append(len(texts))
        started.set()
        assert may_continue.wait(10)
        return np.ones((len(texts), 4), dtype=np.float32), 1

    monkeypatch.setattr(EmbeddingModel, "embed", blocking_embed)
    work = asyncio.create_task(embed(*["tea"] * 200))
    assert await asyncio.to_thread(started.wait, 10)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    may_continue.set()
    in_process._thread.submit(int).result(10)  # after all queued work
    assert seen == [16]


async def test_chat_requests_are_refused() -> None:
    request = upstream.ModelRequest(upstream=IN_PROCESS, model="tiny", messages=({"role": "user", "content": "Hi"},))
    with pytest.raises(RequestRefused, match="makes vectors and nothing else"):
        await OpenAIModel().complete(request)
