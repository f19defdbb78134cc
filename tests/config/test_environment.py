"""config.environment: reading environment variables."""

from pathlib import Path

import pytest

from config.environment import (
    ConfigurationError,
    Environment,
    is_readable_folder,
    load_environment,
    unknown_variables,
)
from config.upstreams import upstreams


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
        ("REDIS_URL", "http://127.0.0.1:6379"),
        ("DAYBOOK_ALLOWED_HOSTS", "https://chat.example.org"),
        ("DAYBOOK_ALLOWED_HOSTS", "chat.example.org:8000"),  # no request's host would match it
        ("DAYBOOK_TRUSTED_ORIGINS", "https://"),
        ("DAYBOOK_UNDO_DAYS", "99999999999"),  # beyond the range of dates
        ("DAYBOOK_NOTIFICATION_DAYS", "99999999999"),
        ("DAYBOOK_SESSION_DAYS", "13"),  # fewer than DAYBOOK_APPROVAL_DAYS
        ("DAYBOOK_REVISION_DAYS", "29"),  # fewer than DAYBOOK_UNDO_DAYS
        ("DAYBOOK_MODEL", " "),
        ("DAYBOOK_MODEL", "one\ntwo"),
        ("DAYBOOK_HOME", " "),
        ("DAYBOOK_HOST", b"\xff".decode("utf-8", "surrogateescape")),
        ("DAYBOOK_SECRET_KEY", b"key\xff".decode("utf-8", "surrogateescape")),
        ("DAYBOOK_MAIL_FROM", " "),
        ("DAYBOOK_MAIL_URL", "smtp://mail example:25"),
        ("DAYBOOK_ALERTS_URL", "https://alerts.example:99999/"),
        ("DAYBOOK_OIDC_ISSUER", "https://id.example:99999/"),
        ("DAYBOOK_TRUSTED_ORIGINS", "https://chat.example.org/"),  # browsers send origins without a path
        ("DAYBOOK_TRUSTED_ORIGINS", "https://chat.example.org:99999"),
        ("DAYBOOK_TRUSTED_ORIGINS", "app://obsidian.md/"),
        ("DAYBOOK_TRUSTED_ORIGINS", "null"),  # any page can have it
        ("OPENAI_BASE_URL", " "),
        ("OPENAI_BASE_URL", "http://localhost:1234/v1 "),
        ("OPENAI_BASE_URL", "http://localhost:1234/v1\n"),
        ("OPENAI_BASE_URL", "http://localhost:99999/v1"),
        ("OPENAI_BASE_URL", "http://:1234/v1"),
        ("OPENAI_BASE_URL", "http://localhost/v1?version=1"),  # paths are appended
        ("OPENAI_API_KEY", "key\n"),
        ("OPENAI_API_KEY", "schlüssel"),
        ("DAYBOOK_API_KEY", f"dbk_{'ü' * 30}"),
        ("DAYBOOK_ADMIN_USER", "x" * 151),  # a name has 150 characters at most
        ("REDIS_URL", "localhost:6379"),
        ("REDIS_URL", "http://localhost"),
        ("REDIS_URL", "redis://localhost:99999"),
        ("REDIS_URL", "redis://localhost/first"),  # redis-py would take number 0
        ("DAYBOOK_UPSTREAM_LAB_URL", "http://localhost:1234/v1 "),
        ("DAYBOOK_UPSTREAM_LAB_URL", "http://localhost:99999/v1"),
        ("DAYBOOK_UPSTREAM_LAB_KEY", "key\n"),
        ("OPENAI_OPTIONS", '{"idle_seconds": Infinity}'),
        ("OPENAI_OPTIONS", '{"set": {"temperature": NaN}}'),
    ],
)
def test_a_wrong_variable_is_named_in_a_one_line_error(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=rf"^{name} is [^\n]*$"):
        upstreams(load_environment())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DAYBOOK_MODEL", '"gpt-5"'),
        ("DAYBOOK_HOME", "'/srv/daybook'"),
        ("DAYBOOK_ALLOWED_HOSTS", '"chat.example.org"'),
        ("OPENAI_BASE_URL", '"http://127.0.0.1:1234/v1"'),
        ("OPENAI_API_KEY", '"sk-1"'),
        ("DAYBOOK_PORT", '"8000"'),
        ("DAYBOOK_UPSTREAM_LOCAL_KEY", "'sk-1'"),
    ],
)
def test_quotation_marks_that_docker_leaves_in_a_value_are_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv("DAYBOOK_UPSTREAM_LOCAL_URL", "http://127.0.0.1:1234/v1")
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=rf"^{name} is .*; it is in quotation marks, .*: leave them out\.$"):
        upstreams(load_environment())


def test_quotation_marks_within_a_value_and_in_secret_keys_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYBOOK_MAIL_FROM", '"Daybook" <daybook@example.org>')
    monkeypatch.setenv("DAYBOOK_SECRET_KEY", '"a key that signed cookies so far"')
    env = load_environment()
    assert env.mail_from.startswith('"')
    assert env.secret_key.get_secret_value().startswith('"')


