"""/admin/gateway/agent/, /apikey/, /configuration/ and /worker/"""

import hashlib
import json
import logging
import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.sessions.models import Session as LoginSession
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape
from pytest_django.fixtures import Settings

from gateway.admin.schema_form import schema_fields, schema_initial, schema_values
from gateway.agents.file import export, parse
from gateway.agents.settings import AgentSettings
from gateway.keys import api_key_create, names_given, names_listed
from gateway.models import Agent, ApiKey, Configuration, Worker
from gateway.services import agents_apply, configuration_save
from memories.errors import InvalidRequest
from memories.models import AuditEntry, Target
from memories.services import book_limits
from tests.admin_rows import agent_make, owner_make, row_url, staff_client

pytestmark = pytest.mark.django_db
AGENTS = "/admin/gateway/agent/"
KEYS = "/admin/gateway/apikey/"
SETTINGS = "/admin/gateway/configuration/memories/change/"


def form_data(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings as a browser posts them, without unticked boxes."""
    initial = schema_initial(AgentSettings, {}) | settings
    return {name: value for name, value in initial.items() if value is not False}


def edit(client: Client, agent: Agent, **settings: Any) -> Any:
    return client.post(row_url(agent), form_data(settings))


def test_every_agent_setting_has_a_field_with_its_description(root: Client) -> None:
    agent_make()
    page = root.get(row_url(Agent.objects.get())).content.decode()
    for name, field in AgentSettings.model_fields.items():
        assert f'name="{name}"' in page, name
        if name != "tools":
            assert escape(field.description or "") in page, name


def test_empty_parameters_are_shown_as_an_empty_object(root: Client) -> None:
    form = root.get("/admin/gateway/agent/add/").context["adminform"].form
    assert json.loads(form["parameters"].value()) == {}


def test_the_form_saves_an_agent_like_the_agents_file(root: Client) -> None:
    agent = agent_make()
    answer = edit(
        root,
        agent,
        tools=["memory"],
        memory_review_interval=3,
        user_char_limit=9000,
        instructions="Be brief.",
    )
    assert answer.status_code == 302
    agent.refresh_from_db()
    assert agent.settings == {
        "tools": [{"type": "memory"}],
        "memory_review_interval": 3,
        "user_char_limit": 9000,
        "instructions": "Be brief.",
    }
    assert agent.version == 2
    assert book_limits("main")[Target.USER] == 9000


@pytest.mark.any_database
def test_an_outdated_form_does_not_overwrite_an_agent(root: Client) -> None:
    agent = agent_make()
    page = row_url(agent)
    opened = root.get(page).context["adminform"].form["state"].value()
    edit(root, agent, instructions="Be brief.", state=opened)
    answer = edit(root, agent, instructions="Be long.", state=opened)
    assert "changed in the meantime" in answer.context["adminform"].form.non_field_errors()[0]
    assert "Be long." in answer.content.decode()
    agent.refresh_from_db()
    assert agent.settings == {"instructions": "Be brief."}


@pytest.mark.any_database
@pytest.mark.parametrize("saved_before", [True, False])
def test_an_outdated_form_does_not_overwrite_the_memory_settings(root: Client, saved_before: bool) -> None:
    if saved_before:
        post_settings(root)
    opened = settings_data(root)
    post_settings(root, prices="a: 1, 2")
    answer = root.post(SETTINGS, {**opened, "memories_enabled": "on"})
    assert "changed in the meantime" in answer.context["adminform"].form.non_field_errors()[0]
    assert Configuration.objects.get(section="prices").value == {"a": {"input": 1.0, "output": 2.0}}


def test_viewers_see_the_settings_as_text() -> None:
    agent = agent_make(instructions="Be <brief>.", tools=[{"type": "memory"}])
    configuration_save("memories", {"enabled": True})
    viewer = staff_client(may=("gateway.view_agent", "gateway.view_configuration"))
    page = viewer.get(row_url(agent)).content.decode()
    assert "instructions: Be &lt;brief&gt;." in page
    assert "- type: memory" in page
    assert 'name="state"' not in page
    assert "enabled: true" in viewer.get(SETTINGS).content.decode()


def test_contradictory_settings_are_saved_with_a_warning(root: Client) -> None:
    agent = agent_make()
    given = {"memory_review_interval": 5, "memory_review_max_writes": 0}
    answer = root.post(row_url(agent), form_data(given), follow=True)
    assert "Its reviews never save anything: memory_review_max_writes is 0." in answer.content.decode()
    agent.refresh_from_db()
    assert agent.settings["memory_review_max_writes"] == 0
    answer = root.post(row_url(agent), form_data({}), follow=True)
    assert "never save" not in answer.content.decode()


def test_saving_without_a_change_keeps_the_version(root: Client) -> None:
    agent = agent_make(inject_memories=True, tools=[{"type": "memory"}])
    assert edit(root, agent, inject_memories=True, tools=["memory"]).status_code == 302
    agent.refresh_from_db()
    assert (agent.version, agent.settings) == (1, {"inject_memories": True, "tools": [{"type": "memory"}]})


def test_schema_errors_are_shown_at_their_field(root: Client) -> None:
    agent = agent_make()
    wrong = {
        "max_inject_memories": 0,
        "memory_review_timeout": "soon",
        "context_token_limit": 10,
        "recall_role": "developer",
        "book": "no spaces please",
        "tools": ["shell"],
    }
    answer = edit(root, agent, **wrong)
    assert answer.status_code == 200
    assert set(answer.context["adminform"].form.errors) == set(wrong)
    agent.refresh_from_db()
    assert (agent.settings, agent.version) == ({}, 1)


def test_an_agent_is_added_by_name(root: Client) -> None:
    assert root.post(f"{AGENTS}add/", {"name": "cook", **form_data({"book": "kitchen"})}).status_code == 302
    assert Agent.objects.get(name="cook").book == "kitchen"
    refused = root.post(f"{AGENTS}add/", {"name": "two words", **form_data({})})
    assert list(refused.context["adminform"].form.errors) == ["name"]


def test_a_new_agent_with_a_taken_name_is_refused(root: Client) -> None:
    agent_make("cook", instructions="Cook.")
    refused = root.post(f"{AGENTS}add/", {"name": "cook", **form_data({})})
    assert refused.status_code == 200
    assert list(refused.context["adminform"].form.errors) == ["name"]
    assert Agent.objects.get().settings == {"instructions": "Cook."}


def test_agents_cannot_be_deleted_in_the_admin(root: Client) -> None:
    agent = agent_make()
    assert root.post(reverse("admin:gateway_agent_delete", args=[agent.pk]), {"post": "yes"}).status_code == 403
    assert Agent.objects.exists()


def test_the_form_fields_match_the_settings_model() -> None:
    fields = schema_fields(AgentSettings)
    assert list(fields) == list(AgentSettings.model_fields)
    values = schema_values(AgentSettings, schema_initial(AgentSettings, {"tools": [{"type": "memory"}]}))
    assert AgentSettings.model_validate(values) == AgentSettings.model_validate({"tools": [{"type": "memory"}]})


def test_a_key_is_shown_once_and_its_hash_never(root: Client) -> None:
    owner = owner_make()
    agent_make("cook")
    form = {
        "owner": str(owner.pk),
        "name": "laptop",
        "read_only": "on",
        "agents": ["cook"],
        "requests_per_minute": "30",
    }
    answer = root.post(f"{KEYS}add/", form, follow=True)
    plain = re.search(r"dbk_[\w-]{40,}", answer.content.decode())
    assert plain is not None
    key = ApiKey.objects.get()
    assert key.sha256 == hashlib.sha256(plain[0].encode()).hexdigest()
    assert (key.owner, key.read_only, key.trusted, key.agents, key.requests_per_minute) == (
        owner,
        True,
        False,
        ["cook"],
        30,
    )
    for page in (KEYS, row_url(key)):
        again = root.get(page).content.decode()
        assert plain[0] not in again
        assert key.sha256 not in again


def test_a_key_may_be_limited_to_a_book_with_a_comma_in_its_name(root: Client) -> None:
    form = {
        "owner": str(owner_make().pk),
        "name": "laptop",
        "requests_per_minute": "0",
        "books": 'main, "Berlin, 2026"',
    }
    assert root.post(f"{KEYS}add/", form).status_code == 200
    assert ApiKey.objects.get().books == ["main", "Berlin, 2026"]
    assert 'books: main, "Berlin, 2026"' in unescape(root.get(KEYS).content.decode())


@pytest.mark.parametrize("names", [["main"], ["Berlin, 2026", "main"], ['say "hi"', '", "'], []])
def test_listed_names_are_read_as_they_were(names: list[str]) -> None:
    assert names_given(names_listed(names)) == names


def test_a_new_key_appears_only_in_the_response(
    root: Client, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    form = {"owner": str(owner_make().pk), "name": "laptop", "requests_per_minute": "0"}
    with caplog.at_level(logging.DEBUG):
        answer = root.post(f"{KEYS}add/", form)
    found = re.findall(r"dbk_[\w-]{40,}", answer.content.decode())
    assert (answer.status_code, len(found), "no-store" in answer.headers["Cache-Control"]) == (200, 1, True)
    cookies = answer.cookies.output() + root.cookies.output()
    sessions = [row.get_decoded() for row in LoginSession.objects.all()]
    logged = caplog.text + "".join(capfd.readouterr())
    stored = str(list(AuditEntry.objects.values())) + str(list(ApiKey.objects.values()))
    assert sessions
    for place in (cookies, str(sessions), logged, stored, str(answer.headers)):
        assert found[0] not in place


def test_a_revoked_key_stays_listed_as_revoked(root: Client) -> None:
    key, _ = api_key_create(owner=owner_make(), name="laptop")
    page = row_url(key)
    assert "Revoke</button>" in root.get(page).content.decode()
    assert root.get(row_url(key, "object_action")).status_code == 405
    answer = root.post(row_url(key, "object_action"), {"verb": "revoke"}, follow=True).content.decode()
    key.refresh_from_db()
    assert key.revoked_at is not None
    assert "Revoke</button>" not in answer
    assert "laptop" in root.get(KEYS, {"state": "revoked"}).content.decode()
    assert list(root.get(KEYS, {"state": "valid"}).context["cl"].result_list) == []


def test_a_key_cannot_be_changed_or_deleted(root: Client) -> None:
    key, _ = api_key_create(owner=owner_make(), name="laptop")
    assert root.post(row_url(key), {"name": "other"}).status_code == 403
    assert root.post(reverse("admin:gateway_apikey_delete", args=[key.pk]), {"post": "yes"}).status_code == 403


@pytest.mark.any_database
def test_the_settings_form_stores_the_same_rows_as_the_file(root: Client) -> None:
    page = root.get(SETTINGS)
    assert "Consolidate past sessions" in page.content.decode()
    initial = page.context["adminform"].form.initial
    form = {name: value for name, value in initial.items() if value is not False}
    answer = root.post(
        SETTINGS,
        {
            **form,
            "memories_enabled": "on",
            "memories_min_rollout_idle_hours": "0",
            "model_roles_smol": "tiny",
        },
    )
    assert answer.status_code == 302
    stored = dict(Configuration.objects.values_list("section", "value"))
    assert stored == {
        "memories": {"enabled": True, "min_rollout_idle_hours": 0.0},
        "model_roles": {"smol": "tiny"},
        "prices": {},
    }
    refused = post_settings(root, memories_max_rollout_age_days="0")
    assert list(refused.context["adminform"].form.errors) == ["memories_max_rollout_age_days"]


def settings_data(client: Client) -> dict[str, Any]:
    """Return the current settings form as a browser posts it."""
    initial = client.get(SETTINGS).context["adminform"].form.initial
    return {name: value for name, value in initial.items() if value is not False}


def post_settings(client: Client, **changes: Any) -> Any:
    """Post the current settings form with changes."""
    return client.post(SETTINGS, {**settings_data(client), **changes})


def test_an_upstream_for_shared_books_that_is_not_configured_is_reported(root: Client) -> None:
    for upstream, reported in (("gone", True), ("default", False)):
        post_settings(root, memories_upstream=upstream)
        assert ("memories.upstream: No upstream is called gone." in root.get(SETTINGS).content.decode()) == reported


def test_prices_typed_in_lines_are_stored_as_from_the_file(root: Client) -> None:
    lines = "gpt-4o-mini: 0.15, 0.60\r\n\r\n  llama3:8b :0,1e-7\n"
    assert post_settings(root, prices=lines).status_code == 302
    by_form = Configuration.objects.get(section="prices").value
    assert by_form == {
        "gpt-4o-mini": {"input": 0.15, "output": 0.6},
        "llama3:8b": {"input": 0.0, "output": 1e-7},
    }
    Configuration.objects.all().delete()
    yaml = "prices: {gpt-4o-mini: {input: 0.15, output: 0.6}, 'llama3:8b': {input: 0, output: 1.0e-7}}"
    agents_apply(parse(yaml))
    assert Configuration.objects.get(section="prices").value == by_form


@pytest.mark.any_database
def test_prices_survive_a_round_trip_through_file_and_form(root: Client) -> None:
    post_settings(root, prices="gpt-4o-mini: 0.15, 0.60\nllama3:8b: 0, 12.5")
    stored = Configuration.objects.get(section="prices").value
    text = export()
    assert parse(text).model_dump(mode="json")["prices"] == stored
    Configuration.objects.all().delete()
    agents_apply(parse(text))
    assert Configuration.objects.get(section="prices").value == stored
    shown = root.get(SETTINGS).context["adminform"].form.initial["prices"]
    assert shown == "gpt-4o-mini: 0.15, 0.6\nllama3:8b: 0, 12.5"
    assert post_settings(root).status_code == 302
    assert Configuration.objects.get(section="prices").value == stored
    assert export() == text


@pytest.mark.any_database
def test_prices_can_be_removed(root: Client) -> None:
    post_settings(root, prices="gpt-4o-mini: 0.15, 0.60")
    post_settings(root, prices="")
    assert Configuration.objects.get(section="prices").value == {}


def test_each_invalid_price_is_reported_with_its_line(root: Client) -> None:
    words_by_line = {
        "gpt-4o-mini 0.15 0.60": "write the model’s name, a colon, and two prices",
        "gpt-4o-mini: 0.15": "write the model’s name",
        ": 0.15, 0.60": "write the model’s name",
        "gpt-4o-mini: -1, 0.60": "the input price of gpt-4o-mini, “-1”, is less than 0.",
        "gpt-4o-mini: 1, 1e300": "the output price of gpt-4o-mini, “1e300”, is more than a billion.",
        "gpt-4o-mini: 1, much": "the output price of gpt-4o-mini, “much”, is not a number.",
        "gpt-4o-mini: inf, nan": "the input price of gpt-4o-mini, “inf”, is not a number; the output price",
        "llama: 2, 2": "llama has a price already.",
    }
    answer = post_settings(root, prices="\n".join(["llama: 1, 1", *words_by_line, "phi: 1, 1"]))
    assert answer.status_code == 200
    errors = answer.context["adminform"].form.errors
    assert list(errors) == ["prices"]
    assert len(errors["prices"]) == len(words_by_line)
    for number, (words, error) in enumerate(zip(words_by_line.values(), errors["prices"], strict=True), start=2):
        assert error.startswith(f"Line {number}: {words}")
    assert not Configuration.objects.filter(section="prices").exists()


def test_an_infinite_price_in_a_file_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"prices\.gpt-4o\.input"):
        parse("prices: {gpt-4o: {input: .inf, output: 1}}")


def test_a_worker_without_a_heartbeat_is_labelled(root: Client) -> None:
    Worker.objects.create(host="box", pid=1)
    Worker.objects.create(host="box", pid=2, beat_at=timezone.now() - timedelta(minutes=5))
    Worker.objects.create(host="box", pid=3, beat_at=timezone.now() + timedelta(hours=1))  # its clock was ahead
    page = root.get("/admin/gateway/worker/").content.decode()
    assert (page.count("Running</span>"), page.count("No heartbeat</span>")) == (1, 2)


def test_a_worker_that_sweeps_rarely_has_a_heartbeat(root: Client, settings: Settings) -> None:
    settings.SWEEP_SECONDS = 60
    Worker.objects.create(host="box", pid=1, beat_at=timezone.now() - timedelta(minutes=3))
    assert "Running</span>" in root.get("/admin/gateway/worker/").content.decode()
