"""docs/consolidation.md documents every setting with its default, and every command."""

import re
from pathlib import Path

import pytest

from gateway.agents.settings import ConsolidationSettings
from gateway.command_syntax import VERBS

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "consolidation.md").read_text()
ROWS = dict(re.findall(r"^\| (`[^|]+) \| ([^|]+) \|", TEXT.split("## Settings")[1], re.MULTILINE))
DEFAULTS = {
    name.strip(" `"): value.strip()
    for names, values in ROWS.items()
    for name, value in zip(names.split(","), values.split(","), strict=True)
}


@pytest.mark.parametrize("name", ConsolidationSettings.model_fields)
def test_every_setting_is_documented_with_its_default(name: str) -> None:
    default = ConsolidationSettings.model_fields[name].default
    assert DEFAULTS[name] == (str(default).lower() or "none")


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_is_documented(verb: str) -> None:
    assert f"/memory {verb}" in TEXT
