"""docs/clients.md matches the tested clients."""

from pathlib import Path

from tests.clients.matrix import documented
from tests.clients.programs import ROOT, Workspace


def test_the_documentation_contains_the_table_of_clients() -> None:
    assert documented() in (ROOT / "docs/clients.md").read_text(), (
        f"Write this table into docs/clients.md:\n{documented()}"
    )


def test_the_tested_settings_come_from_the_documentation(tmp_path: Path) -> None:
    workspace = Workspace(address="http://127.0.0.1:1", key="dbk_key", folder=tmp_path)
    assert 'base_url = "http://127.0.0.1:1/v1"' in workspace.documented("codex/config.toml")
    assert workspace.documented_environment("claude-code")["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    assert workspace.documented_environment("aider")["OPENAI_API_KEY"] == "dbk_key"
