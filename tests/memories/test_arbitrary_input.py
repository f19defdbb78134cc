"""Anything that a model, a file or a client sends is either read or refused with a documented error"""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memories.artifacts.paths import MEMORY_PATH, SUMMARY_PATH, clean_path, is_skill_name, resolve_uri, skill_path
from memories.books import book_state
from memories.database.batches import finish
from memories.entry_rules import clean_category, clean_content, clean_expiry, clean_keywords
from memories.errors import InvalidRequest, TooLarge
from memories.imports.contents import Entry
from memories.imports.files import Upload
from memories.imports.formats import read_upload
from memories.json_input import read_json
from memories.models import Owner
from memories.pagination import parse_number
from memories.services import book_get_or_create
from memories.tools import TOOLS, ToolCall, ToolScope, parse_arguments, run_calls
from memories.tools.tool import Arguments
from tests.properties import BOUNDED, odd_json, odd_object, odd_text

pytestmark = pytest.mark.any_database

json_pieces = st.lists(
    st.sampled_from(
        ["{", "}", "[", "]", ",", ":", '"', "\\", "\\ud83d", "\\u0000", "1", "-", "e9", ".", "NaN", "true", " "]
    ),
    max_size=12,
).map("".join)  # fmt: skip


def check_storable(value: Any) -> None:
    """Check that the value can be stored in any database and sent as JSON."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    text.encode()
    assert "\\u0000" not in text


@BOUNDED
@given(st.binary(max_size=60) | json_pieces | odd_json.map(json.dumps), st.booleans())
@example('"\\ud83d\\ude00"', False)
@example("1" * 101, True)
@example(b"\xef\xbb\xbf{}", True)
def test_json_is_either_storable_or_refused(raw: bytes | str, repair: bool) -> None:
    with suppress(InvalidRequest):
        value = read_json(raw, repair=repair)
        check_storable(value)
        assert read_json(json.dumps(value)) == value


imported = odd_object(
    type=st.just("memory"),
    id=st.integers() | odd_text,
    content=odd_text,
    memory=odd_text,
    book=odd_text,
    target=st.sampled_from(["user", "memory"]),
    category=odd_text,
    keywords=st.lists(odd_text, max_size=3),
    pinned=st.booleans(),
    expires_at=st.datetimes().map(str) | st.sampled_from(["2027-02-30T00:00:00Z", "0001-01-01T00:00:00+23:59"]),
    deleted_at=st.none(),
)


@BOUNDED
@given(st.lists(imported.map(json.dumps) | odd_text | json_pieces, max_size=3).map("\n".join))
@example('{"content": "a", "expires_at": "0001-01-01T00:00:00+23:59"}')
@example('{"content": "a", "expires_at": "9999-12-31T23:59:59-23:59"}')
@example('{"content": "a", "expires_at": [1]}')
def test_the_lines_of_an_import_are_either_memories_or_refused(text: str) -> None:
    try:
        upload = Upload.of(text.encode(errors="surrogatepass"))
        lines = finish(read_upload(upload, format="jsonl", book="main")).entries
    except (InvalidRequest, TooLarge):
        return
    assert len(lines) <= text.count("\n") + 1
    for line in lines:
        check_fields(line)


def check_fields(line: Entry) -> None:
    """Check that the cleaned fields of a line can be stored, unless the line is refused."""
    fields = line.fields
    try:
        stored = [
            clean_content(fields.content or ""),
            clean_category(fields.category or ""),
            clean_keywords(fields.keywords or ()),
            str(clean_expiry(fields.expires_at)),
        ]
    except (InvalidRequest, TooLarge):
        return
    check_storable(stored)


odd_uris = odd_text | st.lists(
    st.sampled_from(
        ["memory://root", "/", "MEMORY.md", SUMMARY_PATH, "skills", "SKILL.md", "..", "a", "%2e", "?", "#", "\n", "é"]
    ),
    max_size=6,
).map("".join)


@BOUNDED
@given(odd_uris)
@example("memory://root/skills/a/SKILL.md\n")
@example("memory://root/MEMORY.md\n")
def test_a_uri_is_either_the_path_of_a_document_or_refused(address: str) -> None:
    for read in (resolve_uri, clean_path):
        try:
            path = read(address)
        except InvalidRequest:
            continue
        named = path.removeprefix("skills/").removesuffix("/SKILL.md")
        assert path in {MEMORY_PATH, SUMMARY_PATH} or (is_skill_name(named) and path == skill_path(named))


@BOUNDED
@given(odd_text)
def test_an_id_is_either_a_number_that_a_database_can_store_or_none(text: str) -> None:
    found = parse_number(text)
    assert found is None or 0 <= found < 2**63


arguments = odd_object(
    content=odd_text,
    target=st.sampled_from(["user", "memory"]),
    category=odd_text,
    keywords=st.lists(odd_text, max_size=3),
    id=st.integers() | odd_text,
    memory_id=st.integers() | odd_text,
    query=odd_text,
    limit=st.integers(),
    path=odd_uris,
)
tools = st.sampled_from([*TOOLS, "nobody"])


@BOUNDED
@given(tools, odd_text | json_pieces | (arguments | odd_json).map(json.dumps))
def test_tool_arguments_are_either_valid_or_explained(name: str, text: str) -> None:
    if name not in TOOLS:
        return
    parsed = parse_arguments(TOOLS[name], ToolCall(id="a", name=name, arguments=text))
    if isinstance(parsed, dict):
        assert parsed["error"] == "invalid_arguments"
        assert len(json.dumps(parsed)) < 2000
    else:
        assert isinstance(parsed, Arguments)


@pytest.mark.django_db
@BOUNDED
@given(calls=st.lists(st.tuples(tools, odd_text | json_pieces | arguments.map(json.dumps)), max_size=2))
def test_every_tool_call_has_a_result_that_can_be_sent(alice: Owner, calls: list[tuple[str, str]]) -> None:
    book_get_or_create(alice.pk, "main")
    scope = ToolScope(book=book_state(alice.pk, "main"), search="ranked", session_id=None, run_id=None, actor="model")
    made = [ToolCall(id=str(at), name=name, arguments=text) for at, (name, text) in enumerate(calls)]
    step = run_calls(made, scope)
    assert step.results.keys() == {call.id for call in made}
    for text in step.results.values():
        text.encode()
        assert isinstance(json.loads(text)["ok"], bool)
        assert len(text) < 100_000
