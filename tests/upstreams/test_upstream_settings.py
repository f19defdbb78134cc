"""Upstream settings in the agents file and the admin; learned changes in the admin and in `doctor`."""

import json
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from jsonschema import Draft202012Validator
from pytest_django.fixtures import Settings

from config.doctor import findings
from config.findings import Level
from gateway.agents.file import export
from gateway.models import Configuration, LearnedChange
from gateway.upstream.cache import upstream_cache
from gateway.upstream.changes import Change, Kind
from gateway.upstream.dialects import dialect_of
from gateway.upstream_options import UpstreamOptions
from memories.models import AuditEntry

pytestmark = pytest.mark.django_db
SETTINGS = "/admin/gateway/configuration/memories/change/"
LEARNED = "/admin/gateway/learnedchange/"
FILE = """
upstreams:
  local:
    dialect: mistral
    options: {drop: [seed], set: {top_k: 20}, alternate_roles: false, idle_seconds: 7}
"""


@pytest.fixture(autouse=True)
def _local(settings: Settings) -> None:
    settings.DAYBOOK_UPSTREAMS = {"local": {"url": "http://127.0.0.1:8080/v1", "key": "sk-secret"}}


@pytest.fixture
def apply(tmp_path: Path, django_capture_on_commit_callbacks: Any) -> Callable[[str], None]:
    """Return a function that applies an agents file and runs its on-commit callbacks."""

    def apply_text(text: str) -> None:
        path = tmp_path / "agents.yaml"
        path.write_text(text)
        with django_capture_on_commit_callbacks(execute=True):
            call_command("agents", "apply", str(path), stdout=StringIO())

    return apply_text


def learned_change_make(**fields: Any) -> LearnedChange:
    """Create a learned change of the upstream `local`."""
    now = timezone.now()
    change: dict[str, Any] = {"kind": "drop", "parameter": "seed", "words": "Unknown parameter: 'seed'."}
    expires_at = now + timedelta(days=30)
    return LearnedChange.objects.create(
        **{"upstream": "local", "model": "m", "learned_at": now, "expires_at": expires_at, **change, **fields}
    )


def test_the_agents_file_configures_an_upstream(apply: Callable[[str], None]) -> None:
    before = dialect_of("local")
    assert before.name == "openai"
    apply(FILE)
    found = dialect_of("local")
    assert (found.name, found.drop[-1], found.alternate_roles, found.idle_seconds) == ("mistral", "seed", False, 7)
    assert (dict(found.set), found.system_first) == ({"top_k": 20}, True), "other options are the dialect's"
    apply("upstreams: {}")
    assert dialect_of("local") == before


def test_the_environment_takes_precedence(apply: Callable[[str], None], settings: Settings) -> None:
    apply(FILE)
    options = {"drop": ["store"], "idle_seconds": 3.0}
    settings.DAYBOOK_UPSTREAMS = {
        "local": {**settings.DAYBOOK_UPSTREAMS["local"], "dialect": "zai", "options": options}
    }
    found = dialect_of("local")
    assert (found.name, found.drop[-1], found.idle_seconds) == ("zai", "store", 3.0)
    assert "seed" not in found.drop, "an option in the environment replaces the file's"
    assert dict(found.set) == {"top_k": 20}


def test_an_exported_file_round_trips(apply: Callable[[str], None]) -> None:
    apply(FILE)
    stored = Configuration.objects.get(section="upstreams").value
    assert yaml.safe_load(export())["upstreams"] == stored == yaml.safe_load(FILE)["upstreams"]
    apply(export())
    assert Configuration.objects.get(section="upstreams").value == stored


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{nobody: {dialect: vllm}}",
            "upstreams.nobody: No upstream is called nobody. Set DAYBOOK_UPSTREAM_NOBODY_URL.",
        ),
        ("{default: {dialect: vllm}}", "upstreams.default: The default upstream is not configured."),
        ("{local: {dialect: klingon}}", "upstreams.local.dialect: Input should be 'openai', 'azure',"),
        ("{local: {options: {dorp: [seed]}}}", "upstreams.local.options.dorp: There is no such setting"),
        ("{local: {options: {drop: [model]}}}", "upstreams.local.options: model can't be dropped"),
        ("{local: {url: http://10.0.0.7/v1}}", "upstreams.local.url: There is no such setting"),
        ("{local: {key: sk-secret}}", "upstreams.local.key: There is no such setting"),
    ],
)
def test_an_error_in_the_file_is_named_and_nothing_is_applied(
    text: str, message: str, apply: Callable[[str], None]
) -> None:
    with pytest.raises(CommandError) as refusal:
        apply(f"upstreams: {text}\nmodel_roles: {{smol: tiny}}")
    assert str(refusal.value).startswith(message)
    assert "sk-secret" not in str(refusal.value)
    assert not Configuration.objects.exists()


def test_the_demo_model_can_be_configured_as_the_default_upstream(
    apply: Callable[[str], None], settings: Settings
) -> None:
    settings.DAYBOOK_UPSTREAMS = {}
    apply("upstreams: {default: {options: {drop: [seed]}}}")
    assert dialect_of("default").drop == ["seed"]


