"""The table of tools: turns, reviews, /mcp, the chat page, and the docs all use its entries."""

import re
from pathlib import Path

import pytest
from django.test import Client

from memories.models import Owner
from memories.tools import TOOLS, Stage, ToolCall, definitions, tools_at, tools_of_turn
from memories.tools.calls import parse_arguments
from reviews.staged import STAGED_TOOLS

pytestmark = pytest.mark.any_database

DOCS = Path(__file__).resolve().parents[2] / "docs"
WRITING = ["add_memory", "update_memory", "delete_memory"]
READING = ["search_memories", "get_memories"]


def names(*stages: Stage) -> list[str]:
    return [tool.name for tool in tools_at(*stages)]


def test_each_stage_has_the_tools_of_the_contract() -> None:
    assert names(Stage.REVIEW) == WRITING
    assert names(Stage.MCP) == [*WRITING, *READING, "read"]
    assert [tool.name for tool in tools_of_turn(memory=True)] == [*WRITING, *READING, "read"]
    assert [tool.name for tool in tools_of_turn(memory=False)] == ["read"]


def test_a_definition_has_the_openai_format() -> None:
    (definition,) = definitions([TOOLS["delete_memory"]])
    identifier = {"anyOf": [{"type": "integer"}, {"type": "string"}], "description": "The id of the memory."}
    assert definition == {
        "type": "function",
        "function": {
            "name": "delete_memory",
            "description": TOOLS["delete_memory"].description,
            "parameters": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"id": identifier},
                "required": ["id"],
            },
        },
    }


def test_no_entry_contradicts_itself() -> None:
    for tool in TOOLS.values():
        assert tool.writes or not (tool.destructive or Stage.REVIEW in tool.stages)
        assert bool(tool.detail) == bool(tool.detailed)
        assert not tool.detail or tool.detail in tool.arguments.model_fields


@pytest.mark.parametrize(
    ("given", "number"), [("42.0", 42), ("4.2e1", 42), ("42.5", None), ("true", None), ("1e999", None)]
)
def test_a_whole_number_may_have_a_decimal_point(given: str, number: int | None) -> None:
    """As in JSON Schema. Some servers keep the arguments of calls as doubles."""
    for name, text in (("delete_memory", f'{{"id": {given}}}'), ("read", f'{{"path": "", "offset": {given}}}')):
        parsed = parse_arguments(TOOLS[name], ToolCall(id="c1", name=name, arguments=text))
        assert getattr(parsed, "id", getattr(parsed, "offset", None)) == number


def test_reviews_can_stage_exactly_the_tools_they_are_offered() -> None:
    assert STAGED_TOOLS.keys() == {tool.name for tool in tools_at(Stage.REVIEW)}


@pytest.mark.django_db
def test_the_chat_page_has_the_labels_of_every_tool(client: Client, alice: Owner) -> None:
    client.force_login(alice.user)
    html = client.get("/new/").content.decode()
    words = dict(re.findall(r'<p data-tool="([^"]+)" data-doing="([^"]+)"', html))
    assert words == {tool.name: tool.words.doing for tool in TOOLS.values()}
    assert 'data-detail="query" data-doing-detail="Looking in your memories for “{}”…"' in html


@pytest.mark.parametrize(
    ("page", "stages"), [("clients.md", [Stage.MCP]), ("reviews.md", [Stage.REVIEW]), ("memory.md", list(Stage))]
)
def test_the_docs_name_every_tool(page: str, stages: list[Stage]) -> None:
    text = (DOCS / page).read_text()
    assert [name for name in names(*stages) if f"`{name}`" not in text] == []
