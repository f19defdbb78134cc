"""/oauth/authorize: the page on which a person connects an app"""

import re
from collections.abc import Callable
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from oauth2_provider.models import Application, Grant

from gateway.models import ApiKey
from gateway.oauth import connections
from gateway.oauth.registration import client_register
from memories.audit.log import audit_sentence
from memories.models import AuditEntry, Owner
from tests.factories import memory_make
from tests.gateway.oauth_app import CALLBACK, App, callback_parameters
from tests.pages import client_of

CONNECT = {"decision": "connect", "book": "main", "rights": "write"}


@pytest.fixture
def register(db: None) -> Callable[..., App]:
    def register_app(*redirects: str, name: str = "Claude") -> App:
        app = App()
        app.redirects = redirects or (CALLBACK,)
        app.client_id = client_register(name, app.redirects).client_id
        return app

    return register_app


@pytest.fixture
def app(register: Callable[..., App]) -> App:
    return register()


def text(response: Any) -> str:
    return str(response.content.decode())


def test_the_page_shows_the_app_its_redirect_the_books_and_the_rights(alice: Owner, app: App) -> None:
    memory_make(alice, "Tests with pytest.", book="code")
    page = client_of(alice).get(app.address())
    assert page.status_code == 200
    for words in ("Claude", "claude.example", "alice", ">main<", ">code<", "Read and write"):
        assert words in text(page), words
    assert not ApiKey.objects.exists()


def test_the_page_cannot_be_framed_or_cached_and_has_no_inline_script(alice: Owner, app: App) -> None:
    page = client_of(alice).get(app.address())
    policy = page.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' https://claude.example;" in policy
    assert "'unsafe-inline'" not in policy
    assert "script-src 'self';" in policy
    assert page.headers["X-Frame-Options"] == "DENY"
    assert "no-store" in page.headers["Cache-Control"]
    assert page.headers["Cross-Origin-Opener-Policy"] == "unsafe-none"
    assert "onclick" not in text(page)


def test_a_decision_needs_the_csrf_token(alice: Owner, app: App) -> None:
    person = Client(enforce_csrf_checks=True)
    person.force_login(User.objects.get(pk=alice.user_id))
    assert person.post(app.address(), CONNECT).status_code == 403
    token = person.get(app.address()).context["csrf_token"]
    assert person.post(app.address(), {**CONNECT, "csrfmiddlewaretoken": str(token)}).status_code == 302
    assert ApiKey.objects.count() == 1


def test_a_person_signs_in_first_and_returns(alice: Owner, app: App) -> None:
    person = Client()
    sent = person.get(app.address())
    assert sent.headers["Location"] == f"/login/?next={quote(app.address(), safe='/')}"
    form = person.get(sent.headers["Location"])
    assert form.headers["Cross-Origin-Opener-Policy"] == "unsafe-none"
    wrong = person.post(sent.headers["Location"], {"username": "alice", "password": "no", "next": form.context["next"]})
    back = person.post(
        sent.headers["Location"], {"username": "alice", "password": "alice knows it", "next": wrong.context["next"]}
    )
    assert back.headers["Location"] == app.address()
    assert person.get(app.address()).status_code == 200


def test_other_sign_ins_sever_the_opener_window(db: None) -> None:
    assert Client().get("/login/?next=/account/").headers["Cross-Origin-Opener-Policy"] == "same-origin"


@pytest.mark.any_database
def test_sign_ins_on_the_way_are_throttled(alice: Owner, app: App) -> None:
    person = Client()
    address = person.get(app.address()).headers["Location"]
    wrong = {"username": "alice", "password": "no", "next": app.address()}
    assert [person.post(address, wrong).status_code for _ in range(11)][-1] == 429


def test_cancelling_returns_an_error_to_the_app_and_connects_nothing(alice: Owner, app: App) -> None:
    answer = client_of(alice).post(app.address(), {**CONNECT, "decision": "cancel"})
    assert callback_parameters(answer) == {"error": "access_denied", "state": "s1", "iss": "http://testserver"}
    assert not ApiKey.objects.exists()
    assert not Grant.objects.exists()


