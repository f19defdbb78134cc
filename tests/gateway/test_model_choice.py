"""Which upstream and model are used, also by agents with several models; and these settings in the agents file and the
admin"""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pydantic import ValidationError
from pytest_django.fixtures import Settings

from gateway.admin.schema_form import schema_initial
from gateway.agents.file import agents_file_schema, export, parse
from gateway.agents.model_choice import (
    BackgroundModels,
    UpstreamUndecided,
    agent_target,
    agent_upstreams,
    may_embed,
    named_target,
    review_target,
)
from gateway.agents.rows import agent_settings
from gateway.agents.settings import AgentSettings, ModelRoles
from gateway.models import Agent
from gateway.services import configuration_save
from gateway.upstream import ModelTarget
from memories.errors import InvalidRequest
from reviews.schedule import stored_settings
from tests.factories import agent_make

pytestmark = pytest.mark.any_database

ADDRESS = {"url": "http://127.0.0.1:9/v1", "key": ""}


@pytest.fixture(autouse=True)
def _three_upstreams(settings: Settings) -> None:
    settings.DAYBOOK_UPSTREAMS = {"default": ADDRESS, "local": ADDRESS, "spare": ADDRESS}
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


def pairs(target: ModelTarget) -> list[tuple[str, str]]:
    return [(each.upstream, each.model) for each in target.all]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"model": ["a", "b"]}, ["default a", "default b"]),
        ({"upstream": ["local", "spare"]}, ["local house-model", "spare house-model"]),
        ({"upstream": ["local", "spare"], "model": "a"}, ["local a", "spare a"]),
        ({"upstream": "local", "model": ["a", "b"]}, ["local a", "local b"]),
        ({"upstream": ["local", "spare"], "model": ["a", "b"]}, ["local a", "spare b"]),
        ({"model": ["a", "local/b", "meta-llama/c"]}, ["default a", "local b", "default meta-llama/c"]),
        ({"model": ["a", "a"]}, ["default a"]),
        ({"model": "local/b"}, ["default local/b"]),
        ({"upstream": "spare", "model": "local/b"}, ["spare local/b"]),
    ],
)
def test_models_and_upstreams_are_paired_in_order(given: dict[str, Any], wanted: list[str]) -> None:
    assert [" ".join(pair) for pair in pairs(agent_target(AgentSettings(**given)))] == wanted


@pytest.mark.parametrize(
    ("yaml", "complaint"),
    [
        ("{model: [a, b, c], upstream: [default, local]}", "3 models and 2 upstreams make no pairs"),
        ("{model: []}", r"agents.a.model: The list is empty"),
        ("{upstream: [local, local, local, local, local, local]}", r"agents.a.upstream: .* at most 5 items"),
        ("{model: [a, '']}", r"agents.a.model.1: .* at least 1 character"),
        ("{upstream: [local, 'a b']}", r"agents.a.upstream.1: "),
        ("{parameters: {messages: []}}", "messages can't be a default"),
        ("{parameters: {stop: .nan}}", "agents.a.parameters"),
        (f"{{parameters: {{stop: {'x' * 4001}}}}}", "at most 4000 characters"),
    ],
)
def test_invalid_settings_are_refused_with_their_path(yaml: str, complaint: str) -> None:
    with pytest.raises(InvalidRequest, match=complaint):
        parse(f"agents: {{a: {yaml}}}")


@pytest.mark.django_db
def test_lists_and_parameters_survive_storage_and_export() -> None:
    given = {"model": ["a", "b"], "upstream": ["default", "local"], "parameters": {"temperature": 0.2, "stop": ["x"]}}
    agent_make("assistant", **given)
    exported = parse(export()).agents["assistant"]
    assert (exported.model, exported.upstream) == (("a", "b"), ("default", "local"))
    assert exported.parameters == given["parameters"]
    assert {name: Agent.objects.get().settings[name] for name in given} == given


def test_the_schema_accepts_a_string_or_a_list() -> None:
    model = agents_file_schema()["$defs"]["AgentSettings"]["properties"]["model"]
    assert [form["type"] for form in model["oneOf"]] == ["string", "array"]
    assert model["oneOf"][1]["maxItems"] == 5


@pytest.mark.parametrize("blank", ["", " ", "\t\r\n"])
def test_a_blank_model_is_the_default_one(blank: str) -> None:
    agent = AgentSettings(model=blank, memory_review_model=blank)
    assert (agent.model, agent.memory_review_model) == ("", "")
    assert agent_target(agent).model == "house-model"
    assert (ModelRoles(default=blank).default, ModelRoles(smol=blank).smol) == ("", "")


