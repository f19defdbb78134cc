"""What docs/clients.md says about clients is what is tried"""

from pathlib import Path

from tests.clients.matrix import documented
from tests.clients.programs import ROOT, Place


def test_the_documentation_has_the_table_of_clients() -> None:
    assert documented() in (ROOT / "docs/clients.md").read_text(), (
        f"Write this table into docs/clients.md:\n{documented()}"
    )


def test_the_lines_of_the_documentation_are_those_that_are_tried(tmp_path: Path) -> None:
    place = Place(address="http://127.0.0.1:1", key="dbk_key", folder=tmp_path)
    assert 'base_url = "http://127.0.0.1:1/v1"' in place.documented("codex/config.toml")
    assert place.documented_environment("claude-code")["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    assert place.documented_environment("aider")["OPENAI_API_KEY"] == "dbk_key"
