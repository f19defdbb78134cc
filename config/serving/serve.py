"""The listening socket and the choice of the ASGI server. The socket is opened first, so that a port in use is reported
at once."""

import errno
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from django.conf import settings
from django.utils.module_loading import import_string

from config.environment import ConfigurationError, allowed_hosts
from config.serving import collector
from config.serving.cores import keep_on_one_core

# Dotted paths, since each server imports an event loop library, and a process needs only one.
SERVERS = {"daphne": "config.serving.serve_daphne.serve", "uvicorn": "config.serving.serve_uvicorn.serve"}
_BACKLOG = 2048
# How long a busy thread keeps the GIL while another one waits. A response takes several turns of the event loop, and
# each may wait that long for a search or an import in another thread; Python's default of 5 ms would be noticeable.
_SWITCH_SECONDS = 0.001
_MAX_FILES = 65_536
_LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound


def allow_host(host: str) -> None:
    """Allow requests for the host on the command line, as the settings do for DAYBOOK_HOST."""
    if host != settings.DAYBOOK_HOST:
        settings.ALLOWED_HOSTS = allowed_hosts(settings.ENV.allowed_hosts, host)


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens on host and port (0: any free one). Raises ConfigurationError with one line."""
    if not 0 <= port <= 65535:  # the system would take it modulo 65536
        raise ConfigurationError(f"--port is {port}; allowed is 0 to 65535.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no host has such a name"
        why = "write it without brackets" if host.startswith("[") else why
        raise ConfigurationError(f"DAYBOOK_HOST is {host!r}; it is not an address ({why}).") from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        other = f"DAYBOOK_HOST is {host!r}; it can't be listened on ({os.strerror(error.errno or 0)})."
        reasons = {
            errno.EADDRINUSE: f"DAYBOOK_PORT is {port}; another program already listens there (on {host}).",
            errno.EACCES: f"DAYBOOK_PORT is {port}; this user may not listen there ({host}).",
        }
        raise ConfigurationError(reasons.get(error.errno or 0, other)) from None
    listener.setblocking(False)
    return listener


def reachable(listener: socket.socket) -> tuple[str, int]:
    """Return the host and port at which a listener can be reached from this machine."""
    host, port = listener.getsockname()[:2]
    return _LOOPBACK_OF.get(host, host), port


def address(listener: socket.socket) -> str:
    """Return the server's URL, to show to people."""
    host, port = reachable(listener)
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def preload(name: str) -> None:
    """Import the named server so that forks share it, except daphne, whose reactor cannot be shared."""
    if name == "uvicorn":
        import_string(SERVERS[name])


def raise_open_files() -> None:
    """Raise this process's limit of open files as far as the system allows, up to _MAX_FILES. Each connection needs
    one, and a single client can open more than the usual limit of 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _MAX_FILES if hard == resource.RLIM_INFINITY else min(_MAX_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        with suppress(OSError, ValueError):  # macOS allows less than it reports
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _terminate(number: int, frame: FrameType | None) -> None:
    """Handle a closed terminal, which the servers do not, like SIGTERM."""
    signal.raise_signal(signal.SIGTERM)


def serve(name: str, listener: socket.socket) -> None:
    """Serve the ASGI application on the listener with the named server, until SIGINT, SIGTERM or SIGHUP."""
    run: Callable[[socket.socket], None] = import_string(SERVERS[name])
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # nohup ignores it
        signal.signal(signal.SIGHUP, _terminate)
    raise_open_files()
    collector.resume(collect=True)
    collector.seldom()
    sys.setswitchinterval(_SWITCH_SECONDS)
    keep_on_one_core()
    run(listener)