@pytest.mark.any_database
@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": "nobody"},
        {"client_id": None},
        {"redirect_uri": "https://evil.example/"},
        {"redirect_uri": f"{CALLBACK}/more"},
        {"redirect_uri": f"{CALLBACK}?more=1"},
        {"redirect_uri": CALLBACK.replace("https", "http")},
        {"redirect_uri": CALLBACK.replace("claude.example", "claude.example:8443")},
        {"state": "s" * 5000},
    ],
)
def test_an_unknown_app_or_redirect_is_never_redirected_to(
    alice: Owner, app: App, changed: dict[str, str | None]
) -> None:
    for send in (client_of(alice).get, lambda address: client_of(alice).post(address, CONNECT)):
        answer = send(app.address(**changed))
        assert answer.status_code == 400
        assert "was not connected" in text(answer)
    assert not ApiKey.objects.exists()


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": ""}, "invalid_request"),
        ({"code_challenge": "c" * 42}, "invalid_request"),
        ({"code_challenge": "c" * 129}, "invalid_request"),
        ({"code_challenge": "ü" * 43}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"resource": "http://testserver/api"}, "invalid_target"),
        ({"response_type": "token"}, "unsupported_response_type"),
    ],
)
def test_other_errors_are_returned_to_the_app(
    alice: Owner, app: App, changed: dict[str, str | None], error: str
) -> None:
    """By a link for a person who has not connected the app: anybody can register one, with any address."""
    person = client_of(alice)
    page = person.get(app.address(**changed))
    assert (page.status_code, "Location" in page.headers) == (400, False)
    assert "was not connected" in text(page)
    link = re.search(r'<a href="([^"]*)"[^>]*>Return to claude.example</a>', text(page))
    assert link
    addresses = [unescape(link[1]), person.post(app.address(**changed), CONNECT).headers["Location"]]
    assert not ApiKey.objects.exists()
    person.post(app.address(), CONNECT)
    addresses.append(person.get(app.address(**changed)).headers["Location"])
    for address in addresses:
        assert address.startswith(f"{CALLBACK}?")
        parameters = dict(parse_qsl(urlsplit(address).query))
        assert (parameters["error"], parameters["state"], parameters["iss"]) == (error, "s1", "http://testserver")


@pytest.mark.parametrize("resource", [None, "http://testserver/mcp/", "HTTP://TESTSERVER/mcp"])
def test_every_code_is_for_mcp_at_this_address(alice: Owner, app: App, resource: str | None) -> None:
    assert client_of(alice).post(app.address(resource=resource), CONNECT).status_code == 302
    assert Grant.objects.get().resource == ["http://testserver/mcp"]


def test_parameters_of_openid_are_not_stored(alice: Owner, app: App) -> None:
    address = app.address(nonce="n" * 300, claims='{"id_token": {}}')
    assert client_of(alice).post(address, CONNECT).status_code == 302
    code = Grant.objects.get()
    assert (code.nonce, code.claims) == ("", "{}")


@pytest.mark.any_database
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_a_loopback_redirect_may_use_any_port(alice: Owner, register: Callable[..., App], host: str) -> None:
    app = register(f"http://{host}:1234/callback")
    answer = client_of(alice).post(app.address(redirect_uri=f"http://{host}:50123/callback"), CONNECT)
    assert answer.headers["Location"].startswith(f"http://{host}:50123/callback?")
    page = client_of(alice).get(app.address(redirect_uri=f"http://{host}:50123/callback"))
    assert "an app on this computer" in text(page)
    assert client_of(alice).get(app.address(redirect_uri=f"http://{host}:50123/other")).status_code == 400


def test_a_redirect_with_a_custom_scheme_is_supported(alice: Owner, register: Callable[..., App]) -> None:
    callback = "cursor://anysphere.cursor-mcp/oauth/callback"
    app = register(callback)
    assert "the app that opens cursor: addresses" in text(client_of(alice).get(app.address()))
    answer = client_of(alice).post(app.address(), CONNECT)
    assert answer.headers["Location"].startswith(f"{callback}?")
    assert dict(parse_qsl(urlsplit(answer.headers["Location"]).query))["code"]


