"""config.environment: what variables mean."""

import pytest

from config.environment import ConfigurationError, load_environment


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("DAYBOOK_PROMPTS", "prompts"),
        ("DAYBOOK_AGENTS", "agents"),
        ("DAYBOOK_STATIC", "static"),
        ("DAYBOOK_HOME", "home"),
        ("DAYBOOK_PORT", "port"),
        ("DAYBOOK_EMBEDDING_PATH", "embedding_path"),
    ],
)
def test_a_variable_that_is_set_to_nothing_is_as_one_that_is_not_set(
    monkeypatch: pytest.MonkeyPatch, name: str, field: str
) -> None:
    monkeypatch.delenv(name, raising=False)
    unset = getattr(load_environment(), field)
    monkeypatch.setenv(name, "")
    assert getattr(load_environment(), field) == unset


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DAYBOOK_PORT", "eighty"),
        ("DAYBOOK_SERVER", "apache"),
        ("DAYBOOK_WORKERS", "0"),
        ("OPENAI_BASE_URL", "localhost:1234"),
        ("REDIS_URL", "http://127.0.0.1:6379"),
        ("DAYBOOK_ALLOWED_HOSTS", "https://chat.example.org"),
        ("DAYBOOK_ALLOWED_HOSTS", "chat.example.org:8000"),  # no request would match it
        ("DAYBOOK_TRUSTED_ORIGINS", "https://"),
        ("DAYBOOK_UNDO_DAYS", "99999999999"),  # no calendar has so many days
        ("DAYBOOK_NOTIFICATION_DAYS", "99999999999"),
    ],
)
def test_a_wrong_variable_is_one_line_that_names_it(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=rf"^{name} is [^\n]*$"):
        load_environment()


def test_a_number_is_shown_although_its_name_has_key_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYBOOK_KEYWORDS_SECONDS", "0")
    with pytest.raises(ConfigurationError, match=r"^DAYBOOK_KEYWORDS_SECONDS is '0'; "):
        load_environment()


@pytest.mark.parametrize("hosts", ["*", ".example.org, 10.0.0.1", "[::1],chat.example.org", "bücher.example"])
def test_hosts_are_names_and_addresses(monkeypatch: pytest.MonkeyPatch, hosts: str) -> None:
    monkeypatch.setenv("DAYBOOK_ALLOWED_HOSTS", hosts)
    assert load_environment().allowed_hosts == hosts
