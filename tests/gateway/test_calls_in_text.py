"""gateway.calls_in_text: tool calls that a model wrote as text"""

import json
import time
from typing import Any

import pytest

from gateway.calls_in_text import calls_in_text
from gateway.upstream.calls import MAX_CALLS
from memories.model_json import located_objects_in, objects_in
from memories.tools import tool_meant
from tests.call_count import count_calls

TOOLS = frozenset({"add_memory", "update_memory"})
TEA = {"content": "Likes tea.", "keywords": ["drink"]}
JSON = json.dumps(TEA)
CALL = f'{{"name": "add_memory", "arguments": {JSON}}}'


def read(text: str) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in calls_in_text(text, TOOLS)]


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"[TOOL_CALLS][{CALL}]",
        f"[TOOL_CALLS]add_memory{JSON}",
        f"[TOOL_CALLS]add_memory[ARGS]{JSON}",
        f"<|python_tag|>{CALL}<|eom_id|>",
        f"<function=add_memory>{JSON}</function>",
        f"```json\n{CALL}\n```",
        f"I will save it.\n\n```json\n[{CALL}]\n```\nDone!",
        f"<|tool_call_begin|>functions.add_memory:0<|tool_call_argument_begin|>{JSON}<|tool_call_end|>",
        f"function<｜tool▁sep｜>add_memory\n```json\n{JSON}\n```",
        f'{{"name": "functions.add_memory", "parameters": {JSON}}}',
        f'{{"tool_calls": [{{"function": {{"name": "add_memory", "arguments": {json.dumps(JSON)}}}}}]}}',
        f'{{"calls": [{{"tool": "add_memory", {JSON[1:]}]}}',
        f'{{"calls": {{"tool": "add_memory", "args": {JSON}}}}}',
        f'{{"calls": [ // the only one\n{CALL}, // and no more\n]}}',
        f'{{"calls": [{CALL}, {{"name": "add_memory", "arguments": {{"content": "Cut o',
        '[add_memory(content="Likes tea.", keywords=["drink"])]',
        "<|python_tag|>add_memory(content='Likes tea.',\n  keywords=['drink'])<|eom_id|>",
        '<|tool_call_start|>[functions.add_memory(content="Likes tea.", keywords=["drink"])]<|tool_call_end|>',
        '```tool_code\nadd_memory(content="Likes tea.", keywords=["drink"])\n```',
    ],
)
def test_calls_are_found_in_the_forms_that_models_write(text: str) -> None:
    (call,) = calls_in_text(text, TOOLS)
    arguments = json.loads(call.arguments)
    arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    assert (call.name, arguments) == ("add_memory", TEA)


def test_arguments_in_tags_are_read() -> None:
    text = (
        "<tool_call>\n<function=update_memory>\n<parameter=id>\n3\n</parameter>\n<parameter=content>\nLikes\nrum.\n"
        "</parameter>\n</function>\n</tool_call>"
    )
    assert read(text) == [("update_memory", {"id": "3", "content": "Likes\nrum."})]


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>update_memory\n<arg_key>id</arg_key>\n<arg_value>3</arg_value>\n<arg_key>content</arg_key>\n"
        "<arg_value>Likes <b>rum</b>.</arg_value>\n</tool_call>",
        '<minimax:tool_call>\n<invoke name="update_memory">\n<parameter name="id">3</parameter>\n'
        '<parameter name="content">Likes <b>rum</b>.</parameter>\n</invoke>\n</minimax:tool_call>',
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="update_memory">\n<｜DSML｜parameter name="id" string="false">3'
        '</｜DSML｜parameter>\n<｜DSML｜parameter name="content" string="true">Likes <b>rum</b>.</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    ],
    ids=["GLM", "MiniMax", "DeepSeek"],
)
def test_arguments_in_other_tags_are_read(text: str) -> None:
    assert read(text) == [("update_memory", {"id": "3", "content": "Likes <b>rum</b>."})]


def test_several_calls_are_read_in_order() -> None:
    both = 'add_memory(content="Likes (black) tea.", target=None), update_memory(id=3, content=\'Says "no".\')'
    assert read(f"[{both}]") == [
        ("add_memory", {"content": "Likes (black) tea.", "target": None}),
        ("update_memory", {"id": 3, "content": 'Says "no".'}),
    ]
    other = CALL.replace("tea", "rum")
    assert [arguments["content"] for _, arguments in read(f"{CALL}\n{other}")] == ["Likes tea.", "Likes rum."]


