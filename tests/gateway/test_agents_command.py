"""manage.py agents"""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import IntegrityError
from django.utils import timezone
from jsonschema import Draft202012Validator
from pydantic.alias_generators import to_camel

from gateway.agents.file import bootstrap_agents, parse
from gateway.agents.settings import ConsolidationSettings
from gateway.models import Agent, Configuration, Session
from gateway.services import agent_delete, agent_save, session_create
from memories.database.access import in_thread, vanished
from memories.errors import InvalidRequest
from memories.models import AuditEntry, Owner, Target
from memories.services import book_limits
from tests.conftest import Api
from tests.overlapping import only_postgresql, overlap

FILE = """
agents:
  helper:
    instructions: Help.
    tools: [{type: memory}]
    memory_review_interval: 3
memories: {enabled: true, maxRolloutAgeDays: 7}
model_roles: {smol: small}
prices: {small: {input: 1, output: 2.5}}
"""


def apply(folder: Path, text: str) -> None:
    path = folder / "agents.yaml"
    path.write_text(text)
    call_command("agents", "apply", str(path))


def export(capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    call_command("agents", "export")
    return capsys.readouterr().out


def test_apply_leaves_agents_that_the_file_does_not_name(
    agent: Agent, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    apply(tmp_path, FILE)
    assert capsys.readouterr().out == "Applied helper.\n"
    assert set(Agent.objects.values_list("name", flat=True)) == {"assistant", "helper"}
    assert Configuration.objects.get(section="memories").value["max_rollout_age_days"] == 7


@pytest.mark.parametrize("hold", ["off", "Off", '"off"'])
def test_a_bare_off_is_a_word_not_a_boolean(hold: str) -> None:
    assert parse(f"agents: {{helper: {{memory_hold: {hold}}}}}").agents["helper"].memory_hold == "off"


def test_other_booleans_are_no_memory_hold() -> None:
    with pytest.raises(InvalidRequest, match=r"agents\.helper\.memory_hold: Input should be 'off'"):
        parse("agents: {helper: {memory_hold: on}}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("agents: {helper: }", "agents.helper: Input should be a mapping"),
        ("agents: {helper: {tools: memory}}", "agents.helper.tools: Input should be a list."),
        ("agents: {helper: {modle: gpt-4o-mini}}", "agents.helper.modle: There is no such setting."),
        ("agent: {helper: {}}", "agent: There is no such setting."),
        ("agents: {my helper: {}}", "agents.my helper: A name has at most 64 letters"),
        ("agents: {list: {tools: memory}}", "agents.list.tools: Input should be a list."),
        ("agents: {yes: {}}", "This is not valid YAML in line 1: the key yes must be in quotes: 'yes'."),
        ("yes: {}", "This is not valid YAML in line 1: the key yes must be in quotes: 'yes'."),
        ("prices: {2024-01-01: {}}", "This is not valid YAML in line 1: the key 2024-01-01 must be in quotes:"),
        ("agents: {helper: {model: []}}", "agents.helper.model: The list is empty; leave the setting out."),
        ("agents: {helper: {tools: [memory]}}", "agents.helper.tools.0: Input should be a mapping."),
        (
            "agents: {helper: {model: [a, b, c, d, e, f]}}",
            "agents.helper.model: List should have at most 5 items, not 6.",
        ),
    ],
)
def test_a_mistake_is_refused_in_plain_words(text: str, words: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse(text)
    assert str(refused.value).startswith(words)


def test_a_file_with_settings_only_is_applied(agent: Agent, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    apply(tmp_path, "memories: {enabled: true}")
    assert capsys.readouterr().out == "Applied. The file names no agents.\n"
    assert Configuration.objects.get(section="memories").value["enabled"] is True


def test_memory_settings_that_a_file_does_not_name_are_kept(db: None, tmp_path: Path) -> None:
    apply(tmp_path, "memories: {enabled: true, maxRolloutAgeDays: 7}\nmodel_roles: {smol: small}")
    apply(tmp_path, "memories: {scanLimit: 9}\nmodel_roles: {default: large}")
    rows = dict(Configuration.objects.values_list("section", "value"))
    assert rows["memories"] == {"enabled": True, "max_rollout_age_days": 7, "scan_limit": 9}
    assert rows["model_roles"] == {"smol": "small", "default": "large"}
    apply(tmp_path, "memories: {enabled: false, maxRolloutAgeDays: 30}")
    assert Configuration.objects.get(section="memories").value == {"scan_limit": 9}


def test_applying_an_export_changes_nothing(agent: Agent, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    apply(tmp_path, FILE)
    first = export(capsys)
    before = list(Agent.objects.order_by("name").values("name", "settings", "version"))
    apply(tmp_path, first)
    assert export(capsys) == first
    assert list(Agent.objects.order_by("name").values("name", "settings", "version")) == before
    assert yaml.safe_load(first)["agents"]["helper"]["memory_review_interval"] == 3


def test_the_packaged_file_can_be_applied(db: None) -> None:
    call_command("agents", "apply", str(settings.DAYBOOK_PACKAGED_AGENTS))
    assert Agent.objects.get().name == "assistant"


def test_the_schema_describes_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("agents", "schema")
    schema = json.loads(capsys.readouterr().out)
    keys = schema["$defs"]["AgentSettings"]["properties"]
    assert "memory_review_interval" in keys
    assert all(key.get("description") for key in keys.values())
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("agents: {helper: {nonsense: 1}}", "agents.helper.nonsense"),
        ("agents: {helper: {memory_review_interval: -1}}", "agents.helper.memory_review_interval"),
        ("agents: {helper: {memory_review_interval: many}}", "agents.helper.memory_review_interval"),
        ("agents: {helper: {inject_memories: 1}}", "agents.helper.inject_memories"),
        ("agents: {helper: {tools: [{type: rocket}]}}", "agents.helper.tools.0.type"),
        ("agents: {fine: {}, helper: {context_token_limit: 1999}}", "agents.helper.context_token_limit"),
        ("memories: {enabled: perhaps}", "memories.enabled"),
        ("other: 1", "other"),
        ("upstreams: {default: {options: {idle_seconds: .inf}}}", "upstreams.default.options.idle_seconds"),
        ("upstreams: {default: {options: {set: {top_p: .nan}}}}", "upstreams.default.options"),
        ("prices: {small: {input: 1.0e+300, output: 1}}", "prices.small.input"),
        ('agents: {"two\\nlines": {}}', "agents.two lines"),
        ('agents: {helper: {instructions: "\x07"}}', "special characters are not allowed"),
        ("agents: [", "YAML"),
        ("- a list", "mapping"),
    ],
)
def test_an_invalid_file_is_refused_as_a_whole_with_the_path_of_the_error(
    db: None, tmp_path: Path, text: str, path: str
) -> None:
    with pytest.raises(CommandError) as raised:
        apply(tmp_path, text)
    message = str(raised.value)
    assert path in message
    assert "\n" not in message
    assert not Agent.objects.exists()


@pytest.mark.parametrize("bootstrap", [False, True])
def test_an_upstream_that_is_not_configured_is_reported(
    db: None, tmp_path: Path, settings: Any, caplog: pytest.LogCaptureFixture, bootstrap: bool
) -> None:
    settings.DAYBOOK_AGENTS = tmp_path / "agents.yaml"
    settings.DAYBOOK_AGENTS.write_text("agents: {helper: {upstream: [nope, My-GPU]}}\nmemories: {upstream: gone}")
    if bootstrap:
        bootstrap_agents()
    else:
        call_command("agents", "apply", str(settings.DAYBOOK_AGENTS))
    assert caplog.messages == [
        "agent helper: No upstream is called My-GPU: their names consist of lower-case letters, digits and _.",
        "agent helper: No upstream is called nope. Set DAYBOOK_UPSTREAM_NOPE_URL.",
        "memories.upstream: No upstream is called gone. Set DAYBOOK_UPSTREAM_GONE_URL.",
    ]
    assert Agent.objects.get().name == "helper"


def test_a_duplicate_agent_name_is_refused(db: None) -> None:
    with pytest.raises(InvalidRequest, match=r"line 3: helper stands here twice\. Nothing was applied\."):
        parse("agents:\n  helper: {book: a}\n  helper: {book: b}\n")
    merged = parse("agents:\n  one: &one {book: a}\n  two: {<<: *one, book: b}\n").agents
    assert [agent.book for agent in merged.values()] == ["a", "b"]


def test_null_characters_are_removed(db: None, tmp_path: Path) -> None:
    apply(tmp_path, 'agents: {helper: {instructions: "Help\\0.", parameters: {stop: "a\\0"}}}')
    assert Agent.objects.get(name="helper").settings == {"instructions": "Help.", "parameters": {"stop": "a"}}


def test_aliases_of_aliases_are_no_endless_file(db: None) -> None:
    lines = [f"      a{n}: &a{n} [{', '.join(['*a' + str(n - 1)] * 9)}]" for n in range(1, 9)]
    bomb = "\n".join(["agents:", "  helper:", "    parameters:", "      a0: &a0 [1]", *lines])
    with pytest.raises(InvalidRequest, match="aliases included"):
        parse(bomb)


def test_a_file_without_end_is_refused(db: None) -> None:
    with pytest.raises(CommandError, match="/dev/zero is larger than 10000000 bytes"):
        call_command("agents", "apply", "/dev/zero")


@pytest.mark.parametrize("content", [b"agents: [", b"\xff", b"other: 1"])
def test_a_file_that_the_environment_names_is_refused_with_the_variable(
    db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(settings, "DAYBOOK_AGENTS", tmp_path / "agents.yaml")
    settings.DAYBOOK_AGENTS.write_bytes(content)
    with pytest.raises(InvalidRequest, match=r"^DAYBOOK_AGENTS is '[^\n]*Nothing was applied\.$"):
        bootstrap_agents()


def test_a_missing_file_is_reported(db: None, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("agents", "apply", str(tmp_path / "none.yaml"))


def schema(capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    call_command("agents", "schema")
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", ConsolidationSettings.model_fields)
def test_the_schema_and_the_parser_accept_both_names_of_a_memory_setting(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    validator = Draft202012Validator(schema(capsys))
    value = ConsolidationSettings.model_fields[name].default
    for key in (name, to_camel(name)):
        data = {"memories": {key: value}}
        assert list(validator.iter_errors(data)) == []
        assert parse(json.dumps(data)).memories == ConsolidationSettings()


@pytest.mark.parametrize(
    "memories",
    [
        {"scanlimit": 3},
        {"scan-limit": 3},
        {"scan_limit": 3, "scanLimit": 4},
        {"scanLimit": 0},
    ],
)
def test_the_schema_and_the_parser_refuse_the_same_memory_settings(
    memories: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    data = {"memories": memories}
    assert list(Draft202012Validator(schema(capsys)).iter_errors(data)) != []
    with pytest.raises(InvalidRequest, match="Nothing was applied"):
        parse(json.dumps(data))


@pytest.mark.django_db
async def test_a_deleted_agent_is_gone_at_once_with_its_budget(alice_api: Api, session: Session) -> None:
    await in_thread(lambda: agent_save("typo", {"user_char_limit": 0}))
    assert (await alice_api.post("/api/sessions", {"agent": "typo"}))[0] == 201
    await in_thread(lambda: Session.objects.filter(agent__name="typo").delete())
    assert await in_thread(lambda: book_limits("main")[Target.USER]) == 0
    await in_thread(lambda: call_command("agents", "delete", "typo"))
    assert (await alice_api.post("/api/sessions", {"agent": "typo"}))[0] == 404
    assert await in_thread(lambda: book_limits("main")[Target.USER]) == 8000
    assert await in_thread(lambda: AuditEntry.objects.get(action="delete", kind="agent").actor) == "system"


@only_postgresql
@pytest.mark.django_db(transaction=True)
def test_a_session_that_begins_while_its_agent_is_deleted_is_refused(alice: Owner) -> None:
    agent = agent_save("typo", {})
    begin = partial(pytest.raises, IntegrityError, session_create, alice, agent)
    _, refusal = overlap(partial(agent_delete, "typo"), begin, pause_after="SELECT gateway_session agent_id")
    assert vanished(refusal.value)
    assert not Agent.objects.exists()


@pytest.mark.django_db
def test_an_agent_with_sessions_is_not_deleted(session: Session) -> None:
    Session.objects.update(deleted_at=timezone.now())  # it can be restored
    with pytest.raises(CommandError, match="has sessions"):
        call_command("agents", "delete", session.agent.name)
    with pytest.raises(CommandError, match="There is no agent nobody"):
        call_command("agents", "delete", "nobody")
    assert Agent.objects.exists()
