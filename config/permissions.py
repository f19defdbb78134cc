"""Making the files and folders of older versions private to Daybook's user. The umask in config.settings does this for
new ones."""

import logging
import stat
from collections.abc import Iterator
from pathlib import Path

from memories.number_words import counted

logger = logging.getLogger("daybook.permissions")

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
# Daybook's files in DAYBOOK_HOME. Other files are not changed.
_OWN_FILES = (
    "daybook.sqlite3*",
    "test.sqlite3*",
    "secret_key*",
    "up.lock",
    "attachments",
    "backups",
    "cache",
    "sockets",
)


def tighten(home: Path) -> int:
    """Remove the permissions of group and others from DAYBOOK_HOME and Daybook's files in it. Returns and logs the
    number of changed paths. Paths of another user are logged and not changed."""
    changed = 0
    for path in [home, *_own_paths(home)]:
        try:
            changed += make_private(path)
        except PermissionError:
            logger.warning("%s can be read by others and belongs to another user; take it over or close it.", path)
    if changed:
        what = counted(changed, "file or folder", "files and folders")
        logger.warning("%s in %s could be read by others: now private.", what, home)
    return changed


def make_private(path: Path) -> bool:
    """Remove the permissions of group and others from a path, but not from a shared folder such as /tmp. Return True if
    there were any. Raises OSError, but not for a missing file: a `-wal` may just have been deleted."""
    try:
        mode = path.stat().st_mode
        if not mode & _OTHERS or mode & stat.S_ISVTX:
            return False
        path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
    except FileNotFoundError:
        return False
    return True


def _own_paths(home: Path) -> Iterator[Path]:
    for pattern in _OWN_FILES:
        for path in home.glob(pattern):
            # Nobody else reaches what is in a private folder, which may hold many attachments.
            is_open = path.is_dir() and not path.is_symlink() and path.stat().st_mode & _OTHERS
            yield path
            if is_open:
                yield from path.rglob("*")
