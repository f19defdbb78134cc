"""SQLite's files belong to one user, and what is deleted is overwritten, whatever the machine's defaults are."""

import os
from pathlib import Path

import pytest

from tests import warm

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
_WRITE = (
    "from django.db import connection; cursor = connection.cursor(); "
    "cursor.execute('CREATE TABLE t (x)'); cursor.execute('PRAGMA secure_delete'); print(cursor.fetchone()[0]); "
    "import os, pathlib; home = pathlib.Path(os.environ['DAYBOOK_HOME']); "
    "print(sorted((path.name, oct(path.stat().st_mode & 0o777)) for path in home.glob('daybook.sqlite3*')))"
)


def _shell(home: Path) -> str:
    taken = ("DAYBOOK_", "DATABASE_URL", "REDIS_URL", "OPENAI_", "DJANGO_SETTINGS_MODULE")
    env = {name: value for name, value in os.environ.items() if not name.startswith(taken)}
    command = [str(MANAGE), "shell", "--no-imports", "-c", _WRITE]
    done = warm.run(command, env=env | {"DAYBOOK_HOME": str(home)}, timeout=60, umask=0)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("old_file", [False, True], ids=["new", "of an earlier version"])
def test_the_files_are_closed_to_others_whatever_the_umask(tmp_path: Path, old_file: bool) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    if old_file:
        (home / "daybook.sqlite3").touch()
        (home / "daybook.sqlite3").chmod(0o644)
    secure_delete, files = _shell(home).splitlines()[-2:]
    assert secure_delete == "1"
    assert "daybook.sqlite3" in files
    assert "-wal" in files
    assert files.count("0o600") == files.count("daybook.sqlite3")
