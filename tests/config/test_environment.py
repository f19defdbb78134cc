"""config.environment: reading environment variables."""

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
def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch, name: str, field: str) -> None:
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
        ("DAYBOOK_ALLOWED_HOSTS", "https://chat.example.org"),
        ("DAYBOOK_ALLOWED_HOSTS", "chat.example.org:8000"),  # no request's host would match it
        ("DAYBOOK_TRUSTED_ORIGINS", "https://"),
        ("DAYBOOK_UNDO_DAYS", "99999999999"),  # beyond the range of dates
        ("DAYBOOK_NOTIFICATION_DAYS", "99999999999"),
    ],
)
def test_a_wrong_variable_is_named_in_a_one_line_error(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=rf"^{name} is [^\n]*$"):
        load_environment()


@pytest.mark.parametrize("hosts", ["*", ".example.org, 10.0.0.1", "[::1],chat.example.org", "bücher.example"])
def test_hosts_may_be_names_and_addresses(monkeypatch: pytest.MonkeyPatch, hosts: str) -> None:
    monkeypatch.setenv("DAYBOOK_ALLOWED_HOSTS", hosts)
    assert load_environment().allowed_hosts == hosts