@pytest.mark.parametrize(("name", "value"), [("model", " gpt-5 "), ("host", "::1 "), ("home", " /srv/daybook")])
def test_spaces_around_a_value_are_removed(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"DAYBOOK_{name.upper()}", value)
    assert str(getattr(load_environment(), name)) == value.strip()


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("PORT", "abc", "whole numbers from 0 to 65,535"),
        ("WORKERS", "99", "whole numbers from 1 to 64"),
        ("WORKERS", "1.5", "whole numbers from 1 to 64"),
        ("DB_BUSY_SECONDS", "nan", "numbers from 0.1 to 60"),
        ("KEYWORDS_SECONDS", "0", "numbers above 0, up to 86,400"),
        ("METRICS", "maybe", "true and false"),
        ("LOG", "xml", "'console' or 'json'"),
        ("ADMIN_USER", "x" * 151, "at most 150 characters"),
    ],
)
def test_the_error_says_which_values_are_allowed(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, allowed: str
) -> None:
    monkeypatch.setenv(f"DAYBOOK_{name}", value)
    with pytest.raises(ConfigurationError, match=rf"^DAYBOOK_{name} is '{value}'; allowed are {allowed}\.$"):
        load_environment()


def test_a_number_is_shown_although_its_name_has_key_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYBOOK_KEYWORDS_SECONDS", "0")
    with pytest.raises(ConfigurationError, match=r"^DAYBOOK_KEYWORDS_SECONDS is '0'; "):
        load_environment()


@pytest.mark.parametrize("hosts", ["*", ".example.org, 10.0.0.1", "[::1],chat.example.org", "bücher.example"])
def test_hosts_may_be_names_and_addresses(monkeypatch: pytest.MonkeyPatch, hosts: str) -> None:
    monkeypatch.setenv("DAYBOOK_ALLOWED_HOSTS", hosts)
    assert load_environment().allowed_hosts == hosts


@pytest.mark.parametrize("url", ["redis://", "rediss://:secret@redis.example:6380/3", "unix:///run/redis.sock?db=1"])
def test_addresses_of_redis(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("REDIS_URL", url)
    assert load_environment().redis_url.get_secret_value() == url


NUMBERS = [field for field, info in Environment.model_fields.items() if info.annotation in {int, float}]


@pytest.mark.parametrize("value", ["-1", "9" * 30, "inf", "nan"])
@pytest.mark.parametrize("field", NUMBERS)
def test_a_number_has_two_bounds(monkeypatch: pytest.MonkeyPatch, field: str, value: str) -> None:
    monkeypatch.setenv(f"DAYBOOK_{field.upper()}", value)
    with pytest.raises(ConfigurationError, match=rf"^DAYBOOK_{field.upper()} is [^\n]*$"):
        load_environment()


def test_mistyped_names_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DAYBOOK_ALOWED_HOSTS", "DAYBOOK_UPSTREAM_LAB_URI", "daybook_upstream_lab_key", "DAYBOOK_Port"):
        monkeypatch.setenv(name, "1")
    assert [name for name in unknown_variables() if name.lower().endswith(("hosts", "uri", "key", "port"))] == [
        "DAYBOOK_ALOWED_HOSTS",
        "DAYBOOK_UPSTREAM_LAB_URI",
    ]


def test_variables_of_an_upstream_may_be_in_lower_case_like_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYBOOK_UPSTREAM_lab_URL", "http://127.0.0.1:1234/v1/")
    monkeypatch.setenv("daybook_upstream_lab_at_once", "3")
    lab = {"url": "http://127.0.0.1:1234/v1", "key": "", "at_once": 3}
    assert upstreams(load_environment())["lab"] == lab


def test_a_folder_that_is_closed_is_not_one_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    assert [is_readable_folder(path) for path in (tmp_path, tmp_path / "file", tmp_path / "none")] == [
        True,
        False,
        False,
    ]
    monkeypatch.setattr("os.access", lambda *_: False)  # root may read everything
    assert not is_readable_folder(tmp_path)


@pytest.mark.parametrize("name", ["home", "agents", "prompts", "static", "embedding_path"])
def test_a_tilde_in_a_path_is_the_home_folder_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """Shells expand it, but not in env files and not between quotation marks."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(f"DAYBOOK_{name.upper()}", "~/daybook")
    assert getattr(load_environment(), name) == tmp_path / "daybook"


def test_a_tilde_of_an_unknown_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYBOOK_HOME", "~no-such-user/daybook")
    with pytest.raises(ConfigurationError, match=r"^DAYBOOK_HOME is '~no-such-user/daybook'; [^\n]*home folder"):
        load_environment()


@pytest.mark.parametrize("origin", ["app://obsidian.md", "tauri://localhost", "chrome-extension://abcdefghijklmnop"])
def test_the_origin_of_an_app_or_extension_can_be_trusted(monkeypatch: pytest.MonkeyPatch, origin: str) -> None:
    monkeypatch.setenv("DAYBOOK_TRUSTED_ORIGINS", f"https://chat.example.org,{origin}")
    assert load_environment().trusted_origins.endswith(origin)


def test_origins_are_in_lower_case_as_browsers_send_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYBOOK_TRUSTED_ORIGINS", "HTTPS://Chat.Example.org,app://Obsidian.md")
    assert load_environment().trusted_origins == "https://chat.example.org,app://obsidian.md"
