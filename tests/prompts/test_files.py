"""Prompt files: required and optional variables, and the fallback for a file that cannot be used."""

import logging
import re
import shutil
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core import checks
from django.core.management import call_command

from config.doctor import _prompts
from config.findings import Level
from prompts import files
from prompts.consolidation import CurrentDocument, SessionNotes, guidance, synthesis_messages
from prompts.copies import is_prompt_copy
from prompts.files import FOLDER, PROMPTS, fill, packaged_texts, prompt_file, prompt_problems, texts_now, use_folder
from prompts.review import review_prompt

OPERATIONS = Path(__file__).resolve().parents[2] / "docs" / "operations.md"
TWO_VARIABLES = "Sessions:\n{{rollout_summaries}}\nNotes:\n{{raw_memories}}\n"
BROKEN = {
    "lacks {{memory_summary}}": "# Guidance",
    "holds {{agent}}, which this prompt does not have": "{{memory_summary}} for {{agent}}",
    "lacks {{memory_summary}}.": "{{ memory_summary }}",
    "is empty": "\n  \n",
    "is not UTF-8 text": b"\xff{{memory_summary}}",
    "has more than 200,000 bytes": "x" * 200_001,
}


@pytest.fixture
def prompt_folder(tmp_path: Path) -> Iterator[Path]:
    """Use an administrator's prompt folder."""
    (tmp_path / "memories").mkdir()
    use_folder(tmp_path)
    yield tmp_path
    use_folder(settings.DAYBOOK_PROMPTS)


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / f"{name}.md"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    prompt_file.cache_clear()
    return path


def test_the_shipped_prompts_are_valid_and_match_the_packaged_texts() -> None:
    assert prompt_problems() == []
    assert packaged_texts() == texts_now(), "run `python -m prompts.files`"
    assert sorted(PROMPTS) == sorted(p.relative_to(FOLDER).with_suffix("").as_posix() for p in FOLDER.rglob("*.md"))


def test_a_synthesis_prompt_may_have_only_the_two_variables_of_the_contract(prompt_folder: Path) -> None:
    write(prompt_folder, "memories/consolidation", TWO_VARIABLES)
    document = CurrentDocument(
        path="MEMORY.md", content="Old.", person_lines=(), struck_lines=(), reads=0, last_read=""
    )
    note = SessionNotes(session_id="s", date="2026-03-04", raw_memory="- Deploys.", synopsis="About deploys.")
    (message,) = synthesis_messages(documents=[document], notes=[note])
    assert prompt_problems() == []
    assert message["content"] == (
        'Sessions:\n- 2026-03-04: About deploys.\nNotes:\n<session id="s" date="2026-03-04">\n- Deploys.\n</session>'
    )


def test_a_review_prompt_may_leave_out_the_room(prompt_folder: Path) -> None:
    write(prompt_folder, "review", "Known:\n{{existing}}")
    assert review_prompt((), room={"user": 1}, max_writes=5) == "Known:\n  (nothing yet)"


@pytest.mark.parametrize("problem_text", BROKEN)
def test_a_broken_file_is_reported_and_the_packaged_text_is_used(
    prompt_folder: Path, problem_text: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(prompt_folder, "memories/read_path", BROKEN[problem_text])
    with caplog.at_level(logging.ERROR, logger="daybook.prompts"):
        texts = [guidance("Likes tea.") for _ in range(3)]
    assert len(set(texts)) == 1
    assert "Memory is a heuristic" in texts[0]
    assert "Likes tea." in texts[0]
    (problem,) = prompt_problems()
    assert problem.startswith(f"{path} {problem_text}")
    assert [record.getMessage() for record in caplog.records] == [f"{problem} Another text is used meanwhile."]


def test_an_unreadable_file_is_reported(prompt_folder: Path) -> None:
    (prompt_folder / "memories" / "read_path.md").mkdir()
    prompt_file.cache_clear()
    assert "Memory is a heuristic" in guidance("Likes tea.")
    assert prompt_problems() == [f"{prompt_folder}/memories/read_path.md cannot be read: Is a directory."]


def test_a_file_with_an_unknown_name_is_reported(prompt_folder: Path) -> None:
    path = write(prompt_folder, "reveiw", "{{existing}}")
    assert prompt_problems() == [f"{path} is not read: there is no prompt of that name."]


@pytest.mark.parametrize("broken", ["# Guidance", None])
def test_a_packaged_file_that_was_broken_or_removed_is_reported(
    broken: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(FOLDER, tmp_path / "prompts")
    monkeypatch.setattr(files, "FOLDER", tmp_path / "prompts")
    path = tmp_path / "prompts" / "memories" / "read_path.md"
    path.unlink()
    if broken is not None:
        path.write_text(broken)
    prompt_file.cache_clear()
    assert "Memory is a heuristic" in guidance("Likes tea.")
    (problem,) = prompt_problems()
    assert problem.startswith(str(path))
    monkeypatch.undo()
    prompt_file.cache_clear()


def test_doctor_and_check_report_a_broken_file(prompt_folder: Path) -> None:
    assert _prompts().level is Level.OK
    path = write(prompt_folder, "memories/read_path", "# Guidance")
    finding = _prompts()
    assert (finding.level, str(path) in finding.text) == (Level.WARNING, True)
    warnings = [message for message in checks.run_checks() if message.id == "daybook.W020"]
    assert [message.msg for message in warnings] == [f"{path} lacks {{{{memory_summary}}}}."]
    output = StringIO()
    call_command("check", stderr=output, stdout=output)
    assert str(path) in output.getvalue()


def test_a_copy_of_an_administrators_prompt_is_recognised(prompt_folder: Path) -> None:
    words = "Sort whatever the gardener mentioned about tulips into drawers by month and colour."
    assert not is_prompt_copy(words)
    write(prompt_folder, "review", f"{words}\n{{{{existing}}}}")
    assert is_prompt_copy(words)
    assert is_prompt_copy("You keep the long-term memory for this person, so that a later conversation goes on.")


def test_a_value_without_a_variable_in_the_prompt_is_an_error() -> None:
    with pytest.raises(files.PromptError, match="memory_block"):
        fill(prompt_file("memory_block"), memories="x", agent="y")


def test_the_docs_list_every_prompt_with_its_variables() -> None:
    table = OPERATIONS.read_text().split("## Your own prompts")[1].split("## ")[0]
    rows = re.findall(r"^\| (`[^|]+) \| ([^|]*) ?\| ([^|]*) ?\|$", table, re.MULTILINE)
    documented = {
        name: tuple(frozenset(re.findall(r"\{\{(\w+)\}\}", cell)) for cell in cells)
        for file_cell, *cells in rows
        for name in re.findall(r"`([\w/]+)\.md`", file_cell)
    }
    assert documented == {name: (prompt.required, prompt.optional) for name, prompt in PROMPTS.items()}
