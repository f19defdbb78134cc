"""tests/warm_process.py: a program started as a fork behaves like one with its own interpreter."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests import warm_process

pytestmark = pytest.mark.any_database

REPORT = """
import json, os, sys, threading
umask = os.umask(0)
print(json.dumps({
    "name": __name__, "arguments": sys.argv[1:], "path": sys.path[0], "folder": os.getcwd(), "umask": umask,
    "environment": sorted(os.environ), "mine": os.environ["MINE"], "threads": threading.active_count(),
    "shown": sorted(part.split(b"=")[0].decode() for part in open("/proc/self/environ", "rb").read().split(b"\\0")
                    if part),
    "files": sorted(map(int, os.listdir("/proc/self/fd"))), "leads": os.getsid(0) == os.getpid(),
    "settings": "config.settings" in sys.modules, "interrupt": str(__import__("signal").getsignal(2)),
}))
print("a complaint", file=sys.stderr)
"""


@pytest.fixture
def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("DAYBOOK_")} | {"MINE": "tea"}


@pytest.mark.parametrize("own_interpreter", [False, True], ids=["a fork", "an interpreter"])
def test_a_program_sees_exactly_what_it_is_given(
    tmp_path: Path, environment: dict[str, str], own_interpreter: bool
) -> None:
    program = tmp_path / "says.py"
    program.write_text(REPORT)
    done = warm_process.run(
        [str(program), "a", "b"], env=environment, timeout=60, umask=0o027, own_interpreter=own_interpreter
    )
    assert (done.returncode, done.stderr) == (0, "a complaint\n")
    report = json.loads(done.stdout)
    names = sorted(environment)
    assert set(report.pop("environment")) - {"LC_CTYPE"} == set(names)  # an interpreter may add its own
    assert set(report.pop("shown")) == set(names)
    assert len(report.pop("files")) == 4  # the standard files, and the directory being listed
    assert report == {
        "name": "__main__",
        "arguments": ["a", "b"],
        "path": str(tmp_path),
        "folder": str(warm_process.ROOT),
        "umask": 0o027,
        "mine": "tea",
        "threads": 1,
        "leads": False,
        "settings": False,
        "interrupt": str(signal.getsignal(signal.SIGINT)),  # ignored if a shell runs the tests in the background
    }


@pytest.mark.parametrize("own_interpreter", [False, True], ids=["a fork", "an interpreter"])
@pytest.mark.parametrize(
    ("code", "ended"),
    [
        ("", (0, "")),
        ("import sys; sys.exit(3)", (3, "")),
        ("import sys; sys.exit('a reason')", (1, "a reason\n")),
        ("import atexit, os; atexit.register(os.write, 2, b'at last')", (0, "at last")),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", (-9, "")),
    ],
    ids=["itself", "a code", "a message", "with an exit handler", "a signal"],
)
def test_a_program_exits_as_usual(
    tmp_path: Path, environment: dict[str, str], own_interpreter: bool, code: str, ended: tuple[int, str]
) -> None:
    program = tmp_path / "ends.py"
    program.write_text(code)
    done = warm_process.run([str(program)], env=environment, timeout=60, own_interpreter=own_interpreter)
    assert (done.returncode, done.stderr) == ended


def test_an_exception_is_printed_and_is_exit_code_1(tmp_path: Path, environment: dict[str, str]) -> None:
    program = tmp_path / "fails.py"
    program.write_text("raise ValueError('Some tea.')")
    done = warm_process.run([str(program)], env=environment, timeout=60)
    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: Some tea.\n")


def test_a_program_can_use_pipes_and_be_stopped_by_signals(tmp_path: Path, environment: dict[str, str]) -> None:
    program = tmp_path / "echoes.py"
    program.write_text("for line in __import__('sys').stdin: print(line.upper(), end='', flush=True)")
    process = warm_process.start(
        [str(program)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("tea\n")
    process.stdin.flush()
    assert process.stdout.readline() == "TEA\n"
    assert process.poll() is None
    assert os.getsid(process.pid) == process.pid
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == -signal.SIGTERM
    process.stdin.close()
    process.stdout.close()


def test_a_variable_read_at_interpreter_start_requires_an_own_interpreter(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    program = tmp_path / "finds.py"
    program.write_text("import tea_of_this_test")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "tea_of_this_test.py").touch()
    env = environment | {"PYTHONPATH": str(tmp_path / "elsewhere")}
    started = warm_process.start([str(program)], env=env)
    assert isinstance(started, subprocess.Popen)
    assert started.wait(60) == 0
