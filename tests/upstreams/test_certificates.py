"""Model servers with invalid certificates: people, administrators and `doctor` are told what is wrong."""

import datetime
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pytest_django.fixtures import Settings

from config.findings import Level
from config.model_checks import upstream_finding
from gateway.chat.labels import error_words
from gateway.upstream import ModelRequest, ModelTarget, OpenAIModel, ResilientModel
from gateway.upstream.dialects import DIALECTS
from memories.errors import DomainError
from tests.upstreams.failing_servers import Clock

NOW = datetime.datetime.now(datetime.UTC)
YEAR = datetime.timedelta(days=365)


def write_certificate(folder: Path, *, host: str, until: datetime.datetime) -> Path:
    """Write a self-signed certificate and its key to one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(until - YEAR)
        .not_valid_after(until)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / "server.pem"
    path.write_bytes(private + certificate.public_bytes(pem))
    return path


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Log nothing."""


class _QuietServer(HTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore handshakes, which fail on purpose."""


@pytest.fixture
def serving() -> Iterator[Callable[[Path | None], str]]:
    """Return a function that serves with a certificate, or without TLS, and returns an https address."""
    servers: list[HTTPServer] = []

    def serve(path: Path | None) -> str:
        server = _QuietServer(("127.0.0.1", 0), _Handler)
        if path is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(path)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        return f"https://localhost:{server.server_address[1]}/v1"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


CASES = {
    "self-signed": ("localhost", NOW + YEAR, False, "is not signed by an authority that this machine trusts"),
    "expired": ("localhost", NOW - YEAR, True, "has expired"),
    "another host": ("model.example.org", NOW + YEAR, True, "is for another host"),
    "too early": ("localhost", NOW + 2 * YEAR, True, "is not valid yet"),
}


@pytest.mark.parametrize("name", CASES)
async def test_the_fault_of_a_certificate_is_reported(
    name: str,
    serving: Callable[[Path | None], str],
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host, until, trusted, words = CASES[name]
    path = write_certificate(tmp_path, host=host, until=until)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
    address = serving(path)
    settings.DAYBOOK_UPSTREAMS = {"a": {"url": address, "key": "sk-upstream-1"}}
    clock = Clock()
    model = ResilientModel(OpenAIModel(), sleep=clock.sleep, clock=clock)
    request = ModelRequest(upstream="a", model="m", messages=({"role": "user", "content": "Hi"},))
    with pytest.raises(DomainError) as fault:
        await model.complete(request)
    await model.close()
    assert str(fault.value) == f"The certificate of the model server {words}."
    assert [entry["fault"] for entry in request.log.attempts] == ["certificate"], "it is not retried"
    assert "An administrator has to" in error_words(fault.value.as_json()).rest
    finding = upstream_finding("upstream", url=address, key="sk-upstream-1", dialect=DIALECTS["openai"])
    assert (finding.level, finding.text) == (Level.FAILED, f"{address}: its certificate {words}")


async def test_a_server_without_tls_is_reported(serving: Callable[[Path | None], str], settings: Settings) -> None:
    address = serving(None)
    settings.DAYBOOK_UPSTREAMS = {"a": {"url": address, "key": ""}}
    model = ResilientModel(OpenAIModel())
    with pytest.raises(DomainError) as fault:
        await model.complete(ModelRequest(upstream="a", model="m", messages=({"role": "user", "content": "Hi"},)))
    await model.close()
    assert str(fault.value) == "The model server does not speak TLS, but its address begins with https."
    finding = upstream_finding("upstream", url=address, key="", dialect=DIALECTS["openai"])
    assert (finding.level, finding.text) == (
        Level.FAILED,
        f"{address} does not speak TLS: write http:// instead of https://",
    )


async def test_after_a_certificate_error_the_next_model_is_tried(
    serving: Callable[[Path | None], str], settings: Settings, tmp_path: Path
) -> None:
    address = serving(write_certificate(tmp_path, host="localhost", until=NOW + YEAR))
    settings.DAYBOOK_UPSTREAMS = {"a": {"url": address, "key": ""}, "b": {"url": "http://127.0.0.1:1/v1", "key": ""}}
    clock = Clock()
    model = ResilientModel(OpenAIModel(), sleep=clock.sleep, clock=clock)
    fallbacks = (ModelTarget("b", "m"),)
    for _ in range(2):
        request = ModelRequest(
            upstream="a", model="m", messages=({"role": "user", "content": "x"},), fallbacks=fallbacks
        )
        with pytest.raises(DomainError):
            await model.complete(request)
    await model.close()
    assert request.log.attempts[0]["fault"] == "open", "it is skipped for a minute"
