"""Files and folders of Daybook are for its own user alone, whatever the umask of the shell that started it.

Called by config.settings (every process) and by config.bootstrap (what older versions left open)."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

logger = logging.getLogger("daybook.permissions")

OWN_UMASK = 0o077
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
# What is ours in DAYBOOK_HOME. The folder may hold other things, which are left alone.
_OWN = ("daybook.sqlite3*", "test.sqlite3*", "secret_key*", "up.lock", "backups", "cache", "files", "sockets")


def make_private() -> None:
    """From now on this process makes files of mode 0600 and folders of mode 0700 at most."""
    os.umask(OWN_UMASK)


def tighten(home: Path) -> int:
    """Take group and others away from the home and from everything of ours in it that is open to them. Returns how
    many paths were changed, and logs the number. What belongs to another user is logged and left."""
    changed = 0
    for path in [home, *_own_paths(home)]:
        try:
            mode = path.stat().st_mode
            if mode & _OTHERS and not mode & stat.S_ISVTX:  # a folder such as /tmp is everybody's
                path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
                changed += 1
        except FileNotFoundError:
            continue  # a -wal file that has just gone
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
