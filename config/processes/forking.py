"""Child processes that end with their parent, and signals as events.

Linux can end a child with its parent. macOS cannot: there, `kill -9` of the supervisor may leave its children running,
but no other way of stopping does."""

import ctypes
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Iterable
from types import FrameType

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
STOPS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
"""Signals to stop: Ctrl-C, a service manager's SIGTERM, a closed terminal."""
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_forking_pid = 0


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when its parent (a process id) ends. Exit if it has already ended. The kernel
    watches the thread that started this process, so children must be started from main threads."""
    if _libc is not None and _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) was refused")
    if os.getppid() != parent:  # it ended before the call
        os._exit(1)


def name_process(name: str) -> None:
    """Set the name that `ps -e` and `top` show for this process, up to 15 bytes. Linux only."""
    if _libc is not None:
        _libc.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


def without_reader() -> int:
    """Leave nothing for Python to write at exit, which would print an error, after the reader of standard output has
    closed the pipe. Returns the exit code of a program that SIGPIPE has ended, as shells report it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE


def may_fork() -> bool:
    """Return True if this process may fork without exec: with other threads the forks could hang, and macOS forbids it
    to processes that use its frameworks."""
    return sys.platform == "linux" and threading.active_count() == 1


def fork(name: str) -> int:
    """Fork, as `os.fork` does. The child gets this process name, ends with its parent, and has its own session, so that
    Ctrl-C does not reach it. Call it from main threads only."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        die_with_parent(parent)
        name_process(name)
        devnull = os.open(os.devnull, os.O_RDONLY)
        os.dup2(devnull, 0)
        os.close(devnull)
    return pid


def forks_die_with_parent() -> None:
    """Make all later forks of this process, and their forks, end with their parent."""
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)


def _before_fork() -> None:
    global _forking_pid
    _forking_pid = os.getpid()


def _after_fork() -> None:
    die_with_parent(_forking_pid)


class SignalInbox:
    """Signals as bytes in a socket. The handler does nothing else, so it cannot deadlock. Create only one per process,
    in the main thread. SIGHUP stays ignored if nohup has set it so."""

    def __init__(self, *numbers: signal.Signals) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._before = {
            number: signal.signal(number, _handler)
            for number in numbers
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
        }
        self._wakeup_before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        os.register_at_fork(after_in_child=self._forget)

    def fileno(self) -> int:
        """Return the file descriptor, for select and multiprocessing.connection.wait."""
        return self._reader.fileno()

    def wait(self, seconds: float) -> set[int]:
        """Return the signals since the last call; wait up to `seconds` for the first."""
        readable, _, _ = select.select([self._reader], [], [], seconds)
        return set(self._reader.recv(4096)) if readable else set()

    def close(self) -> None:
        """Restore the previous handlers."""
        signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}
        self._reader.close()
        self._writer.close()

    def _forget(self) -> None:
        # A forked child shares the socket, so its signals would look like those of the parent.
        if self._before:
            signal.set_wakeup_fd(-1)
            for number in self._before:
                signal.signal(number, signal.SIG_DFL)


def _handler(number: int, frame: FrameType | None) -> None:
    """Do nothing: the interpreter has already written the number into the socket."""


def is_stop(signals: Iterable[int]) -> bool:
    """Return True if one of the signals is a stop signal."""
    return not STOPS.isdisjoint(signals)
