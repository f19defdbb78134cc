"""config.processes.supervisor: its children end together. They are tiny programs here; tests/e2e/test_up.py has real
ones."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from config import health
from config.processes import supervisor as supervisor_module
from config.processes.supervisor import Readiness, Supervisor, ending, readiness, start
from tests.waiting import eventually

SLEEP = "import time; time.sleep(600)"
READY = Readiness(ready=True)


@pytest.fixture
def messages() -> list[str]:
    return []


@pytest.fixture
def supervisor(messages: list[str]) -> Iterator[Supervisor]:
    with Supervisor(report=messages.append, grace=0.3) as supervisor:
        yield supervisor


def _start(supervisor: Supervisor, name: str, code: str) -> int:
    child = start([sys.executable, "-c", code], env=dict(os.environ))
    child.returncode = 0  # the supervisor reaps it
    supervisor.adopt(name, child.pid)
    return child.pid


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _press_ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def test_the_supervisor_reports_ready_once_and_ends_with_ctrl_c(supervisor: Supervisor, messages: list[str]) -> None:
    child = _start(supervisor, "web server", SLEEP)
    answers = iter([Readiness(ready=False, reasons=("no worker",)), READY])
    called: list[str] = []

    def on_ready() -> None:
        called.append("ready")
        _press_ctrl_c()

    assert supervisor.watch(probe=lambda: next(answers), on_ready=on_ready) == 0
    supervisor.stop()
    assert (called, messages, _is_alive(child)) == (["ready"], [], False)


def test_a_child_that_ends_by_itself_is_a_failure_even_with_exit_code_0(
    supervisor: Supervisor, messages: list[str]
) -> None:
    other = _start(supervisor, "web server", SLEEP)
    _start(supervisor, "worker", "")
    assert supervisor.watch(probe=lambda: READY, on_ready=lambda: None) == 1
    assert messages == ["The worker ended unexpectedly (exit code 0); stopping everything."]
    supervisor.stop()
    assert not _is_alive(other)


def test_the_supervisor_gives_up_if_nothing_gets_ready(supervisor: Supervisor, messages: list[str]) -> None:
    _start(supervisor, "web server", SLEEP)
    unready = Readiness(ready=False, reasons=("no worker", "no luck"))
    assert supervisor.watch(probe=lambda: unready, on_ready=pytest.fail, within=0) == 1
    assert messages == ["Not ready after 0 s (no worker; no luck); stopping everything."]


def test_a_stubborn_child_and_its_children_are_killed_after_the_grace_period(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    mark = tmp_path / "grandchild"
    stubborn = (
        "import os, pathlib, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "if os.fork() == 0:\n"
        f"    pathlib.Path({str(mark)!r}).write_text(str(os.getpid()))\n"
        "time.sleep(600)\n"
    )
    child = _start(supervisor, "worker", stubborn)
    eventually(lambda: mark.exists() and mark.read_text(), within=10)
    supervisor.stop()
    assert not _is_alive(child)
    eventually(lambda: not _is_alive(int(mark.read_text())), within=10)


def test_processes_left_behind_by_a_dead_child_are_killed(supervisor: Supervisor, tmp_path: Path) -> None:
    mark = tmp_path / "grandchild"
    leaver = (
        "import os, pathlib, time\n"
        "if os.fork() == 0:\n"
        f"    pathlib.Path({str(mark)!r}).write_text(str(os.getpid()))\n"
        "    time.sleep(600)\n"
        f"while not pathlib.Path({str(mark)!r}).exists(): time.sleep(0.01)\n"
    )
    _start(supervisor, "worker", leaver)
    assert supervisor.watch(probe=lambda: Readiness(ready=False), on_ready=pytest.fail) == 1
    supervisor.stop()
    eventually(lambda: not _is_alive(int(mark.read_text())), within=10)


@pytest.mark.parametrize(
    ("code", "ending_text"), [("raise SystemExit(3)", "exit code 3"), (SLEEP, "killed by SIGKILL")]
)
def test_an_adopted_child_is_supervised_like_its_own(
    supervisor: Supervisor, messages: list[str], code: str, ending_text: str
) -> None:
    other = os.posix_spawn(sys.executable, [sys.executable, "-c", SLEEP], os.environ, setsid=True)
    child = os.posix_spawn(sys.executable, [sys.executable, "-c", code], os.environ, setsid=True)
    supervisor.adopt("web server", other)
    supervisor.adopt("worker", child)
    if code == SLEEP:
        os.kill(child, signal.SIGKILL)
    assert supervisor.watch(probe=lambda: Readiness(ready=False), on_ready=pytest.fail) == 1
    assert messages == [f"The worker ended unexpectedly ({ending_text}); stopping everything."]
    supervisor.stop()
    assert not _is_alive(other)


def test_a_second_ctrl_c_does_not_wait_for_the_grace_period(messages: list[str]) -> None:
    deaf = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    impatient = f"while True: time.sleep(0.2); os.kill({os.getpid()}, signal.SIGINT)"
    with Supervisor(report=messages.append, grace=60) as supervisor:
        children = [_start(supervisor, "worker", f"{deaf}time.sleep(600)")]
        children.append(_start(supervisor, "impatient", deaf + impatient))
        eventually(lambda: all(map(_ignores_sigterm, children)), within=10)
        began = time.monotonic()
        supervisor.stop()
        assert time.monotonic() - began < 60
        assert not any(map(_is_alive, children))


def _ignores_sigterm(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(ignored.split()[1], 16) & 1 << signal.SIGTERM - 1)


def test_the_supervisor_restores_the_signal_handlers(messages: list[str]) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with Supervisor(report=messages.append):
        assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) != before
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_server_that_does_not_answer_is_not_ready() -> None:
    assert readiness("127.0.0.1", 1) == Readiness(ready=False, reasons=("the web server does not answer",))


@pytest.mark.parametrize(
    ("reasons", "ready"),
    [
        (["the disk of DAYBOOK_HOME has 16 MB left"], True),
        (["no heartbeat of a worker for 15 s"], False),
        (["the disk of DAYBOOK_HOME has 16 MB left", "no heartbeat of a worker for 15 s"], False),
    ],
)
def test_a_nearly_full_disk_does_not_prevent_the_start(reasons: list[str], ready: bool) -> None:
    with _unready_server(reasons) as port:
        assert readiness("127.0.0.1", port) == Readiness(ready=ready, reasons=tuple(reasons))


@contextmanager
def _unready_server(reasons: list[str]) -> Iterator[int]:
    """Run a server whose /readyz has these reasons, and yield its port."""
    body = json.dumps({"status": "unready", "model": "demo", "reasons": reasons}).encode()

    class Unready(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(503)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Unready) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


def test_a_reader_of_the_output_that_has_gone_ends_everything_quietly() -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with _unready_server(["the disk of DAYBOOK_HOME has 16 MB left"]) as port, os.fdopen(writes) as out:
        options = {"children": [], "host": "127.0.0.1", "port": port, "ready": ["Daybook is ready."]}
        program = [sys.executable, "-m", "config.processes.supervisor", json.dumps(options)]
        ended = subprocess.run(program, stdout=out, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (
        141,
        "daybook: Started, but the disk of DAYBOOK_HOME has 16 MB left.\n",
    )


def test_a_nearly_full_disk_is_recognised_by_the_text_of_readyz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "MIN_FREE_BYTES", 1 << 62)
    [reason] = health.unready_reasons()
    assert reason.startswith(supervisor_module._DISK_FULL)


def test_a_start_despite_a_problem_reports_the_problem(supervisor: Supervisor, messages: list[str]) -> None:
    _start(supervisor, "worker", SLEEP)
    nearly_full = Readiness(ready=True, reasons=("the disk of DAYBOOK_HOME has 16 MB left",))

    def stop() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    assert supervisor.watch(probe=lambda: nearly_full, on_ready=stop) == 0
    assert messages == ["Started, but the disk of DAYBOOK_HOME has 16 MB left."]


@pytest.mark.parametrize(("code", "text"), [(0, "exit code 0"), (3, "exit code 3"), (-9, "killed by SIGKILL")])
def test_an_exit_code_is_described_in_words(code: int, text: str) -> None:
    assert ending(code) == text
