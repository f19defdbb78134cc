"""config.serving.serve: the listening socket and the process's settings."""

import asyncio
import gc
import resource
import socket
import sys
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.core.management import call_command
from django.http.request import split_domain_port, validate_host
from uvicorn import Config

from config.environment import ConfigurationError
from config.serving import http_deadline, serve_uvicorn
from config.serving.asgi_handler import HttpApplication
from config.serving.serve import SERVERS, address, listening_socket, raise_open_files, reachable, serve

_seen_when_served: list[tuple[int, float, int]] = []


def record_settings(listener: socket.socket) -> None:
    """Stand in for a server and record the process's settings."""
    _seen_when_served.append((gc.get_freeze_count(), sys.getswitchinterval(), gc.get_threshold()[2]))


@pytest.fixture
def _restore_interpreter_settings() -> Iterator[None]:
    before, thresholds = sys.getswitchinterval(), gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(before)


def test_port_0_picks_a_free_port() -> None:
    with listening_socket("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert port > 0
        assert address(listener) == f"http://127.0.0.1:{port}/"
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass


def test_a_busy_port_is_refused_by_name() -> None:
    with listening_socket("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"^DAYBOOK_PORT is {port}; another program already listens there"):
            listening_socket("127.0.0.1", port)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "203.0.113.7", "two..dots"])
def test_a_host_that_cannot_be_bound_is_refused_by_name(host: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^DAYBOOK_HOST is '{host}'; "):
        listening_socket(host, 0)


@pytest.mark.parametrize("port", [-1, 99_999])
def test_a_port_that_is_none_is_refused_by_name(port: int) -> None:
    with pytest.raises(ConfigurationError, match=rf"^--port is {port}; allowed is 0 to 65535\.$"):
        listening_socket("127.0.0.1", port)


@pytest.mark.parametrize(("command", "host"), [("up", "192.0.2.9"), ("web", "fd00::9")])
def test_requests_for_the_command_lines_host_are_accepted(
    monkeypatch: pytest.MonkeyPatch, command: str, host: str
) -> None:
    def refuse(*_: object) -> None:
        raise ConfigurationError("far enough")

    monkeypatch.setattr(settings, "ALLOWED_HOSTS", ["testserver"])  # restored after the test
    monkeypatch.setattr(f"config.management.commands.{command}.listening_socket", refuse)
    monkeypatch.setattr("config.management.commands.web.warm_up", lambda: None)
    monkeypatch.setattr("config.management.commands.web.name_process", lambda _: None)
    with pytest.raises(ConfigurationError, match="far enough"):
        call_command(command, host=host, port=0)
    domain, _ = split_domain_port(f"[{host}]:8000" if ":" in host else f"{host}:8000")
    assert validate_host(domain, settings.ALLOWED_HOSTS)
    assert validate_host("localhost", settings.ALLOWED_HOSTS)
    assert not validate_host("evil.example", settings.ALLOWED_HOSTS)


@pytest.mark.parametrize("count", [0, 65])
def test_an_invalid_number_of_web_processes_is_refused(count: int) -> None:
    with pytest.raises(ConfigurationError, match=rf"^--web is {count}; allowed is 1 to 64\.$"):
        call_command("up", web=count)


def test_a_server_on_all_addresses_is_reached_through_loopback() -> None:
    with listening_socket("0.0.0.0", 0) as listener:
        assert reachable(listener) == ("127.0.0.1", listener.getsockname()[1])


def test_an_ipv6_address_is_bracketed() -> None:
    try:
        listener = listening_socket("::1", 0)
    except ConfigurationError:
        pytest.skip("this machine has no IPv6 loopback")
    with listener:
        assert address(listener) == f"http://[::1]:{listener.getsockname()[1]}/"


@pytest.fixture
def _restore_file_limit() -> Iterator[None]:
    before, waiting = resource.getrlimit(resource.RLIMIT_NOFILE), http_deadline.MAX_WAITING
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    http_deadline.MAX_WAITING = waiting


@pytest.mark.usefixtures("_restore_file_limit")
def test_the_limit_of_open_files_exceeds_that_of_waiting_connections() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    http_deadline.bound_waiting()
    assert http_deadline.MAX_WAITING == 512
    raise_open_files()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (min(65_536, hard), hard)


def test_both_servers_are_known() -> None:
    assert set(SERVERS) == {"daphne", "uvicorn"}


@pytest.mark.usefixtures("_restore_interpreter_settings")
def test_a_server_rarely_collects_garbage_and_switches_threads_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SERVERS, "uvicorn", f"{__name__}.record_settings")
    collected: list[bool] = []
    # Do not really collect: objects left open by earlier tests would raise warnings in this one.
    monkeypatch.setattr(gc, "collect", lambda: collected.append(True))
    loaded = len(gc.get_objects())
    with listening_socket("127.0.0.1", 0) as listener:
        serve("uvicorn", listener)
    frozen, interval, full_after = _seen_when_served[-1]
    assert collected
    assert frozen > loaded / 2
    assert interval == pytest.approx(0.001)
    assert full_after == 100


def test_idle_connections_are_kept_longer_than_clients_and_proxies_keep_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The receiving side must not be the one that closes an idle connection."""
    served: list[Config] = []
    monkeypatch.setattr(serve_uvicorn._Server, "run", lambda self, sockets: served.append(self.config))
    with socket.socket() as listener:
        serve_uvicorn.serve(listener)
    assert served[0].timeout_keep_alive > 60  # nginx keeps idle connections to its upstreams for 60 s


def test_an_ipv6_address_in_brackets_says_to_leave_them_out() -> None:
    with pytest.raises(ConfigurationError, match=r"^DAYBOOK_HOST is '\[::1\]'; it is not an address \(.*brackets\)\.$"):
        listening_socket("[::1]", 0)


async def test_requests_that_a_shutdown_cuts_off_may_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uvicorn cancels them and returns, and then the signal ends the process."""
    answered = []

    async def request() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            answered.append(503)

    async def no_runs() -> None:
        pass

    monkeypatch.setattr(serve_uvicorn, "shut_down", no_runs)
    config = Config(HttpApplication(), lifespan="off", log_config=None, timeout_graceful_shutdown=0)
    config.load()
    server = serve_uvicorn._Server(config)
    server.servers, server.lifespan = [], config.lifespan_class(config)
    server.server_state.tasks.add(asyncio.create_task(request()))
    await asyncio.sleep(0)
    await server.shutdown()
    assert answered == [503]
