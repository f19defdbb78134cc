"""SQLite's files are private and deleted data is overwritten, whatever the machine's defaults are."""

import os
from pathlib import Path

import pytest

from tests import warm_process

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
_WRITE = (
    "from django.db import connection; cursor = connection.cursor(); "
    "cursor.execute('CREATE TABLE t (x)'); cursor.execute('PRAGMA secure_delete'); print(cursor.fetchone()[0]); "
    "import os, pathlib; home = pathlib.Path(os.environ['DAYBOOK_HOME']); "
    "print(sorted((path.name, oct(path.stat().st_mode & 0o777)) for path in home.glob('daybook.sqlite3*')))"
)
# The WAL is deleted with its last connection, so it is inspected while there are two.
_FORGET = """
import os, pathlib, sqlite3
from django.db import connection
from memories.sweep import wal_sweep
file = pathlib.Path(os.environ['DAYBOOK_HOME'], 'daybook.sqlite3')
with connection.cursor() as cursor:
    cursor.execute('CREATE TABLE t (x)')
    cursor.execute("INSERT INTO t VALUES ('Quillonthorpe')")
    cursor.execute('DELETE FROM t')
holds = lambda: [b'Quillonthorpe' in path.read_bytes() for path in (file, file.with_name(file.name + '-wal'))]
other = sqlite3.connect(file)
other.execute('BEGIN')
other.execute('SELECT * FROM t').fetchall()
wal_sweep()
before = holds()
other.rollback()
from memories import sweep
sweep._wal_sweep_due = 0
wal_sweep()
with connection.cursor() as cursor:
    waits = cursor.execute('PRAGMA busy_timeout').fetchone()[0]
print(before, holds(), waits)
"""


def _shell(home: Path, code: str = _WRITE) -> str:
    removed = ("DAYBOOK_", "DATABASE_URL", "REDIS_URL", "OPENAI_", "DJANGO_SETTINGS_MODULE")
    env = {name: value for name, value in os.environ.items() if not name.startswith(removed)}
    command = [str(MANAGE), "shell", "--no-imports", "-c", code]
    done = warm_process.run(command, env=env | {"DAYBOOK_HOME": str(home)}, timeout=60, umask=0)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("old_file", [False, True], ids=["new", "of an earlier version"])
def test_the_database_files_are_private_whatever_the_umask(tmp_path: Path, old_file: bool) -> None:
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


def test_deleted_data_leaves_the_wal_once_no_reader_needs_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    assert _shell(home, _FORGET).splitlines()[-1] == "[False, True] [False, False] 5000"
