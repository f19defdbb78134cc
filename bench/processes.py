"""Start and stop the processes of a benchmark: the scripted upstream and the servers under test.

Each server gets its own process group and a log file; closing the given `ExitStack` stops everything. Needs only the
standard library.
"""

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

REPO = Path(__file__).resolve().parent.parent
BENCH = REPO / "bench"
# Settings of the caller's environment must not leak into the measured servers.
SETTING_PREFIXES = ("DAYBOOK_", "OPENAI_", "LITELLM_", "DATABASE_URL", "REDIS_URL", "DJANGO_")


class BenchError(Exception):
    """The benchmark cannot continue; the message is one line for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A started server: `url` has no trailing slash, `log` is the file with its output."""

    name: str
    url: str
    process: "subprocess.Popen[str]"
    log: Path | None = None

    def last_words(self) -> str:
        """Return the end of the log, in one line of at most 300 characters."""
        lines = self.log.read_text(errors="replace").split("\n") if self.log else []
        stripped = [line.strip() for line in lines if line.strip()]
        return " | ".join(stripped[-3:])[-300:] or "no output"


def product_python() -> str:
    """Return an interpreter with the product's dependencies: this one, else that of `.venv`."""
    own = REPO / ".venv" / "bin" / "python"
    if importlib.util.find_spec("uvloop") is None and own.exists():
        return str(own)
    return sys.executable


def clean_environment(**settings: str) -> dict[str, str]:
    """Return this environment without settings for the servers under test, plus the given ones."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(SETTING_PREFIXES)}
    return kept | settings


def free_port() -> int:
    """Return a loopback port that is currently free."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def busy_cores(seconds: float) -> float | None:
    """Return how many cores were busy on average over so many seconds, or None without /proc/stat.

    Sampled while the benchmark's servers are idle, it shows how much of the machine others use.
    """
    stat = Path("/proc/stat")
    if not stat.exists():
        return None

    def busy_ticks() -> int:
        ticks = [int(value) for value in stat.read_text().partition("\n")[0].split()[1:9]]
        return sum(ticks) - ticks[3] - ticks[4]  # all except idle and iowait

    before, started = busy_ticks(), monotonic()
    threading.Event().wait(seconds)
    return round((busy_ticks() - before) / os.sysconf("SC_CLK_TCK") / (monotonic() - started), 2)


def stop_on_signals() -> None:
    """Make SIGTERM end the benchmark as Ctrl-C does, so that its servers are stopped too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def process_stop(process: "subprocess.Popen[str]", *, grace_seconds: float = 15.0) -> None:
    """Send SIGTERM, wait for a grace period, then send SIGKILL to the whole process group."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):  # the group is killed below
            process.wait(grace_seconds)
    with suppress(ProcessLookupError):  # the group has already ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def server_start(
    stack: ExitStack,
    name: str,
    command: list[str],
    *,
    port: int,
    log: Path,
    env: dict[str, str],
    cwd: Path = REPO,
) -> Server:
    """Start a server in its own process group; the stack stops it."""
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    stack.callback(process_stop, process)
    return Server(name=name, url=f"http://127.0.0.1:{port}", process=process, log=log)


def server_wait(server: Server, path: str, *, seconds: float) -> None:
    """Wait until `path` answers 200. Raises BenchError if the server ends or the time is over."""
    deadline, seen = monotonic() + seconds, "nothing listened"
    while monotonic() < deadline:
        try:
            with urllib.request.urlopen(server.url + path, timeout=5):
                return
        except urllib.error.HTTPError as exc:
            seen = f"{path} answered {exc.code}: {exc.read(300).decode(errors='replace')}"
        except OSError as exc:
            seen = f"{path}: {exc}"
        try:
            code = server.process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        raise BenchError(f"{server.name} cannot start (exit code {code}): {server.last_words()}")
    raise BenchError(f"{server.name} is not ready after {seconds:.0f} s ({seen}); {server.last_words()}")


def server_json(server: Server, path: str) -> dict[str, Any]:
    """Send a GET without a key; return the JSON object."""
    with urllib.request.urlopen(server.url + path, timeout=10) as answer:
        return dict(json.load(answer))


def upstream_start(stack: ExitStack, *flags: str) -> Server:
    """Start the scripted upstream with the given flags on a free port; the stack stops it."""
    process = subprocess.Popen(
        [product_python(), str(BENCH / "scripted_upstream.py"), "--port", "0", *flags],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    stack.callback(process_stop, process)
    assert process.stdout is not None
    port = process.stdout.readline().strip()
    if not port.isdigit():
        raise BenchError(f"the scripted upstream cannot start (its first line: {port!r})")
    return Server(name="upstream", url=f"http://127.0.0.1:{port}", process=process)