@pytest.mark.parametrize("chosen", [{"book": "charlies"}, {"book": ""}, {"rights": "all"}, {"rights": ""}])
def test_only_own_books_and_known_rights_are_accepted(
    alice: Owner, charlie: Owner, app: App, chosen: dict[str, str]
) -> None:
    memory_make(charlie, "Likes rum.", book="charlies")
    answer = client_of(alice).post(app.address(), CONNECT | chosen)
    assert (answer.status_code, "Choose" in text(answer)) == (400, True)
    assert not ApiKey.objects.exists()


def test_an_app_that_asked_to_read_gets_read_only_rights(alice: Owner, app: App) -> None:
    reading = app.address(scope="memory:read")
    assert "Read and write" not in text(client_of(alice).get(reading))
    assert client_of(alice).post(reading, CONNECT).status_code == 400
    assert client_of(alice).post(reading, CONNECT | {"rights": "read"}).status_code == 302
    assert ApiKey.objects.get().read_only is True


def test_unknown_scopes_are_ignored(alice: Owner, app: App) -> None:
    assert client_of(alice).post(app.address(scope="openid offline_access"), CONNECT).status_code == 302
    assert Grant.objects.get().scope == "memory:read memory:write"


def test_consent_and_disconnection_are_audited(alice: Owner, app: App) -> None:
    person = client_of(alice)
    person.post(app.address(), CONNECT)
    key = ApiKey.objects.get()
    assert person.post(f"/account/apps/{key.pk}/disconnect/").status_code == 302
    sentences = [audit_sentence(entry) for entry in AuditEntry.objects.filter(kind="connected app").order_by("at")]
    assert sentences == [
        f"alice allowed connected app {key.pk} of alice. It may read and write.",
        f"alice revoked connected app {key.pk} of alice.",
    ]


@pytest.mark.any_database
def test_the_number_of_connections_is_limited(
    alice: Owner, register: Callable[..., App], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 3)
    person = client_of(alice)
    apps = [register() for _ in range(4)]
    assert [person.post(app.address(), CONNECT).status_code for app in apps] == [302] * 3 + [409]
    assert person.post(apps[0].address(), CONNECT | {"rights": "read"}).status_code == 302


def test_the_name_of_an_app_is_escaped(alice: Owner, register: Callable[..., App]) -> None:
    page = text(client_of(alice).get(register(name="<script>alert(1)</script>").address()))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_a_client_that_was_swept_meanwhile_is_refused(alice: Owner, app: App) -> None:
    Application.objects.all().delete()
    assert client_of(alice).post(app.address(), CONNECT).status_code == 400


@pytest.mark.parametrize(
    "query",
    [
        "",
        "client_id=%zz",
        "client_id=%ff&redirect_uri=%ff",
        "client_id=a&client_id=b",
        "client_id=%ED%A0%80&response_type=code",
        "response_type=code&client_id=é&redirect_uri=http://[::1",
        "%00=1",
        "=&&&=;",
    ],
)
def test_malformed_queries_are_refused_with_a_page(alice: Owner, query: str) -> None:
    person = client_of(alice)
    for answer in (person.get(f"/oauth/authorize?{query}"), person.post(f"/oauth/authorize?{query}", CONNECT)):
        assert answer.status_code == 400


@pytest.mark.any_database
@pytest.mark.parametrize(
    "changed",
    [
        {"redirect_uri": "http://[::1"},
        {"redirect_uri": "https://claude.example:99999/"},
        {"redirect_uri": "%zz"},
        {"resource": "http://[::1"},
        {"state": "\ud7ff\u202e"},
        {"scope": "\x07"},
        {"code_challenge": "short"},
        {"code_challenge": "é" * 43},
    ],
)
def test_malformed_values_never_cause_a_server_error(alice: Owner, app: App, changed: dict[str, str | None]) -> None:
    assert client_of(alice).get(app.address(**changed)).status_code in {200, 302, 400}
    assert client_of(alice).post(app.address(**changed), CONNECT).status_code in {302, 400}
