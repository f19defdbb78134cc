"""Model servers that redirect, over real HTTP: no request, and so no conversation, follows to another address."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pytest_django.fixtures import Settings

from config.findings import Level
from config.model_checks import upstream_finding
from gateway.chat.labels import error_words
from gateway.errors import UpstreamRefused
from gateway.upstream import ModelRequest, OpenAIModel, ResilientModel
from gateway.upstream.dialects import DIALECTS
from gateway.upstream.faults import REDIRECTS
from tests.upstreams.failing_servers import Clock


class Redirecting(ThreadingHTTPServer):
    """Redirects each request to `/elsewhere` of the same server, under another host name, and records the paths."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.paths: list[str] = []
        self.status = 307


class _Handler(BaseHTTPRequestHandler):
    server: Redirecting

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.server.paths.append(self.path)
        self.send_response(self.server.status)
        self.send_header("Location", f"http://localhost:{self.server.server_port}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def server(settings: Settings) -> Iterator[Redirecting]:
    server = Redirecting()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    settings.DAYBOOK_UPSTREAMS = {"a": {"url": f"http://127.0.0.1:{server.server_port}/v1", "key": "sk-upstream-1"}}
    yield server
    server.shutdown()
    server.server_close()


async def _stream(model: ResilientModel, request: ModelRequest) -> None:
    async for _ in model.stream(request):
        pass


ASKED = {
    "streamed": (_stream, "/v1/chat/completions"),
    "whole": (ResilientModel.complete, "/v1/chat/completions"),
    "embeddings": (ResilientModel.embeddings, "/v1/embeddings"),
}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("name", ASKED)
async def test_a_redirect_is_not_followed_but_reported(name: str, status: int, server: Redirecting) -> None:
    server.status = status
    clock = Clock()
    model = ResilientModel(OpenAIModel(), sleep=clock.sleep, clock=clock)
    ask, path = ASKED[name]
    messages = ({"role": "user", "content": "Hi"},)
    request = ModelRequest(upstream="a", model="m", messages=messages, path=path.removeprefix("/v1"))
    with pytest.raises(UpstreamRefused) as fault:
        await ask(model, request)
    await model.close()
    assert server.paths == [path], "it is sent once, and nowhere else"
    assert str(fault.value) == f"The model server {REDIRECTS}. Its address in the settings must be changed."
    assert (fault.value.code, fault.value.http_status) == ("upstream_error", 502)
    assert "An administrator has to" in error_words(fault.value.as_json()).rest


def test_the_doctor_reports_a_redirect(server: Redirecting) -> None:
    url = f"http://127.0.0.1:{server.server_port}/v1"
    finding = upstream_finding("upstream", url=url, key="sk-upstream-1", dialect=DIALECTS["openai"])
    assert (finding.level, finding.text) == (Level.FAILED, f"{url} redirects (307): change the address")
    assert server.paths == ["/v1/models"]
