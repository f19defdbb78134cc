"""gateway.agents.model_choice: which upstream and model are used"""

from typing import Any

import pytest
from pytest_django.fixtures import Settings

from gateway.agents.model_choice import (
    BackgroundModels,
    UpstreamUndecided,
    agent_target,
    may_embed,
    named_target,
    review_target,
)
from gateway.agents.rows import agent_settings
from gateway.agents.settings import AgentSettings
from gateway.models import Agent
from gateway.services import configuration_save
from gateway.upstream import ModelTarget
from memories.errors import InvalidRequest
from tests.factories import agent_make

pytestmark = pytest.mark.any_database

ADDRESS = {"url": "http://127.0.0.1:9/v1", "key": ""}


@pytest.fixture(autouse=True)
def _two_upstreams(settings: Settings) -> None:
    settings.DAYBOOK_UPSTREAMS = {"default": ADDRESS, "local": ADDRESS}
    settings.DAYBOOK_MODEL = "house-model"


def background(role: str, **agent: Any) -> ModelTarget:
    """Return the background model of a role for conversations with an agent."""
    return BackgroundModels.now().of_agent(AgentSettings(**agent), role)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("local/llama", ("local", "llama")),
        ("local/meta-llama/Llama-3", ("local", "meta-llama/Llama-3")),
        ("default/gpt", ("default", "gpt")),
        ("meta-llama/Llama-3", ("here", "meta-llama/Llama-3")),
        ("llama", ("here", "llama")),
        ("local/", ("here", "local/")),
    ],
)
def test_a_prefix_is_an_upstream_only_if_one_is_configured_under_that_name(name: str, target: tuple[str, str]) -> None:
    assert named_target(name, "here") == ModelTarget(*target)


def test_a_turn_uses_the_agents_model_and_upstream() -> None:
    assert agent_target(AgentSettings(upstream="local", model="llama")) == ModelTarget("local", "llama")
    assert agent_target(AgentSettings()) == ModelTarget("default", "house-model")


@pytest.mark.parametrize(
    ("review_model", "target"),
    [("", ("local", "llama")), ("small", ("local", "small")), ("default/gpt", ("default", "gpt"))],
)
def test_a_review_uses_the_agents_upstream_unless_it_names_one(review_model: str, target: tuple[str, str]) -> None:
    settings = {"upstream": "local", "model": "llama", "memory_review_model": review_model}
    assert review_target(settings) == ModelTarget(*target)


@pytest.mark.django_db
def test_a_role_applies_to_the_default_upstream_or_the_one_it_names() -> None:
    assert background("smol", model="gpt") == ModelTarget("default", "house-model")
    configuration_save("model_roles", {"default": "big", "smol": "local/small"})
    assert background("default", model="gpt") == ModelTarget("default", "big")
    assert background("smol", model="gpt") == ModelTarget("local", "small")
    assert background("smol", upstream="local", model="llama") == ModelTarget("local", "small")


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["big", "default/big", "other/big"])
def test_background_work_stays_on_the_upstream_of_the_agent(role: str) -> None:
    configuration_save("model_roles", {"default": role, "smol": ""})
    assert background("default", upstream="local", model="llama") == ModelTarget("local", "llama")
    assert background("smol", upstream="local", model="llama") == ModelTarget("local", "llama")


@pytest.mark.django_db
def test_plain_model_names_belong_to_the_only_upstream(settings: Settings) -> None:
    settings.DAYBOOK_UPSTREAMS = {"local": ADDRESS}
    configuration_save("model_roles", {"default": "big"})
    assert background("default", upstream="local", model="llama") == ModelTarget("local", "big")
    assert background("default", model="gpt") == ModelTarget("default", "gpt"), "not for an agent of another upstream"


@pytest.mark.django_db
def test_a_shared_book_waits_until_its_upstream_is_configured() -> None:
    agent_make("assistant")
    agent_make("private", upstream="local", model="llama")
    agent_make("coder", upstream="local", model="llama", book="code")
    models = BackgroundModels.now()
    with pytest.raises(UpstreamUndecided, match=r"shared by agents of different upstreams \(default, local\)"):
        models.of_book("main", "smol")
    with pytest.raises(UpstreamUndecided):
        models.of_session("main", agent_settings(Agent.objects.get(name="private")), "default")
    assert models.of_book("code", "smol") == ModelTarget("local", "llama")
    assert list(models.obstacles()) == ["main"]
    configuration_save("memories", {"upstream": "local"})
    configuration_save("model_roles", {"default": "big", "smol": "default/small"})
    models = BackgroundModels.now()
    for agent in Agent.objects.filter(book="main"):
        assert models.of_session("main", agent_settings(agent), "default") == ModelTarget("local", "llama")
    assert models.of_book("main", "smol") == ModelTarget("local", "llama")
    configuration_save("memories", {"upstream": "default"})
    models = BackgroundModels.now()
    assert models.of_book("main", "smol") == ModelTarget("default", "small")
    assert models.of_book("main", "default") == ModelTarget("default", "big")


@pytest.mark.django_db
def test_the_upstream_for_shared_books_must_exist() -> None:
    agent_make("assistant")
    agent_make("private", upstream="local")
    configuration_save("memories", {"upstream": "gone"})
    assert "Set DAYBOOK_UPSTREAM_GONE_URL." in BackgroundModels.now().obstacle("main")


@pytest.mark.django_db
def test_a_book_without_agents_uses_the_only_upstream(settings: Settings) -> None:
    assert "No agent uses the book old" in BackgroundModels.now().obstacle("old")
    settings.DAYBOOK_UPSTREAMS = {"default": ADDRESS}
    assert BackgroundModels.now().of_book("old", "smol") == ModelTarget("default", "house-model")
    settings.DAYBOOK_UPSTREAMS = {}
    assert BackgroundModels.now().obstacle("old") == ""


@pytest.mark.django_db
def test_a_session_whose_agent_moved_makes_its_book_shared() -> None:
    agent_make("assistant")
    moved = AgentSettings(upstream="local", book="other")
    with pytest.raises(UpstreamUndecided):
        BackgroundModels.now("main").of_session("main", moved, "default")


def test_texts_are_embedded_by_another_upstream_only_if_it_is_named(settings: Settings) -> None:
    settings.EMBEDDING_UPSTREAM = ""
    assert (may_embed({"default"}), may_embed({"local"})) == (True, False)
    settings.EMBEDDING_UPSTREAM = "default"
    assert (may_embed({"default"}), may_embed({"local"})) == (True, True)


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["upstream", "enabled"])
def test_the_upstream_for_shared_books_must_be_a_name(key: str) -> None:
    with pytest.raises(InvalidRequest, match=f"memories.{key}"):
        configuration_save("memories", {key: "http://127.0.0.1:9/v1"})
