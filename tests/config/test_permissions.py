"""Files and folders are accessible only to Daybook's own user, whatever the umask. tests/e2e/test_up.py checks those of
a first start."""

import logging
import shutil
import stat
from pathlib import Path

import pytest

from config.databases import database
from config.environment import load_environment
from config.permissions import tighten
from tests import warm_process
from tests.e2e.running import MANAGE, START_SECONDS, environment, open_paths
from tests.migrated import migrated_file


def run_with_umask(home: Path, umask: int, *arguments: str) -> str:
    """Run a command with this umask; return its standard error."""
    done = warm_process.run([str(MANAGE), *arguments], env=environment(home), timeout=START_SECONDS, umask=umask)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_an_older_versions_readable_home_is_made_private_and_logged_and_an_export_is_private(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "backups").mkdir(parents=True)
    shutil.copyfile(migrated_file(), home / "daybook.sqlite3")
    (home / "backups" / "before-1.sqlite3").touch()
    (home / "attachments" / "aa").mkdir(parents=True)
    (home / "attachments" / "aa" / "photo").touch()
    for path in [home, *home.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    log = run_with_umask(home, 0, "prepare")
    assert open_paths(home) == []
    assert "could be read by others" in log
    out = tmp_path / "out.jsonl"
    run_with_umask(home, 0, "memories", "export", "--owner", "admin", str(out))
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_other_files_in_the_home_are_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    foreign = tmp_path / "photo.jpg"
    foreign.touch()
    foreign.chmod(0o644)
    tmp_path.chmod(0o700)
    with caplog.at_level(logging.WARNING, "daybook.permissions"):
        assert tighten(tmp_path) == 0
    assert stat.S_IMODE(foreign.stat().st_mode) == 0o644
    assert caplog.records == []


def test_a_shared_sticky_folder_is_left_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    tighten(tmp_path)
    assert tmp_path.stat().st_mode & 0o7777 == 0o1777


def test_a_single_path_that_is_made_private_is_counted_as_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o755)
    with caplog.at_level(logging.WARNING, "daybook.permissions"):
        assert tighten(tmp_path) == 1
    assert caplog.messages == [f"1 file or folder in {tmp_path} could be read by others: now private."]


def test_a_file_that_another_process_deletes_meanwhile_fails_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, wal = tmp_path / "daybook.sqlite3", tmp_path / "daybook.sqlite3-wal"
    file.touch(mode=0o644)
    monkeypatch.setattr(Path, "glob", lambda folder, pattern: [wal, file])  # the last connection deletes the WAL
    assert database(load_environment(), tmp_path)["NAME"] == file
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
