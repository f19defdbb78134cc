"""gateway.agents.model_choice: which upstream and model answer."""

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
    """The model of a role for what was said to an agent."""
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
def test_a_name_holds_an_upstream_only_where_that_is_configured(name: str, target: tuple[str, str]) -> None:
    assert named_target(name, "here") == ModelTarget(*target)


def test_a_turn_is_answered_by_the_agents_model_on_its_upstream() -> None:
    assert agent_target(AgentSettings(upstream="local", model="llama")) == ModelTarget("local", "llama")
    assert agent_target(AgentSettings()) == ModelTarget("default", "house-model")


@pytest.mark.parametrize(
    ("review_model", "target"),
    [("", ("local", "llama")), ("small", ("local", "small")), ("default/gpt", ("default", "gpt"))],
)
def test_a_review_is_answered_on_the_agents_upstream_unless_it_names_one(
    review_model: str, target: tuple[str, str]
) -> None:
    kept = {"upstream": "local", "model": "llama", "memory_review_model": review_model}
    assert review_target(kept) == ModelTarget(*target)


@pytest.mark.django_db
def test_roles_hold_on_the_default_upstream_and_on_the_one_they_name() -> None:
    assert background("smol", model="gpt") == ModelTarget("default", "house-model")
    configuration_save("model_roles", {"default": "big", "smol": "local/small"})
    assert background("default", model="gpt") == ModelTarget("default", "big")
    assert background("smol", model="gpt") == ModelTarget("local", "small")
    assert background("smol", upstream="local", model="llama") == ModelTarget("local", "small")


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["big", "default/big", "other/big"])
def test_an_agent_on_an_upstream_of_its_own_keeps_its_work_there(role: str) -> None:
    configuration_save("model_roles", {"default": role, "smol": ""})
    assert background("default", upstream="local", model="llama") == ModelTarget("local", "llama")
    assert background("smol", upstream="local", model="llama") == ModelTarget("local", "llama")


@pytest.mark.django_db
def test_plain_names_belong_to_the_only_upstream_there_is(settings: Settings) -> None:
    settings.DAYBOOK_UPSTREAMS = {"local": ADDRESS}
    configuration_save("model_roles", {"default": "big"})
    assert background("default", upstream="local", model="llama") == ModelTarget("local", "big")
    assert background("default", model="gpt") == ModelTarget("default", "gpt"), "and never to an agent of another"


@pytest.mark.django_db
def test_a_shared_book_waits_until_an_upstream_is_named_for_it() -> None:
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
def test_an_upstream_for_shared_books_must_be_configured() -> None:
    agent_make("assistant")
    agent_make("private", upstream="local")
    configuration_save("memories", {"upstream": "gone"})
    assert "Set DAYBOOK_UPSTREAM_GONE_URL." in BackgroundModels.now().obstacle("main")


@pytest.mark.django_db
def test_a_book_that_no_agent_uses_is_given_to_the_only_upstream_there_is(settings: Settings) -> None:
    assert "No agent uses the book old" in BackgroundModels.now().obstacle("old")
    settings.DAYBOOK_UPSTREAMS = {"default": ADDRESS}
    assert BackgroundModels.now().of_book("old", "smol") == ModelTarget("default", "house-model")
    settings.DAYBOOK_UPSTREAMS = {}
    assert BackgroundModels.now().obstacle("old") == ""


@pytest.mark.django_db
def test_a_session_whose_agent_moved_elsewhere_makes_its_book_a_shared_one() -> None:
    agent_make("assistant")
    moved = AgentSettings(upstream="local", book="other")
    with pytest.raises(UpstreamUndecided):
        BackgroundModels.now("main").of_session("main", moved, "default")


def test_texts_go_to_another_upstreams_embedding_model_only_where_it_was_named(settings: Settings) -> None:
    settings.EMBEDDING_UPSTREAM = ""
    assert (may_embed({"default"}), may_embed({"local"})) == (True, False)
    settings.EMBEDDING_UPSTREAM = "default"
    assert (may_embed({"default"}), may_embed({"local"})) == (True, True)


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["upstream", "enabled"])
def test_the_upstream_of_shared_books_is_a_name(key: str) -> None:
    with pytest.raises(InvalidRequest, match=f"memories.{key}"):
        configuration_save("memories", {key: "http://127.0.0.1:9/v1"})
