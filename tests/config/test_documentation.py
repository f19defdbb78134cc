"""README.md, CONTRIBUTING.md, docs/ and the other pages: links work, and settings and commands are listed correctly."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import get_commands
from pydantic import SecretStr

from config.environment import Environment
from gateway.agents.settings import AgentSettings

BASE = Path(settings.BASE_DIR)
PAGES = sorted([*BASE.glob("*.md"), *(BASE / "docs").rglob("*.md"), *(BASE / "bench").glob("*.md")])
OPERATIONS = (BASE / "docs" / "operations.md").read_text()
# Their default is a path or a rule, which the page describes in words.
DESCRIBED_IN_WORDS = {"OPENAI_DIALECT", "OPENAI_AT_ONCE", "DAYBOOK_PROMPTS", "DAYBOOK_STATIC", "DAYBOOK_ATTACHMENTS"}
VARIABLES = {field.alias or f"DAYBOOK_{name.upper()}": field for name, field in Environment.model_fields.items()}
OWN_COMMANDS = sorted(
    name for name, app in get_commands().items() if app in {"config", "gateway", "memories", "reviews"}
)


def without_blocks(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(page), re.MULTILINE)
    texts = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in texts}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(BASE)))
def test_every_link_within_the_repository_works(page: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", without_blocks(page))
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        file, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        other = page.parent / file if file else page
        if not other.exists() or (anchor and anchor not in anchors_of(other)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("name", sorted(VARIABLES.keys() - DESCRIBED_IN_WORDS))
def test_every_variable_is_listed_with_its_default(name: str) -> None:
    default = VARIABLES[name].default
    if isinstance(default, SecretStr):
        default = default.get_secret_value()
    elif isinstance(default, bool):
        default = str(default).lower()
    row = re.search(rf"^\| `{name}` \| ([^|]*)\|", OPERATIONS, re.MULTILINE)
    assert row
    listed = row[1].strip()
    assert re.sub(r"(?<=\d)\s(?=\d)", "", listed) == ("" if default is None else str(default))


@pytest.mark.parametrize("name", OWN_COMMANDS)
def test_every_command_is_listed(name: str) -> None:
    assert re.search(rf"^\| .*`manage\.py {name}\b.*\|$", OPERATIONS, re.MULTILINE)


@pytest.mark.parametrize("name", AgentSettings.model_fields)
def test_every_agent_setting_is_explained_on_some_page(name: str) -> None:
    pages = [page.read_text() for page in (BASE / "docs").glob("*.md")]
    assert any(re.search(rf"(?:`|\b){name}(?:`|:)", text) for text in pages)
