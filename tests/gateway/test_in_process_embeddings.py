"""gateway.upstream.in_process: an embedding model from a folder joins the search and /v1/embeddings."""

import asyncio
import base64
import json
import shutil
import threading
from collections.abc import Iterator
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
def _configured(settings: Any) -> Iterator[None]:
    settings.EMBEDDING_PATH, settings.EMBEDDING_MODEL = FOLDER, FOLDER.name
    previous = upstream.install(ResilientModel(OpenAIModel()))
    yield
    upstream.install(previous)


async def embed(*texts: str) -> np.ndarray[Any, Any]:
    return np.array(await upstream.embed(IN_PROCESS, "tiny", texts))


async def test_vectors_have_length_one_and_say_what_a_text_is_about() -> None:
    cello, question, tea = await embed("Plays the cello", "Which instrument", "Drinks tea")
    assert np.linalg.norm(cello) == pytest.approx(1, abs=1e-6)
    assert cello @ question > 0.4 > cello @ tea


async def test_a_text_has_the_same_vector_in_any_company() -> None:
    together = await embed("tea", *(f"cello {'viola ' * n}" for n in range(40)))
    assert len(together) == 41
    assert np.allclose(together[0], (await embed("tea"))[0], atol=1e-6)


def test_texts_are_cut_and_not_filled_up() -> None:
    model = EmbeddingModel(FOLDER)
    assert model.embed(["tea"])[1] == 1  # the file would fill it up to 32
    assert model.embed(["tea " * 5000])[1] == 512


def test_a_model_may_say_it_in_its_first_token(tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "model")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    (first, alone), _ = EmbeddingModel(folder).embed(["cello tea tea tea", "cello"])
    assert np.allclose(first, alone)


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_a_process_does_not_start_with_one_that_cannot_be_used(settings: Any, more: dict[str, Any], said: str) -> None:
    for name, value in more.items():
        setattr(settings, name, value)
    with pytest.raises(ConfigurationError, match=said):
        apps.get_app_config("config").ready()


def test_it_may_be_given_the_texts_of_every_agent() -> None:
    assert embedding_upstream() == IN_PROCESS
    assert may_embed({"a", "b"})


@pytest.mark.django_db(transaction=True)
def test_memories_get_their_vectors(alice: Owner) -> None:
    memory_make(alice, "Plays the cello")
    memory_make(alice, "Drinks tea")
    book = Book.objects.get()
    assert embeddings.embed_book(str(book.pk)) == 2
    found = vectors_of_book(alice.pk, book.pk)
    assert (found.model, sorted(found.by_number)) == ("tiny_embeddings", [1, 2])


async def test_a_turns_question_gets_its_vector(alice: Owner, agent: Agent) -> None:
    vector, told = await embeddings.query_vector("Which instrument", upstreams={"elsewhere"})
    assert told == {"embedding": "ok"}
    assert vector is not None
    assert len(vector) == 4


async def test_clients_get_vectors_through_their_agent(alice_api: Api, agent: Agent) -> None:
    asked = {"model": agent.name, "input": "cello"}
    status, body = await alice_api.post("/v1/embeddings", asked)
    assert (status, body["usage"]["prompt_tokens"]) == (200, 1)
    packed = (await alice_api.post("/v1/embeddings", asked | {"encoding_format": "base64"}))[1]
    numbers = np.frombuffer(base64.b64decode(packed["data"][0]["embedding"]), dtype="<f4")
    assert np.allclose(numbers, body["data"][0]["embedding"])
    for wrong in ({"input": [[1, 2]]}, {"input": []}, {"input": ["tea"] * 257}, {"dimensions": 3}):
        status, body = await alice_api.post("/v1/embeddings", asked | wrong)
        assert (status, body["error"]["param"]) == (400, next(iter(wrong)))


async def test_work_for_a_client_that_has_gone_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, goes_on, seen = threading.Event(), threading.Event(), []

    def held(self: EmbeddingModel, texts: list[str]) -> Any:
        seen.append(len(texts))
        begun.set()
        assert goes_on.wait(10)
        return np.ones((len(texts), 4), dtype=np.float32), 1

    monkeypatch.setattr(EmbeddingModel, "embed", held)
    work = asyncio.create_task(embed(*["tea"] * 200))
    assert await asyncio.to_thread(begun.wait, 10)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    goes_on.set()
    in_process._thread.submit(int).result(10)  # after whatever is still to be done
    assert seen == [16]


async def test_it_answers_no_chat() -> None:
    request = upstream.ModelRequest(upstream=IN_PROCESS, model="tiny", messages=({"role": "user", "content": "Hi"},))
    with pytest.raises(RequestRefused, match="makes vectors and nothing else"):
        await OpenAIModel().complete(request)
