"""A database of the first release is migrated to the current schema without losing data."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.data.stored import load_stored
from tests.e2e.running import manage
from tests.migrated import migrated_file

STORED = Path(__file__).parents[1] / "data" / "schema_1.sql.xz"
CHECK = """
import json
from memories.models import Memory, Revision, Owner
from memories.services import memory_state
from reviews.models import ReviewRun, Extraction
from gateway.models import Message, Session, Run
from memories.api.export import export_lines

for memory in Memory.objects.all():
    steps = list(Revision.objects.filter(memory=memory).order_by("version"))
    assert [step.version for step in steps] == list(range(1, memory.version + 1)), memory
    assert steps[0].before is None
    for earlier, later in zip(steps, steps[1:]):
        known = {name: earlier.after.get(name) for name in later.before}
        assert later.before == known, (memory, later.version)
    state = memory_state(memory)
    assert {name: state[name] for name in steps[-1].after} == steps[-1].after, memory
alice = Owner.objects.get(user__username="alice")
print(json.dumps({
    "live": sorted(Memory.objects.filter(owner=alice, deleted_at=None).values_list("content", flat=True)),
    "reviews": sorted(ReviewRun.objects.values_list("state", flat=True)),
    "sessions": Session.objects.count(),
    "messages": Message.objects.count(),
    "runs": Run.objects.count(),
    "notes": Extraction.objects.count(),
    "lines": sum(1 for _ in export_lines(alice.pk)),
}))
"""


@pytest.fixture
def old_home(tmp_path: Path) -> Path:
    """A DAYBOOK_HOME with the stored database."""
    home = tmp_path / "home"
    load_stored(STORED, home)
    return home


def counts(home: Path) -> dict[str, int]:
    """Return the number of rows of each of our tables."""
    with closing(sqlite3.connect(home / "daybook.sqlite3")) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        ours = [name for name in names if name.startswith(("memories_", "gateway_", "reviews_", "auth_user"))]
        ours = [name for name in ours if not name.startswith("gateway_message_words")]  # an index without rows
        return {name: database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in ours}  # noqa: S608


def schema(database: Path) -> dict[tuple[str, str], str]:
    """Return the statements that create the database's tables, indexes and triggers."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    return {(kind, name): statement for kind, name, statement in rows}


def test_a_database_of_the_first_release_is_upgraded_without_loss(old_home: Path) -> None:
    before = counts(old_home)
    done = manage(old_home, "prepare")
    assert done.returncode == 0, done.stderr
    after = counts(old_home)
    lost = {name: (number, after[name]) for name, number in before.items() if name in after and after[name] < number}
    # Rows of workers that have gone for long are deleted at every start.
    assert {name for name in lost if name != "gateway_worker"} == set()
    (copy,) = (old_home / "backups").glob("before-*.sqlite3")
    with closing(sqlite3.connect(copy)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("SELECT count(*) FROM memories_memory").fetchone()[0] == before["memories_memory"]
    # The database was upgraded step by step; a new one is created by the squashed migrations.
    assert schema(old_home / "daybook.sqlite3") == schema(migrated_file())
    # Revisions can be replayed, and reviews and sessions can be read.
    done = manage(old_home, "shell", "--no-imports", "-c", CHECK)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert "A fact that was changed." in found["live"]
    assert "Is a vegetarian." in found["live"]
    assert "Plain fact number 1." not in found["live"]
    assert "Plain fact number 2." in found["live"]
    assert found["reviews"].count("saved") == 1
    assert "awaiting_approval" in found["reviews"]
    assert found["notes"] >= 1
    assert min(found["sessions"], found["runs"], found["messages"], found["lines"]) > 2