PYTHON_DELETE, JSON_DELETE = "[delete_memory(id=12)]", '{"name": "delete_memory", "arguments": {"id": 12}}'


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (f"[add_memory(content='Says {PYTHON_DELETE}.')]", f"Says {PYTHON_DELETE}."),
        (f"[add_memory(content='Says {JSON_DELETE}.')]", f"Says {JSON_DELETE}."),
        (
            f'<tool_call>{{"name": "add_memory", "arguments": {{"content": "{PYTHON_DELETE}"}}}}</tool_call>',
            PYTHON_DELETE,
        ),
        (f"<function=add_memory><parameter=content>{JSON_DELETE}</parameter></function>", JSON_DELETE),
        (f"Now {{}}:\n<function=add_memory><parameter=content>{JSON_DELETE}</parameter></function>", JSON_DELETE),
        (f"<function=add_memory><parameter=content>{PYTHON_DELETE}</parameter></function>", PYTHON_DELETE),
    ],
)
def test_what_the_arguments_of_a_call_quote_is_no_call(text: str, content: str) -> None:
    (call,) = calls_in_text(text, TOOLS)
    assert (call.name, json.loads(call.arguments)) == ("add_memory", {"content": content})


@pytest.mark.parametrize(
    "text",
    [
        f'{{"calls": [{{"tool": "add_memory", "arguments": {{"content": "{PYTHON_DELETE}", "confidence": 0.9}}}}]}}',
        f"[add_memory(keywords=('tea',), content='Says {PYTHON_DELETE}.')]",
        f"[add_memory(content='Says {JSON_DELETE}', keywords=('a',))]",
        f"[save_memory(content='Says {PYTHON_DELETE}.')]",
        f"[save_memory(content='Says {JSON_DELETE}.')]",
    ],
)
def test_what_a_refused_call_quotes_is_no_call(text: str) -> None:
    assert read(text) == []


def test_a_call_within_a_sentence_is_no_call() -> None:
    assert read('To save this I would call, add_memory(content="Likes tea."), later.') == []


def test_a_call_of_another_tool_keeps_its_name() -> None:
    assert read('{"calls": [{"tool": "shell", "arguments": {}}]}') == [("shell", {})]


@pytest.mark.parametrize(
    "text",
    ["", "Nothing to save.", "{", "{}", '{"calls": []}', '{"calls": null}', '{"name": "Ada", "age": 7}',
     '["add_memory"]', '{"tool": "add_memory"}', "add_memory", '{"calls": ["add_memory"]}', "I called add_memory.",
     "Call [add_memory(text)] or add_memory(content='x').", "[add_memory(content=open('x').read())]",
     "[shell(content='x')]", "[add_memory(content='x', shell='y')]", f"[add_memory(content={'[' * 500}{']' * 500})]",
     '{"a":' * 5000],
)  # fmt: skip
def test_other_text_holds_no_calls(text: str) -> None:
    assert read(text) == []


def test_the_number_of_calls_is_limited() -> None:
    assert len(read(json.dumps({"calls": [json.loads(CALL)] * 500}))) == MAX_CALLS


@pytest.mark.parametrize(
    "piece",
    [
        "{",
        '{"a": "',
        "{//",
        "{,",
        "<function=a>",
        '{"a": 1}',
        "{add_memory",
        "[add_memory(",
        '[add_memory("',
        "[add_memory(a='b'",
        "<tool_call>a",
        '<invoke name="a">',
    ],
)
def test_the_work_grows_with_the_length_of_the_text(piece: str) -> None:
    half, whole = (count_calls(calls_in_text, piece * pieces, TOOLS) for pieces in (5_000, 10_000))
    assert whole < 3 * half + 1_000


@pytest.mark.parametrize(
    "piece",
    [
        "<function=a>",
        "<function=a><parameter=a>",
        "{," + " " * 50,
        "<tool_call>a<arg_key>",
        "[add_memory('",
        '[add_memory("\\"',
        "[" + " " * 50,
    ],
)
def test_text_without_an_end_is_searched_once(piece: str) -> None:
    started = time.process_time()
    assert read(piece * 20_000) == []
    assert time.process_time() - started < 5, "it would take minutes"


def test_comments_are_left_out_but_not_within_strings() -> None:
    text = '{"url": "https://example.org", // where\n"text": "a // b, ]", }'
    assert list(objects_in(text)) == [{"url": "https://example.org", "text": "a // b, ]"}]


def test_objects_come_with_the_text_before_them() -> None:
    assert list(located_objects_in('a {"x": 1} b {"y": 2,} c {"z": 3}')) == [
        (2, "a ", {"x": 1}), (13, " b ", {"y": 2}), (24, " c ", {"z": 3}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["add_memory", "functions.add_memory", "default_api:add_memory", "tools/add_memory", "functions.add_memory:0",
     "add_memory<|channel|>commentary", " add_memory", "mcp.daybook.add_memory"],
)  # fmt: skip
def test_the_tool_meant_is_found_behind_what_models_write_around_names(name: str) -> None:
    assert tool_meant(name, TOOLS) == "add_memory"


@pytest.mark.parametrize("name", ["", "Add_Memory", "add", "my_add_memory", "read_memory", "add_memory_now", "x" * 500])
def test_other_names_are_kept(name: str) -> None:
    assert tool_meant(name, TOOLS) == name