def test_the_schema_describes_upstreams() -> None:
    out = StringIO()
    call_command("agents", "schema", stdout=out)
    validator = Draft202012Validator(json.loads(out.getvalue()))
    assert validator.is_valid(yaml.safe_load(FILE))
    options = validator.schema["$defs"]["UpstreamOptions"]["properties"]
    assert options.keys() == UpstreamOptions.model_fields.keys()
    assert all(part.keys() >= {"description"} and "default" not in part for part in options.values())
    assert not validator.is_valid({"upstreams": {"local": {"dialect": "klingon"}}})
    assert not validator.is_valid({"upstreams": {"local": {"url": "http://10.0.0.7/v1"}}})


def test_unknown_stored_settings_are_ignored(caplog: pytest.LogCaptureFixture) -> None:
    Configuration.objects.create(section="upstreams", value={"local": {"dialect": "klingon"}})
    upstream_cache.sync()
    assert dialect_of("local").name == "openai"
    assert "The stored settings of the upstream local cannot be used" in caplog.text


def save_settings(client: Client, upstreams: str) -> Any:
    """Save the settings form with this text in the upstreams field."""
    initial = client.get(SETTINGS).context["adminform"].form.initial
    form = {name: value for name, value in initial.items() if value is not False}
    return client.post(SETTINGS, {**form, "upstreams": upstreams})


@pytest.mark.any_database
def test_upstreams_are_edited_in_the_admin_as_in_the_file(
    root: Client, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        assert save_settings(root, "local: {dialect: vllm, options: {drop: [seed]}}").status_code == 302
    assert Configuration.objects.get(section="upstreams").value == {
        "local": {"dialect": "vllm", "options": {"drop": ["seed"]}}
    }
    assert (dialect_of("local").name, dialect_of("local").drop) == ("vllm", ["seed"])
    assert "dialect: vllm" in root.get(SETTINGS).content.decode()
    assert save_settings(root, "").status_code == 302
    assert Configuration.objects.get(section="upstreams").value == {}


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nobody: {dialect: vllm}", "No upstream is called nobody."),
        ("local: {dialect: klingon}", "upstreams.local.dialect: Input should be"),
        ("local: {}\nlocal: {}", "This is not valid YAML in line 2: local stands here twice."),
        ("vllm", "upstreams: Input should be a mapping"),
    ],
)
def test_an_error_is_shown_at_its_field(root: Client, text: str, message: str) -> None:
    answer = save_settings(root, text)
    assert answer.status_code == 200
    (error,) = [str(error) for errors in answer.context["adminform"].form.errors.values() for error in errors]
    assert message in error
    assert not Configuration.objects.exists()


def test_learned_changes_are_listed_with_dates_and_the_servers_message(root: Client) -> None:
    learned_change_make(
        kind="set", parameter="reasoning_effort", value='"none"', condition="tools", words="<b>set it</b>"
    )
    page = root.get(LEARNED).content.decode()
    assert "reasoning_effort is set to &quot;none&quot; where tools are offered" in page
    assert "&lt;b&gt;set it&lt;/b&gt;" in page
    assert timezone.now().strftime("%Y") in page


def test_deleting_learned_changes_in_the_admin_forgets_them(
    root: Client, django_capture_on_commit_callbacks: Any
) -> None:
    rows = [learned_change_make(parameter=name) for name in ("seed", "top_k", "min_p")]
    upstream_cache.sync()
    assert len(upstream_cache.changes("local", "m")) == 3
    with django_capture_on_commit_callbacks(execute=True):
        root.post(reverse("admin:gateway_learnedchange_delete", args=[rows[0].pk]), {"post": "yes"})
    assert [change.parameter for change in upstream_cache.changes("local", "m")] == ["top_k", "min_p"]
    form = {"action": "delete_selected", "_selected_action": [rows[1].pk, rows[2].pk], "post": "yes"}
    with django_capture_on_commit_callbacks(execute=True):
        root.post(LEARNED, form)
    assert not upstream_cache.changes("local", "m")
    assert AuditEntry.objects.filter(action="delete").exists()


def test_doctor_lists_learned_changes(tmp_path: Path, settings: Settings) -> None:
    settings.DAYBOOK_HOME, settings.DAYBOOK_UPSTREAMS = tmp_path, {}
    learned_change_make()
    learned_change_make(parameter="top_k", expires_at=timezone.now())
    (found,) = [finding for finding in findings() if finding.check == "learned"]
    today, last = timezone.now(), timezone.now() + timedelta(days=30)
    assert found.level is Level.OK
    assert found.text == (
        f"local, model m: seed is left out, since {today:%Y-%m-%d}, until {last:%Y-%m-%d}: “Unknown parameter: 'seed'.”"
    )


def test_doctor_names_the_dialect_of_the_file(
    apply: Callable[[str], None], settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DAYBOOK_HOME = tmp_path
    apply(FILE)
    upstream_cache.forget()
    dialects: list[str] = []
    monkeypatch.setattr(
        "config.model_checks.upstream_finding", lambda check, **options: dialects.append(options["dialect"].name)
    )
    list(findings())
    assert dialects == ["mistral"]


def test_a_stored_change_is_read_back() -> None:
    learned_change_make(kind="rename", parameter="max_tokens", value='"max_completion_tokens"')
    upstream_cache.sync()
    assert upstream_cache.changes("local", "m") == [Change(Kind.RENAME, "max_tokens", "max_completion_tokens")]
