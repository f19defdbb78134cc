"""bench/consolidation_demo.py: the harness with an invented conversation and the demo model"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests import warm_process
from tests.migrated import migrated_file

BENCH = Path(__file__).resolve().parents[3] / "bench" / "consolidation_demo.py"


def turn(number: str, speaker: str, text: str, day: int) -> dict[str, Any]:
    return {"dia_id": number, "speaker": speaker, "date_time": f"1:56 pm on {day} May, 2023", "text": text}


CONVERSATION = {
    "id": "c",
    "turns": [
        turn("D1:1", "Ada", "I prefer short answers.", 8),
        turn("D1:2", "Bea", "I live in Leeds.", 8),
        turn("D2:1", "Ada", "How are you?", 9),
        turn("D2:2", "Bea", "Fine.", 9),
    ],
}


def run(data: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    # No upstream: the demo model answers.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "DAYBOOK_"))}
    env["MIGRATED_DATABASE"] = str(migrated_file())
    return warm_process.run([str(BENCH), "--data", str(data), *arguments], env=env, timeout=120)


def test_a_dialogue_becomes_documents_about_its_first_speaker(tmp_path: Path) -> None:
    data = tmp_path / "conversations.json"
    data.write_text(json.dumps([CONVERSATION]))
    completed = run(data)
    assert completed.returncode == 0, completed.stderr
    report = json.loads(completed.stdout.splitlines()[-1])
    figures = (report["sessions"], report["sessions_done"], report["sessions_empty"], report["requests"])
    assert (report["state"], figures) == ("completed", (2, 2, 1, 3))
    assert set(report["documents"]) == {"MEMORY.md", "memory_summary.md"}
    assert "- Prefers short answers." in completed.stdout
    assert "Leeds" not in completed.stdout


def test_a_missing_conversation_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "conversations.json"
    data.write_text(json.dumps([CONVERSATION]))
    completed = run(data, "--conversation", "1")
    assert (completed.returncode, completed.stdout) == (2, "")
    assert "--conversation is 0 to 0 in this file" in completed.stderr
