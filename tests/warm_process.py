"""Start Python programs for end-to-end tests as forks of a warm process that has already imported their packages.

A start takes a quarter to half of the usual time. docs/decisions/0061 lists how a fork differs from a program with its
own interpreter.

`python -m tests.warm_process FD` is the warm process. Each test process has one, started at first use. Each message on
the socket FD is a JSON request with four file descriptors: a socket on which the warm process sends the process id and
later the exit code, and the program's standard input, output and error."""

import array
import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, NoReturn

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "aiohttp",
    "authlib.integrations.base_client",
    "authlib.oauth2",
    "channels.layers",
    "cryptography.x509",
    "django.contrib.admin",
    "django.contrib.auth.hashers",
    "django.contrib.postgres.fields",
    "django.core.management.commands.shell",
    "django.db.backends.sqlite3.base",
    "django.db.migrations.executor",
    "django.forms",
    "django.views.debug",
    "django.views.generic",
    "joserfc.jwt",
    "jwcrypto.jwk",
    "latex2mathml.converter",
    "limits.aio.strategies",
    "markdown_it",
    "numpy",
    "oauth2_provider.validators",
    "oauthlib.oauth2",
    "openai.types.responses",
    "opentelemetry.trace",
    "psycopg",
    "pydantic.networks",
    "pydantic_settings",
    "pygments.lexers",
    "redis.asyncio",
    "requests",
    "scanning",
    "search",
    "servestatic",
    "uvicorn",
    "wordllama",
    "yaml",
)
"""Third-party modules and our libraries that take long to import and depend on neither settings nor the environment.
Django's settings are not configured yet, so a module that reads them cannot be imported here."""

# Variables that are read when an interpreter starts or a C library is loaded.
_START_VARIABLES = ("PYTHON", "LANG", "LC_", "LD_", "TZ", "OPENBLAS_", "OMP_")
_INHERITED = (*_START_VARIABLES, "PATH", "HOME", "KF_RULE_CACHE_DIR")
_ENVIRONMENT_BYTES = 24_000
"""Space reserved for a program's environment, so that /proc can show it."""
_MAX_REQUEST_BYTES = 200_000


class Started:
    """A running fork, with the part of the interface of `subprocess.Popen` that tests use."""

    def __init__(self, status: socket.socket) -> None:
        self._status = status
        self.pid = self._read_number()
        self.returncode: int | None = None
        self.stdin: IO[str] | None = None
        self.stdout: IO[str] | None = None

    def poll(self) -> int | None:
        """Return the exit code if the program has ended, or minus the number of the signal that killed it."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the program and return its exit code."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            self.returncode = self._read_number()
            self._status.close()
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal unless the program has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _read_number(self) -> int:
        line = b""
        while not line.endswith(b"\n"):
            if not (byte := self._status.recv(1)):
                raise AssertionError("The warm process has ended; standard error says why (tests/warm_process.py).")
            line += byte
        return int(line)


Program = Started | subprocess.Popen[str]


class _WarmProcess:
    """The warm process of this test process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket

    def request_fork(self, request: Mapping[str, Any], files: Sequence[int]) -> Started:
        """Request a fork with these file descriptors."""
        with self._lock:
            if self._process is None:
                self._start()
            status, theirs = socket.socketpair()
            with theirs:
                passed = array.array("i", [theirs.fileno(), *files])
                ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)]
                self._socket.sendmsg([json.dumps(request).encode()], ancillary)
        return Started(status)

    def _start(self) -> None:
        self._socket, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        env = {name: value for name, value in os.environ.items() if name.startswith(_INHERITED)}
        env |= {
            "OPENBLAS_NUM_THREADS": "1",
            "ROOM": "-" * _ENVIRONMENT_BYTES,
        }  # a process with threads cannot fork safely
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.warm_process", str(theirs.fileno())],
                cwd=ROOT,
                env=env,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        atexit.register(self._end)

    def _end(self) -> None:
        self._socket.close()  # this ends the warm process
        if self._process is not None:
            self._process.wait(10)


_warm_process = _WarmProcess()


def start(
    program: Sequence[str],
    *,
    env: Mapping[str, str],
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    stderr: int = subprocess.DEVNULL,
    new_session: bool = False,
    umask: int = -1,
    own_interpreter: bool = False,
) -> Program:
    """Start `python PROGRAM…` (a file with arguments, or -m and a module) in the repository's root with this
    environment.

    `stdin`, `stdout` and `stderr` are as in `subprocess.Popen`; pipes are in text mode. The program runs in its own
    interpreter if `own_interpreter` is set, or if `env` changes a variable that an interpreter reads when it starts."""
    if own_interpreter or _start_variables(env) != _start_variables(os.environ):
        return subprocess.Popen(
            [sys.executable, *program],
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=ROOT,
            text=True,
            start_new_session=new_session,
            umask=umask,
        )
    request = {"program": list(program), "env": dict(env), "new_session": new_session, "umask": umask}
    with ExitStack() as theirs:
        ours: list[int] = []
        files = [_file(number, file, ours, theirs) for number, file in enumerate((stdin, stdout, stderr))]
        started = _warm_process.request_fork(request, files)
    if stdin == subprocess.PIPE:
        started.stdin = os.fdopen(ours.pop(0), "w")
    if stdout == subprocess.PIPE:
        started.stdout = os.fdopen(ours.pop(0), "r")
    return started


