r"""The program that replaces `manage.py up` once everything is prepared. It supervises the web servers and the worker
as child processes, reports when they are ready, and ends them together. If one child ends, the others are ended, too:
otherwise Daybook would seem to run but lose reviews. It imports only the standard library.

    python -m config.processes.supervisor \
        '{"children": [["worker", 123]], "host": "127.0.0.1", "port": 8000, "ready": ["…"]}'
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TextIO

from config.processes.forking import STOPS, SignalInbox, is_stop, name_process, without_reader

GRACE_SECONDS = 6.0  # the worker gives a running task 3 s, the web server its open streams 2 s
READY_SECONDS = 90.0
_PROBE_SECONDS = 1.0
_DISK_FULL = "the disk of "  # how reasons of config.health about a full disk begin
_PAUSE_SECONDS = 0.05
_ECHO_SECONDS = 0.5  # within which make or a service manager may forward the same signal again


@dataclass(frozen=True, slots=True)
class Readiness:
    """The answer of /readyz. `reasons` say why Daybook is not ready, or what is wrong although it is."""

    ready: bool
    reasons: tuple[str, ...] = ()


def readiness(host: str, port: int) -> Readiness:
    """Query /readyz once, for about a second at most. Does not raise if the server does not answer. A full disk counts
    as ready, since people can still read, and need the pages in order to delete something."""
    connection = http.client.HTTPConnection(host, port, timeout=_PROBE_SECONDS)
    try:
        connection.request("GET", "/readyz")
        response = connection.getresponse()
        body = response.read()
        if response.status == http.client.OK:
            return Readiness(ready=True)
        reasons = tuple(json.loads(body)["reasons"])
        return Readiness(ready=all(reason.startswith(_DISK_FULL) for reason in reasons), reasons=reasons)
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return Readiness(ready=False, reasons=("the web server does not answer",))
    finally:
        connection.close()


def ending(returncode: int) -> str:
    """Return a description of how a process ended."""
    return f"killed by {signal.Signals(-returncode).name}" if returncode < 0 else f"exit code {returncode}"


class _Child:
    """A child of this process, by process id. It was started by the program that this process executed before."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self, options: int = os.WNOHANG) -> int | None:
        """Return the exit code, or None if the child is running. With `options` 0, wait until it ends."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, options)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def terminate(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)


def start(command: Sequence[str], *, env: Mapping[str, str], pass_fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start a child in its own session, so that Ctrl-C reaches only this process."""
    return subprocess.Popen(  # noqa: S603 - the command is ours
        command, env=env, pass_fds=pass_fds, start_new_session=True, stdin=subprocess.DEVNULL
    )


class Supervisor:
    """Child processes by name; a context manager that ends all of them. `report` is called with a line for the operator
    when something goes wrong; `grace` is in seconds."""

    def __init__(self, *, report: Callable[[str], None], grace: float = GRACE_SECONDS) -> None:
        self._report = report
        self._grace = grace
        self._children: dict[str, _Child] = {}
        self._inbox = SignalInbox(*STOPS, signal.SIGCHLD)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def adopt(self, name: str, pid: int) -> None:
        """Supervise a running child of this process."""
        self._children[name] = _Child(pid)

    def watch(
        self, *, probe: Callable[[], Readiness], on_ready: Callable[[], None], within: float = READY_SECONDS
    ) -> int:
        """Wait until a stop signal (returns 0) or a failure (returns 1). Calls `on_ready` once."""
        deadline = time.monotonic() + within
        ready = False
        while True:
            # SIGCHLD interrupts the wait; the timeout is for a signal that was merged with another.
            if is_stop(self._inbox.wait(5.0 if ready else _PAUSE_SECONDS)):
                return 0
            if dead := self._ended():
                name, returncode = dead
                self._report(f"The {name} ended unexpectedly ({ending(returncode)}); stopping everything.")
                return 1
            if ready:
                continue
            state = probe()
            if state.ready:
                ready = True
                if state.reasons:
                    self._report(f"Started, but {'; '.join(state.reasons)}.")
                on_ready()
            elif time.monotonic() > deadline:
                self._report(f"Not ready after {within:.0f} s ({'; '.join(state.reasons)}); stopping everything.")
                return 1

    def _ended(self) -> tuple[str, int] | None:
        codes = ((name, child.poll()) for name, child in self._children.items())
        return next(((name, code) for name, code in codes if code is not None), None)

    def stop(self) -> None:
        """Terminate the children; kill their process groups after the grace period or a second Ctrl-C."""
        for child in self._children.values():
            child.terminate()
        begun = time.monotonic()
        while any(child.poll() is None for child in self._children.values()):
            passed = time.monotonic() - begun
            impatient = signal.SIGINT in self._inbox.wait(0.5) and passed > _ECHO_SECONDS
            if impatient or passed > self._grace:
                break
        for child in self._children.values():
            _kill_group(child.pid)  # includes processes that an ended child has left behind
            child.poll(0)
        self._children.clear()
        self._inbox.close()


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return  # the group is empty
    except PermissionError:
        if sys.platform != "darwin":  # macOS raises this for a group of ended processes
            raise


def main() -> int:
    """Return the exit code: 0 after a stop signal."""
    options = json.loads(sys.argv[1])
    name_process("daybook")
    with Supervisor(report=lambda line: _say(sys.stderr, f"daybook: {line}")) as supervisor:
        for name, pid in options["children"]:
            supervisor.adopt(name, pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)  # `up` blocked them, so that none is lost during exec
        return supervisor.watch(
            probe=lambda: readiness(options["host"], options["port"]),
            on_ready=lambda: _say(sys.stdout, *options["ready"]),
        )


def _say(stream: TextIO, *lines: str) -> None:
    stream.writelines(f"{line}\n" for line in lines)
    stream.flush()  # do not buffer the lines if the stream is a pipe


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        sys.exit(without_reader())
