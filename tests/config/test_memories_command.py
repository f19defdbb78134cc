"""manage.py memories export | import."""

import io
import json
import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memories.models import Memory, Owner, Revision
from memories.services import owner_for_end_user
from tests.factories import memory_make

SECRET = "The password of the router is Tr0ub4dor-9x!k."


def memories(*arguments: str) -> tuple[str, str]:
    """Run the command; return its standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    call_command("memories", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def parsed(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def write_lines(path: Path, *lines: Any) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def test_export_prints_memories_with_their_history(alice: Owner, charlie: Owner) -> None:
    memory_make(alice, "Likes tea.")
    memory_make(charlie, "Likes secrets.")
    out, _ = memories("export", "--owner", "alice")
    lines = parsed(out)
    assert [line["type"] for line in lines] == ["header", "memory", "revision"]
    assert lines[1]["content"] == "Likes tea."
    assert "secrets" not in out


def test_export_of_one_book_leaves_out_the_others(alice: Owner) -> None:
    memory_make(alice, "Likes tea.")
    memory_make(alice, "Deploys on Fridays.", book="work")
    out, _ = memories("export", "--owner", "alice", "--book", "work")
    assert [line["content"] for line in parsed(out) if line["type"] == "memory"] == ["Deploys on Fridays."]


def test_an_exported_file_can_be_imported_by_another_owner(alice: Owner, charlie: Owner, tmp_path: Path) -> None:
    memory_make(alice, "Mag Tee mit Zitrone ☕.", keywords=["Getränk"])
    file = tmp_path / "alice.jsonl"
    memories("export", "--owner", "alice", str(file))
    assert file.stat().st_mode & 0o077 == 0
    out, _ = memories("import", "--owner", "charlie", str(file))
    assert out.startswith("Imported: 1 new, 0 changed, 0 known already, 0 left out.")
    memory = Memory.objects.get(owner=charlie)
    assert (memory.content, memory.keywords) == ("Mag Tee mit Zitrone ☕.", ["Getränk"])
    assert (memory.write_origin, Revision.objects.get(owner=charlie).actor) == ("import", "system")


def test_a_second_import_writes_nothing(alice: Owner, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "facts.jsonl", {"content": "Likes tea."})
    memories("import", "--owner", "alice", file)
    out, _ = memories("import", "--owner", "alice", file)
    assert out.startswith("Imported: 0 new, 0 changed, 1 known already")
    assert Revision.objects.count() == 1


def test_a_preview_writes_nothing(alice: Owner, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "facts.jsonl", {"content": "Likes tea."})
    out, _ = memories("import", "--owner", "alice", "--preview", file)
    assert out.startswith("Would import: 1 new")
    assert not Memory.objects.exists()


def test_a_line_blocked_by_the_scan_is_reported_without_its_text(alice: Owner, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "facts.jsonl", {"content": "Likes tea."}, {"content": SECRET})
    out, err = memories("import", "--owner", "alice", file)
    assert "1 new" in out
    assert "1 left out" in out
    assert "Line 2 was left out: blocked_by_scan" in err
    assert "Tr0ub4dor" not in out + err


def test_import_reads_standard_input_into_the_named_book(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Deploys on Fridays.")))
    memories("import", "--owner", "alice", "--book", "work")
    assert Memory.objects.get().book.name == "work"


def test_an_end_user_is_specified_by_their_owner_id(alice: Owner) -> None:
    anna = owner_for_end_user(parent=alice, namespace="daybook", external_id="anna")
    memory_make(anna, "Likes jazz.")
    out, _ = memories("export", "--owner", str(anna.pk))
    assert "Likes jazz." in out


def test_an_invalid_file_imports_nothing(alice: Owner, tmp_path: Path) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_text('{"content": "Likes tea."}\n{"content"\n')
    with pytest.raises(CommandError, match="Line 2 is not valid JSON"):
        memories("import", "--owner", "alice", str(file))
    assert not Memory.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("export", "--owner", "nobody"), "There is no user nobody"),
        (("import", "--owner", "alice", "/nowhere/facts.jsonl"), "No such file or directory$"),
        (("export", "--owner", "alice", "/nowhere/facts.jsonl"), "No such file or directory. Without FILE, the export"),
    ],
)
def test_a_missing_user_or_file_is_a_one_line_error(alice: Owner, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        memories(*arguments)


def test_a_closed_pipe_ends_an_export_quietly(alice: Owner) -> None:
    memory_make(alice, "Likes tea.")

    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        call_command("memories", "export", "--owner", "alice", stdout=Closed())


def test_a_missing_book_cannot_be_exported(alice: Owner) -> None:
    with pytest.raises(CommandError, match="There is no such book"):
        memories("export", "--owner", "alice", "--book", "wrok")


def test_an_export_that_fails_leaves_the_former_file(
    alice: Owner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*args: Any, **options: Any) -> Iterator[str]:
        yield "the first line\n"
        raise OSError(ENOSPC, "No space left on device")

    file = tmp_path / "alice.jsonl"
    memories("export", "--owner", "alice", str(file))
    former = file.read_bytes()
    monkeypatch.setattr("config.management.commands.memories.export_lines", no_space)
    with pytest.raises(CommandError, match="No space left on device"):
        memories("export", "--owner", "alice", str(file))
    assert file.read_bytes() == former
    assert list(tmp_path.iterdir()) == [file]


def test_an_export_to_a_pipe_leaves_its_permissions(alice: Owner, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    pipe.chmod(0o644)
    with ThreadPoolExecutor(1) as reader:
        read = reader.submit(pipe.read_text, encoding="utf-8")
        memories("export", "--owner", "alice", str(pipe))
        assert [line["type"] for line in parsed(read.result())] == ["header"]
    assert stat.S_IMODE(pipe.stat().st_mode) == 0o644  # otherwise root's export would close /dev/null to all others