def _file(number: int, file: int, ours: list[int], theirs: ExitStack) -> int:
    """Return the descriptor for the program. If it is a pipe, add our end to `ours`."""
    if file == subprocess.DEVNULL:
        return theirs.enter_context(Path(os.devnull).open("r+b")).fileno()
    if file != subprocess.PIPE:
        return file
    reads, writes = os.pipe()
    ours.append(writes if number == 0 else reads)
    passed = reads if number == 0 else writes
    theirs.callback(os.close, passed)
    return passed


def run(
    program: Sequence[str], *, env: Mapping[str, str], timeout: float, umask: int = -1, own_interpreter: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, like `subprocess.run` with `capture_output` and `text`."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = start(
            program, env=env, stdout=out.fileno(), stderr=err.fileno(), umask=umask, own_interpreter=own_interpreter
        )
        try:
            code = process.wait(timeout)
        except BaseException:
            process.kill()
            process.wait(10)
            raise
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(list(program), code, out.read(), err.read())


def _start_variables(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_START_VARIABLES)}


def main() -> None:
    """Run the warm process. In each fork, continue as the requested program."""
    gc.disable()
    for name in PACKAGES:
        importlib.import_module(name)
    _warm_up_libraries()
    gc.collect()
    gc.freeze()
    gc.enable()
    if sys.modules["django.conf"].settings.configured:
        sys.exit("tests.warm_process: a module in PACKAGES configures settings")
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        sys.exit("tests.warm_process: a module in PACKAGES starts a thread, which forks would lack")
    request = _serve(socket.socket(fileno=int(sys.argv[1])))
    if request is not None:
        _become(request)


def _warm_up_libraries() -> None:
    """Load what `config.serving.warm.warm_up` loads from our libraries: rules, stemmers, embeddings."""
    sys.modules["scanning"].warm()
    entry = sys.modules["search.entries"].Entry(number=1, content="Prefers tea in the morning.")
    sys.modules["search.index"].BookIndex.build([entry]).search("What do they drink?", limit=1)


def _serve(requests: socket.socket) -> dict[str, Any] | None:
    """Fork for each request. Return the request in the fork, and None in the warm process when its socket is closed."""
    wakes, woken = socket.socketpair()
    wakes.setblocking(False)
    woken.setblocking(False)
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the tests
    running: dict[int, socket.socket] = {}
    while True:
        readable, _, _ = select.select([requests, wakes], [], [])
        if wakes in readable:
            wakes.recv(4096)
            _reap(running)
        if requests not in readable:
            continue
        message, ancillary, _, _ = requests.recvmsg(_MAX_REQUEST_BYTES, socket.CMSG_SPACE(4 * 4))
        if not message:
            return None
        files = array.array("i", b"".join(data for _, _, data in ancillary))
        status = socket.socket(fileno=files[0])
        if (pid := os.fork()) == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, interrupt)
            for number, file in enumerate(files[1:]):
                os.dup2(file, number)
                os.close(file)
            for ours in (requests, wakes, woken, status, *running.values()):
                ours.close()
            return dict(json.loads(message))
        for file in files[1:]:
            os.close(file)
        running[pid] = status
        status.sendall(b"%d\n" % pid)


def _reap(running: dict[int, socket.socket]) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with running.pop(ended[0]) as status, suppress(BrokenPipeError):
                status.sendall(b"%d\n" % os.waitstatus_to_exitcode(ended[1]))


def _become(request: Mapping[str, Any]) -> NoReturn:
    """Run the program in this fork as `python` would."""
    if request["new_session"]:
        os.setsid()
    if request["umask"] >= 0:
        os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["env"])
    _show_environment()
    first, *sys.argv = request["program"]
    try:
        if first == "-m":
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv.insert(0, first)
            sys.path[0] = str(Path(first).resolve().parent)
            runpy.run_path(first, run_name="__main__")
    except SystemExit as ended:
        _end(ended.code)
    _end(None)


def _end(code: object) -> NoReturn:
    """Exit as an interpreter does, but skip the teardown, which would copy all the memory shared with the warm
    process."""
    if not isinstance(code, int | None):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit((code or 0) & 0xFF)


def _show_environment() -> None:
    """Overwrite the warm process's environment in the memory that /proc shows."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[47]), int(fields[48])  # env_start and env_end of proc(5)
    shown = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in os.environ.items())
    if len(shown) > end - begin:
        sys.exit("tests.warm_process: the environment is longer than the space reserved for it")
    ctypes.memset(begin, 0, end - begin)
    ctypes.memmove(begin, shown, len(shown))


if __name__ == "__main__":
    main()
