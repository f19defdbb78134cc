"""Makes files and folders of Daybook private to its user, whatever the umask of the shell. Called by config.settings
(in every process) and by config.processes.bootstrap (for files of older versions)."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

logger = logging.getLogger("daybook.permissions")

OWN_UMASK = 0o077
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
# Our files in DAYBOOK_HOME. All others are left alone.
_OWN = ("daybook.sqlite3*", "test.sqlite3*", "secret_key*", "up.lock", "backups", "cache", "files", "sockets")


def make_private() -> None:
    """Limit new files of this process to mode 0600 and new folders to mode 0700."""
    os.umask(OWN_UMASK)


def tighten(home: Path) -> int:
    """Remove permissions of group and others from DAYBOOK_HOME and from our files in it. Returns how many paths were
    changed, and logs the number. Paths of another user are logged and left."""
    changed = 0
    for path in [home, *_own_paths(home)]:
        try:
            mode = path.stat().st_mode
            if mode & _OTHERS and not mode & stat.S_ISVTX:  # a shared folder such as /tmp
                path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
                changed += 1
        except FileNotFoundError:
            continue  # a -wal file that was just deleted
        except PermissionError:
            logger.warning("%s can be read by others and belongs to another user; take it over or close it.", path)
    if changed:
        logger.warning("%d files and folders in %s could be read by others; they are private now.", changed, home)
    return changed


def _own_paths(home: Path) -> Iterator[Path]:
    for pattern in _OWN:
        for path in home.glob(pattern):
            yield path
            if path.is_dir() and not path.is_symlink():
                yield from path.rglob("*")