def test_white_space_around_a_model_is_no_part_of_its_name() -> None:
    assert AgentSettings(model=" gpt-5\r\n").model == "gpt-5"
    assert AgentSettings(model=("gpt-5 ", "\tqwen")).model == ("gpt-5", "qwen")
    with pytest.raises(ValidationError):
        AgentSettings(model=("gpt-5", " "))


@pytest.mark.django_db
def test_the_admin_names_the_default_model(client: Client, settings: Settings) -> None:
    client.force_login(User.objects.create_superuser("root"))
    agent = agent_make("assistant", model="")
    assert "house-model (default)" in client.get("/admin/gateway/agent/").content.decode()
    assert "DAYBOOK_MODEL is " in client.get(f"/admin/gateway/agent/{agent.pk}/change/").content.decode()
    settings.DAYBOOK_UPSTREAMS = {}
    assert "house-model" not in client.get("/admin/gateway/agent/").content.decode()


@pytest.mark.django_db
def test_the_form_accepts_comma_separated_values_and_parameters_as_json(client: Client) -> None:
    client.force_login(User.objects.create_superuser("root"))
    agent = agent_make("assistant", model=["a", "b"], upstream="local", parameters={"temperature": 0.2})
    path = f"/admin/gateway/agent/{agent.pk}/change/"
    form = client.get(path).context["adminform"].form
    assert (form.initial["model"], form.initial["upstream"]) == ("a, b", "local")
    form_data = {name: value for name, value in schema_initial(AgentSettings, {}).items() if value is not False}
    fields = form_data | {
        "model": "b, c",
        "upstream": "local, spare",
        "parameters": json.dumps({"top_p": 0.5}),
    }
    assert client.post(path, fields).status_code == 302
    agent.refresh_from_db()
    assert agent.settings["model"] == ["b", "c"]
    assert agent.settings["upstream"] == ["local", "spare"]
    assert agent.settings["parameters"] == {"top_p": 0.5}
    refused = client.post(path, fields | {"model": "b, c, d"})
    assert "make no pairs" in refused.content.decode()


def test_a_review_uses_the_fallbacks_of_the_agent() -> None:
    agent = AgentSettings(model=("a", "b"), upstream=("local", "spare"))
    settings = json.loads(json.dumps(stored_settings(agent)))
    assert pairs(review_target(settings)) == [("local", "a"), ("spare", "b")]
    settings["memory_review_model"] = "small"
    assert pairs(review_target(settings)) == [("local", "small"), ("local", "a"), ("spare", "b")]


@pytest.mark.django_db
def test_background_work_stays_on_the_upstreams_of_the_agent() -> None:
    agent = AgentSettings(model=("a", "b"), upstream=("local", "spare"))
    configuration_save("model_roles", {"default": "default/big", "smol": "spare/small"})
    models = BackgroundModels.now()
    assert pairs(models.of_agent(agent, "default")) == [("local", "a"), ("spare", "b")]
    assert pairs(models.of_agent(agent, "smol")) == [("spare", "small"), ("local", "a"), ("spare", "b")]
    at_home = AgentSettings(model=("a", "b"))
    assert pairs(models.of_agent(at_home, "default")) == [("default", "big"), ("default", "a"), ("default", "b")]
    assert pairs(models.of_agent(AgentSettings(model="a"), "default")) == [("default", "big")]


@pytest.mark.django_db
def test_a_shared_book_needs_the_same_upstreams_or_a_configured_one() -> None:
    agent_make("one", upstream=["local", "spare"], model="a")
    agent_make("two", upstream=["spare", "local"], model="b")
    assert pairs(BackgroundModels.now().of_book("main", "smol")) == [("local", "a"), ("spare", "a")]
    agent_make("three", upstream="local", model="c")
    with pytest.raises(UpstreamUndecided, match=r"different upstreams \(local, spare\)"):
        BackgroundModels.now().of_book("main", "smol")
    configuration_save("memories", {"upstream": "local"})
    assert pairs(BackgroundModels.now().of_book("main", "smol")) == [("local", "a")], "not on another upstream"


def test_texts_are_embedded_only_if_the_agent_names_that_upstream() -> None:
    assert may_embed(agent_upstreams(AgentSettings(model=("local/a", "b"))))
    assert not may_embed(agent_upstreams(AgentSettings(model="a", upstream=("local", "spare"))))
