"""Environment variables about accounts and mail: how they are read, and one-line errors for invalid values."""

import pytest

from config.accounts import ignored_variables, mail, oidc, passwords_allowed
from config.environment import ConfigurationError, load_environment

OIDC = {"DAYBOOK_OIDC_ISSUER": "https://id.example.org", "DAYBOOK_OIDC_CLIENT_ID": "daybook"}
MAIL_FROM = {"DAYBOOK_MAIL_FROM": "daybook@example.org"}


def set_variables(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def read_all() -> None:
    env = load_environment()
    mail(env), oidc(env), passwords_allowed(env)


def test_nothing_is_configured_by_default() -> None:
    env = load_environment()
    assert (mail(env), oidc(env), passwords_allowed(env)) == (None, None, True)


@pytest.mark.parametrize(
    ("url", "port", "starttls", "tls"),
    [
        ("smtp+tls://daybook:p%40ss@mail.example.org", 587, True, False),
        ("smtps://daybook:p%40ss@mail.example.org", 465, False, True),
        ("smtp://daybook:p%40ss@mail.example.org:2525", 2525, False, False),
    ],
)
def test_a_mail_server_is_configured_by_a_url(
    monkeypatch: pytest.MonkeyPatch, url: str, port: int, starttls: bool, tls: bool
) -> None:
    set_variables(monkeypatch, MAIL_FROM | {"DAYBOOK_MAIL_URL": url})
    settings_read = mail(load_environment())
    assert settings_read is not None
    assert settings_read == {
        "EMAIL_HOST": "mail.example.org",
        "EMAIL_PORT": port,
        "EMAIL_HOST_USER": "daybook",
        "EMAIL_HOST_PASSWORD": "p@ss",
        "EMAIL_USE_TLS": starttls,
        "EMAIL_USE_SSL": tls,
        "EMAIL_TIMEOUT": 10,
        "DEFAULT_FROM_EMAIL": "daybook@example.org",
    }


@pytest.mark.parametrize(
    "sender", ["Diary <diary@example.org>", '"Diary, ours" <diary@example.org>', "diary@bücher.org"]
)
def test_the_mail_sender_may_have_a_name(monkeypatch: pytest.MonkeyPatch, sender: str) -> None:
    set_variables(monkeypatch, {"DAYBOOK_MAIL_URL": "smtp://mail.example.org", "DAYBOOK_MAIL_FROM": sender})
    settings_read = mail(load_environment())
    assert settings_read is not None
    assert settings_read["DEFAULT_FROM_EMAIL"] == sender


def test_variables_that_are_ignored_without_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    client = {"DAYBOOK_OIDC_CLIENT_ID": "daybook", "DAYBOOK_OIDC_ROLES": "people=user"}
    set_variables(monkeypatch, client | MAIL_FROM | {"DAYBOOK_ALERTS_SECRET": f"whsec_{'A' * 32}"})
    assert list(ignored_variables(load_environment())) == [
        "DAYBOOK_OIDC_CLIENT_ID, DAYBOOK_OIDC_ROLES: ignored, since DAYBOOK_OIDC_ISSUER is not set",
        "DAYBOOK_MAIL_FROM: ignored, since DAYBOOK_MAIL_URL is not set",
        "DAYBOOK_ALERTS_SECRET: ignored, since DAYBOOK_ALERTS_URL is not set",
    ]
    needed = {"DAYBOOK_MAIL_URL": "smtp://mail.example.org", "DAYBOOK_ALERTS_URL": "https://example.org/alerts"}
    set_variables(monkeypatch, OIDC | needed)
    assert list(ignored_variables(load_environment())) == []


def test_an_openid_provider_with_roles(monkeypatch: pytest.MonkeyPatch) -> None:
    roles = "people=user, cn=staff,a=b=administrator"
    set_variables(monkeypatch, OIDC | {"DAYBOOK_OIDC_ROLES": roles, "DAYBOOK_PASSWORDS": "false"})
    env = load_environment()
    settings_read = oidc(env)
    assert settings_read is not None
    assert settings_read.roles == {"people": "user", "cn": "staff", "a=b": "administrator"}
    assert not passwords_allowed(env)


def test_the_alerts_secret_is_a_standard_webhooks_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    set_variables(monkeypatch, {"DAYBOOK_ALERTS_SECRET": "whsec_" + "QUFB" * 8})
    assert load_environment().alerts_secret.get_secret_value() == "whsec_" + "QUFB" * 8


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"DAYBOOK_MAIL_URL": "http://hidden@mail.example.org"},
            "DAYBOOK_MAIL_URL is a value that is not shown; allowed",
        ),
        ({"DAYBOOK_MAIL_URL": "smtps://host:notaport"}, "DAYBOOK_MAIL_URL is a value that is not shown; allowed"),
        ({"DAYBOOK_MAIL_URL": "smtps://daybook:hidd%C3%A9n@mail.example.org"}, "must be ASCII"),
        ({"DAYBOOK_MAIL_URL": "smtps://hiddén@mail.example.org"}, "must be ASCII"),
        ({"DAYBOOK_MAIL_URL": "smtps://mail.example.org"}, "DAYBOOK_MAIL_FROM is not set"),
        ({"DAYBOOK_MAIL_FROM": "nobody"}, "DAYBOOK_MAIL_FROM is 'nobody'; allowed is one mail address."),
        ({"DAYBOOK_MAIL_FROM": "@"}, "DAYBOOK_MAIL_FROM is '@'; allowed is one mail address."),
        ({"DAYBOOK_MAIL_FROM": "a@example.org,b@example.org"}, "allowed is one mail address."),
        ({"DAYBOOK_MAIL_FROM": "day@book@example.org"}, "allowed is one mail address."),
        ({"DAYBOOK_ALERTS_MAIL": "root@example.org"}, "DAYBOOK_MAIL_URL is not set, but DAYBOOK_ALERTS_MAIL is"),
        ({"DAYBOOK_ALERTS_MAIL": "root@example.org,@"}, "allowed are mail addresses."),
        ({"DAYBOOK_ALERTS_MAIL": "root@exa mple.org"}, "allowed are mail addresses."),
        ({"DAYBOOK_ALERTS_MAIL": f"root@{'x' * 70}.org"}, "allowed are mail addresses."),
        ({"DAYBOOK_ALERTS_URL": "ftp://hidden"}, "DAYBOOK_ALERTS_URL is a value that is not shown; allowed"),
        ({"DAYBOOK_ALERTS_SECRET": "hidden"}, "DAYBOOK_ALERTS_SECRET is a value that is not shown; allowed are whsec_"),
        ({"DAYBOOK_ALERTS_SECRET": "whsec_hidden"}, "DAYBOOK_ALERTS_SECRET is a value that is not shown; allowed"),
        ({"DAYBOOK_ALERTS_SECRET": f"whsec_{'é' * 32}"}, "DAYBOOK_ALERTS_SECRET is a value that is not shown; allowed"),
        ({"DAYBOOK_OIDC_ISSUER": "http://id.example.org"}, "DAYBOOK_OIDC_ISSUER is 'http://id.example.org'; allowed"),
        ({"DAYBOOK_OIDC_ISSUER": "https://id.example.org"}, "DAYBOOK_OIDC_CLIENT_ID is not set"),
        (OIDC | {"DAYBOOK_OIDC_SCOPES": "email"}, "DAYBOOK_OIDC_SCOPES must contain openid."),
        (OIDC | {"DAYBOOK_OIDC_ROLES": "people=king"}, "DAYBOOK_OIDC_ROLES has 'people=king'; allowed is group=role"),
        ({"DAYBOOK_PASSWORDS": "false"}, "DAYBOOK_PASSWORDS is false, which needs DAYBOOK_OIDC_ISSUER"),
    ],
    ids=str,
)
def test_an_invalid_value_is_a_one_line_error(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    set_variables(monkeypatch, variables)
    with pytest.raises(ConfigurationError) as error:
        read_all()
    assert message in str(error.value)
    assert "hidden" not in str(error.value)
    assert "\n" not in str(error.value)
