"""Reading of large JSON in parts: the same values and refusals as in one call"""

import json
from typing import Any

import pytest

from memories import json_input
from memories.errors import InvalidRequest
from memories.json_input import read_json

VALUES = [
    {"messages": [{"role": "user", "content": "grüße \U0001f600 \n"}, 1.5, None, [], {}], "a": {"b": [1]}, "c": "d"},
    {"messages": [], "a": {}},
    {},
    [],
    [[1, [2]], {"a": []}],
    "text",
    -17,
    None,
]
BROKEN = [
    "",
    "{",
    "[",
    "[1",
    "[1,",
    "[1,]",
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,}',
    '{"a":[1}',
    "[1]]",
    "{} x",
    '["\n"]',
]


@pytest.fixture
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_input, "_SLICE", 1)
    monkeypatch.setattr(json_input, "_MIN_CHARACTERS_PER_MARK", 0)
    monkeypatch.setattr(json_input, "_MANY", 0)


@pytest.mark.usefixtures("_small_parts")
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_a_value_read_in_parts_is_the_same(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert read_json(f" {text}\n".encode()) == value


@pytest.mark.usefixtures("_small_parts")
@pytest.mark.parametrize("text", BROKEN)
def test_what_is_not_json_is_refused_in_parts_too(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is not valid JSON"):
        read_json(text)


@pytest.mark.usefixtures("_small_parts")
def test_a_long_number_is_found_wherever_a_part_ends() -> None:
    for places in range(100):
        with pytest.raises(InvalidRequest, match="a number of more than"):
            read_json(f"{' ' * places}[{'1' * 101}]")
    assert read_json(f"[{'1' * 100}]") == [int("1" * 100)]


def test_no_call_parses_much_of_a_long_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call of the json module holds the interpreter lock."""
    sizes: list[int] = []

    class Recording(json_input._InParts):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            scan = self._scan

            def measured(text: str, start: int) -> Any:
                value, end = scan(text, start)
                sizes.append(end - start)
                return value, end

            self._scan = measured

    monkeypatch.setattr(json_input, "_InParts", Recording)
    body = {"model": "m", "messages": [{"role": "user", "content": "One more word. " * 70}] * 1_000}
    assert read_json(json.dumps(body)) == body
    assert len(sizes) > 1_000
    assert max(sizes) < 2_000
