"""config.serve: the listening socket."""

import socket

import pytest

from config.environment import ConfigurationError
from config.serve import SERVERS, address, listening_socket, reachable


def test_port_0_takes_a_free_one() -> None:
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


@pytest.mark.parametrize("host", ["no-such-host.invalid", "203.0.113.7"])
def test_a_host_that_is_not_ours_is_refused_by_name(host: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^DAYBOOK_HOST is '{host}'; "):
        listening_socket(host, 0)


def test_all_addresses_are_reached_through_loopback() -> None:
    with listening_socket("0.0.0.0", 0) as listener:
        assert reachable(listener) == ("127.0.0.1", listener.getsockname()[1])


def test_an_ipv6_address_is_bracketed() -> None:
    try:
        listener = listening_socket("::1", 0)
    except ConfigurationError:
        pytest.skip("this machine has no IPv6 loopback")
    with listener:
        assert address(listener) == f"http://[::1]:{listener.getsockname()[1]}/"


def test_both_servers_are_known() -> None:
    assert set(SERVERS) == {"daphne", "uvicorn"}
