"""config.processes.forking: forks end with their parent. That cannot be undone, so each case is a separate process."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from config.processes.forking import SignalInbox, is_stop
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def _python(code: str) -> Iterator["subprocess.Popen[str]"]:
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_forks_and_their_forks_end_when_the_first_is_killed() -> None:
    code = (
        "import os, time\n"
        "from config.processes.forking import forks_die_with_parent\n"
        "forks_die_with_parent()\n"
        "os.fork() or os.fork()\n"  # the child forks again
        "os.write(1, b'%d\\n' % os.getpid())\n"  # a single write, so that lines do not mix
        "time.sleep(600)\n"
    )
    with _python(code) as parent:
        assert parent.stdout is not None
        pids = {int(parent.stdout.readline()) for _ in range(3)} - {parent.pid}
        assert len(pids) == 2
        parent.kill()
        for pid in pids:
            eventually(lambda pid=pid: _has_ended(pid), within=10)


def test_a_child_with_another_parent_exits_immediately() -> None:
    code = "from config.processes.forking import die_with_parent; die_with_parent(1); print('still here')"
    with _python(code) as child:
        out, _ = child.communicate(timeout=20)
    assert (child.returncode, out) == (1, "")


def test_signals_arrive_in_the_inbox_and_not_in_forks() -> None:
    inbox = SignalInbox(signal.SIGTERM, signal.SIGUSR1)
    try:
        assert inbox.wait(0) == set()
        signal.raise_signal(signal.SIGUSR1)
        assert inbox.wait(1) == {signal.SIGUSR1}
        child = os.fork()
        if child == 0:
            signal.raise_signal(signal.SIGTERM)  # kills it, since the default action is restored
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
        assert inbox.wait(0) == set()
    finally:
        inbox.close()


@pytest.mark.parametrize(
    ("numbers", "stop"),
    [
        ({signal.SIGINT}, True),
        ({signal.SIGTERM}, True),
        ({signal.SIGHUP}, True),
        ({signal.SIGCHLD}, False),
        (set(), False),
    ],
)
def test_which_signals_are_stop_signals(numbers: set[int], stop: bool) -> None:
    assert is_stop(numbers) is stop
