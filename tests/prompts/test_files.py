"""Prompt files: what they must hold, what they may leave out, and what stands in for a file that cannot be used."""

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

from config.doctor import Level, _prompts
from prompts import files
from prompts.consolidation import CurrentDocument, SessionNotes, guidance, synthesis_messages
from prompts.copies import is_prompt_copy
from prompts.files import FOLDER, PROMPTS, fill, packaged_texts, prompt_file, prompt_problems, use_folder
from prompts.packaged import texts_now
from prompts.review import ReviewPrompt

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
def own(tmp_path: Path) -> Iterator[Path]:
    """An administrator's folder, in use."""
    (tmp_path / "memories").mkdir()
    use_folder(tmp_path)
    yield tmp_path
    use_folder(settings.DAYBOOK_PROMPTS)


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / f"{name}.md"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    prompt_file.cache_clear()
    return path


def test_what_is_shipped_can_be_used_and_is_kept_as_packaged() -> None:
    assert prompt_problems() == []
    assert packaged_texts() == texts_now(), "run `python -m prompts.packaged`"
    assert sorted(PROMPTS) == sorted(p.relative_to(FOLDER).with_suffix("").as_posix() for p in FOLDER.rglob("*.md"))


def test_a_file_under_a_prompts_former_name_is_used(own: Path) -> None:
    write(own, "found_by", "Find words for {{notes}}.")
    assert prompt_file("keyword_generation").text == "Find words for {{notes}}."
    assert prompt_problems() == []


def test_the_present_name_wins_over_the_former_one_which_is_named(own: Path) -> None:
    former = write(own, "found_by", "Find words for {{notes}}.")
    write(own, "keyword_generation", "Search words of {{notes}}.")
    assert prompt_file("keyword_generation").text == "Search words of {{notes}}."
    assert prompt_problems() == [f"{former} is not read, since keyword_generation.md exists, too."]


def test_a_broken_file_under_a_former_name_is_named(own: Path) -> None:
    former = write(own, "found_by", "Find words.")
    assert prompt_problems() == [f"{former} lacks {{{{notes}}}}."]
    assert prompt_file("keyword_generation").text == packaged_texts()["keyword_generation"]


def test_a_synthesis_prompt_with_the_two_variables_of_the_contract_works(own: Path) -> None:
    write(own, "memories/consolidation", TWO_VARIABLES)
    document = CurrentDocument(
        path="MEMORY.md", content="Old.", person_lines=(), struck_lines=(), reads=0, last_read=""
    )
    note = SessionNotes(session_id="s", date="2026-03-04", raw_memory="- Deploys.", synopsis="About deploys.")
    (message,) = synthesis_messages(documents=[document], notes=[note])
    assert prompt_problems() == []
    assert message["content"] == (
        'Sessions:\n- 2026-03-04: About deploys.\nNotes:\n<session id="s" date="2026-03-04">\n- Deploys.\n</session>'
    )


def test_a_review_prompt_may_leave_out_the_room(own: Path) -> None:
    write(own, "review", "Known:\n{{existing}}")
    assert ReviewPrompt(existing=(), room={"user": 1}, max_writes=5).render() == "Known:\n  (nothing yet)"


@pytest.mark.parametrize("said", BROKEN)
def test_a_broken_file_is_named_and_the_packaged_text_is_used(
    own: Path, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(own, "memories/read_path", BROKEN[said])
    with caplog.at_level(logging.ERROR, logger="daybook.prompts"):
        shown = [guidance("Likes tea.") for _ in range(3)]
    assert len(set(shown)) == 1
    assert "Memory is a heuristic" in shown[0]
    assert "Likes tea." in shown[0]
    (problem,) = prompt_problems()
    assert problem.startswith(f"{path} {said}")
    assert [record.getMessage() for record in caplog.records] == [f"{problem} Another text is used meanwhile."]


def test_a_file_that_cannot_be_read_is_named(own: Path) -> None:
    (own / "memories" / "read_path.md").mkdir()
    prompt_file.cache_clear()
    assert "Memory is a heuristic" in guidance("Likes tea.")
    assert prompt_problems() == [f"{own}/memories/read_path.md cannot be read: Is a directory."]


def test_a_file_of_no_prompt_is_named(own: Path) -> None:
    path = write(own, "reveiw", "{{existing}}")
    assert prompt_problems() == [f"{path} is not read: there is no prompt of that name."]


@pytest.mark.parametrize("broken", ["# Guidance", None])
def test_a_file_that_was_broken_or_removed_in_place_is_named_too(
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


def test_doctor_and_check_name_it(own: Path) -> None:
    assert _prompts().level is Level.OK
    path = write(own, "memories/read_path", "# Guidance")
    finding = _prompts()
    assert (finding.level, str(path) in finding.text) == (Level.WARNING, True)
    warnings = [message for message in checks.run_checks() if message.id == "daybook.W020"]
    assert [message.msg for message in warnings] == [f"{path} lacks {{{{memory_summary}}}}."]
    said = StringIO()
    call_command("check", stderr=said, stdout=said)
    assert str(path) in said.getvalue()


def test_a_copy_of_an_own_prompt_is_one_too(own: Path) -> None:
    words = "Sort whatever the gardener mentioned about tulips into drawers by month and colour."
    assert not is_prompt_copy(words)
    write(own, "review", f"{words}\n{{{{existing}}}}")
    assert is_prompt_copy(words)
    assert is_prompt_copy("You keep the long-term memory for this person, so that a later conversation goes on.")


def test_a_value_that_the_prompt_has_no_variable_for_is_an_error() -> None:
    with pytest.raises(files.PromptError, match="memory_block"):
        fill(prompt_file("memory_block"), memories="x", agent="y")


def test_the_docs_list_every_prompt_with_its_variables() -> None:
    table = OPERATIONS.read_text().split("## Your own prompts")[1].split("## ")[0]
    rows = re.findall(r"^\| (`[^|]+) \| ([^|]*) ?\| ([^|]*) ?\|$", table, re.MULTILINE)
    documented = {
        name: tuple(frozenset(re.findall(r"\{\{(\w+)\}\}", cell)) for cell in cells)
        for files_named, *cells in rows
        for name in re.findall(r"`([\w/]+)\.md`", files_named)
    }
    assert documented == {name: (held.required, held.optional) for name, held in PROMPTS.items()}
