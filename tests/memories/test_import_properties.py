"""Import readers accept any file: each entry is either read or refused, and no other error is raised"""

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memories.database.batches import finish
from memories.errors import InvalidRequest, TooLarge
from memories.imports import json_members
from memories.imports.contents import ImportContents
from memories.imports.files import Upload
from memories.imports.formats import AUTO, FORMATS, read_upload
from memories.imports.json_members import members_of
from memories.services import fields_cleaned
from tests.memories.import_samples import CLAUDE_MEMORIES, EXPORTS, MARKDOWN, make_zip
from tests.properties import BOUNDED, odd_json, odd_text

SAMPLES = [export for exports in EXPORTS.values() for export in exports]
formats = st.sampled_from([AUTO, *FORMATS])


def paths_in(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value within a JSON value."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path] + [inner for key, value in items for inner in paths_in(value, (*path, key))]


def replace_at(data: Any, path: tuple[Any, ...], other: Any) -> Any:
    """Return a copy of a JSON value in which the value at `path` is replaced."""
    if not path:
        return other
    first, *rest = path
    changed = dict(data) if isinstance(data, dict) else list(data)
    changed[first] = replace_at(data[first], tuple(rest), other)
    return changed


@st.composite
def damaged_export(draw: st.DrawFn) -> str:
    """Draw an export in which one to three values are replaced by arbitrary ones."""
    data = draw(st.sampled_from(SAMPLES))
    for _ in range(draw(st.integers(1, 3))):
        data = replace_at(data, draw(st.sampled_from(paths_in(data))), draw(odd_json))
    return json.dumps(data)


def read_checked(data: bytes, format: str) -> ImportContents:
    """Return what was read, or nothing if the file was refused. Check that it can be stored."""
    try:
        found = finish(read_upload(Upload.of(data), format=format, book="main"))
    except (InvalidRequest, TooLarge):
        return ImportContents(book="main")
    for entry in found.entries:
        assert entry.place
        try:
            fields_cleaned(entry.fields)
        except (InvalidRequest, TooLarge):
            continue
    for conversation in found.conversations:
        assert conversation.messages
        assert len(conversation.key) == 32
        for message in conversation.messages:
            assert message.role in {"user", "assistant"}
            assert message.text.encode()  # can be stored
            assert "\x00" not in message.text
            assert message.at is None or message.at.year >= 1990
        assert conversation.title.encode() is not None
    lines = [entry.line for entry in found.entries] + [row.line for row in found.refused]
    assert all(line > 0 for line in lines)
    assert found.formats.keys() <= (FORMATS.keys() if format == AUTO else {format})
    return found


def size(found: ImportContents) -> int:
    """Return the number of characters in memories and messages."""
    texts = [entry.fields.content or "" for entry in found.entries]
    texts += [message.text for conversation in found.conversations for message in conversation.messages]
    return sum(map(len, texts))


@BOUNDED
@given(damaged_export(), formats)
def test_an_export_with_unexpected_values(text: str, format: str) -> None:
    assert size(read_checked(text.encode(errors="surrogatepass"), format)) <= len(text)


@BOUNDED
@given(st.sampled_from(SAMPLES).map(json.dumps), st.integers(0, 4_000), st.text('[]{}",:\\ax', max_size=4), formats)
def test_a_truncated_or_damaged_export(text: str, at: int, scratch: str, format: str) -> None:
    for broken in (text[:at] + scratch, text[:at] + scratch + text[at + 1 :]):
        assert size(read_checked(broken.encode(), format)) <= len(broken)


@BOUNDED
@given(st.lists(odd_text | st.sampled_from(MARKDOWN.splitlines()), max_size=8).map("\n".join), formats)
@example("**" * 50 + "\n- \n#\n1.\n---", "markdown")
def test_any_text(text: str, format: str) -> None:
    assert size(read_checked(text.encode(errors="surrogatepass"), format)) <= len(text)


@BOUNDED
@given(st.binary(max_size=200), st.integers(0, 2_000), formats)
def test_any_bytes_and_a_damaged_archive(data: bytes, at: int, format: str) -> None:
    assert size(read_checked(data, format)) <= len(data)
    archive = make_zip({"conversations.json": SAMPLES[0], "memories.json": CLAUDE_MEMORIES})
    whole = size(read_checked(archive, format))
    assert size(read_checked(archive[:at] + data + archive[at + len(data) :], format)) <= whole
    assert size(read_checked(archive[:at] + data, format)) <= whole


@BOUNDED
@given(st.lists(odd_json.filter(lambda value: isinstance(value, str | dict | list)), max_size=5))
def test_the_members_of_a_list_are_its_elements(values: list[Any]) -> None:
    text = json.dumps(values, allow_nan=False) if _is_json(values) else "[]"
    members = finish(members_of(text, "The file"))
    found = [json.loads(text[member.start : member.end]) for member in members]
    assert found == (values if _is_json(values) else [])


@BOUNDED
@given(
    st.dictionaries(st.text("abc", min_size=1), st.lists(st.text()) | st.text() | st.dictionaries(st.text(), st.text()))
)
def test_the_members_of_an_object_are_its_values_and_the_items_of_its_lists(data: dict[str, Any]) -> None:
    text = json.dumps(data)
    members = finish(members_of(text, "The file"))
    found = [(member.key, json.loads(text[member.start : member.end])) for member in members]
    expected = [(key, item) for key, value in data.items() for item in (value if isinstance(value, list) else [value])]
    assert found == expected


@pytest.mark.parametrize(
    "text",
    [
        '["' + '\\"' * 500_000,
        "[" * 500_000,
        '{"a": "' + "\\" * 500_001,
        "[" + '"a",' * 40_000,
        '["' + "<details " * 100_000,
    ],
    ids=["quotes", "brackets", "backslashes", "strings", "words"],
)
def test_hostile_texts_are_scanned_once(text: str) -> None:
    with pytest.raises(InvalidRequest):
        finish(members_of(text, "The file"))


@pytest.mark.parametrize("escape", ["\\n", '\\"', "\\\\", "\\ud83d\\ude00"])
def test_a_long_string_is_scanned_in_slices_without_more_memory(escape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_members, "SLICE_SECONDS", -1)  # always over
    text = f'[{{"words": "{escape * 300_000}"}}, "{escape * 300_000}"]'
    tracemalloc.start()
    try:
        slices = members_of(text, "The file")
        count = sum(1 for _ in slices)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count > 50
    assert peak < 5_000_000  # a pattern that backtracks keeps 100 bytes for each escape


@pytest.mark.parametrize("text", ["water " * 1_000, ("water " * 200 + "\n") * 5], ids=["a line", "paragraphs"])
@pytest.mark.parametrize("over", [True, False])
def test_a_scan_yields_when_a_slice_is_over_and_not_before(
    text: str, over: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_members, "SLICE_SECONDS", -1 if over else 1_000)
    count = sum(1 for _ in members_of(json.dumps([text] * 400), "The file"))
    assert count > 5 if over else count == 0


def _is_json(values: list[Any]) -> bool:
    try:
        json.dumps(values, allow_nan=False)
    except ValueError:
        return False
    return True
