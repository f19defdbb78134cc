"""Import readers: what each one reads from a real export file, and how formats are detected"""

import json
import zipfile
from datetime import UTC, datetime
from typing import Any

import pytest
from django.conf import settings as configured

from memories.database.batches import finish
from memories.errors import InvalidRequest, TooLarge
from memories.imports import files, json_members, reading
from memories.imports.contents import Conversation, ImportContents
from memories.imports.files import Upload
from memories.imports.formats import FORMATS, read_upload
from memories.models import Target
from tests.growth import cost_ratio
from tests.memories.import_samples import (
    CLAUDE_CONVERSATIONS,
    CLAUDE_MEMORIES,
    CLAUDE_PROJECTS,
    EXPORTS,
    LETTA,
    LETTA_AGENTS,
    LETTA_PASSAGES,
    MARKDOWN,
    MEM0,
    OPENWEBUI_CHATS,
    OPENWEBUI_MEMORIES,
    gpt_conversation,
    gpt_node,
    make_zip,
)


def read(data: Any, *, name: str = "", **options: Any) -> ImportContents:
    if not isinstance(data, bytes):
        data = (data if isinstance(data, str) else json.dumps(data)).encode()
    return finish(read_upload(Upload.of(data, name), book="main", **options))


def contents(found: ImportContents) -> list[str | None]:
    return [entry.fields.content for entry in found.entries]


def spoken(conversation: Conversation) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in conversation.messages]


BREAD = [("user", "How long does rye bread rise?"), ("assistant", "About four hours.")]


def test_chatgpt_conversations_are_read_along_the_branch_shown_last() -> None:
    found = read([gpt_conversation()])
    assert list(found.formats) == ["chatgpt"]
    (conversation,) = found.conversations
    assert (conversation.title, spoken(conversation)) == ("Bread", BREAD)
    assert conversation.began_at == datetime.fromtimestamp(1_714_600_000.25, UTC)
    assert conversation.messages[0].at == datetime.fromtimestamp(1_714_600_000.5, UTC)


def test_chatgpt_memories_are_those_the_model_saved_and_the_newest_list() -> None:
    older = gpt_conversation("c-0") | {"update_time": 1_700_000_000.0}
    older["mapping"]["m"]["message"]["content"]["model_set_context"] = "1. [2023-01-01]. Has one cat."
    assert contents(read([older, gpt_conversation()])) == [
        "User bakes rye bread on Sundays.",
        "User bakes rye bread on Sundays.",
        "Has two cats.",
        "Fasts.",
    ]


def test_blank_lines_before_chatgpt_memories_take_linear_time() -> None:
    def numbered(size: int) -> None:
        exported = gpt_conversation()
        exported["mapping"]["m"]["message"]["content"]["model_set_context"] = "\n" * size + "-\n1. Has one cat."
        assert contents(read([exported]))[-1] == "Has one cat."

    assert cost_ratio(numbered, 2_000) < 20


def test_requests_to_chatgpt_to_forget_are_not_imported() -> None:
    forget = gpt_node("f", "a", "assistant", "Forget that the user bakes.", recipient="bio")
    assert "Forget that the user bakes." not in contents(read([gpt_conversation("c", "Bread", forget)]))


def test_only_known_files_of_a_chatgpt_archive_are_read() -> None:
    data = make_zip(
        {
            "conversations-001.json": [gpt_conversation("c-2")],
            "conversations-000.json": [gpt_conversation()],
            "user.json": {"email": "a@example.org"},
            "chat.html": b"\xff\xfe",
            "__MACOSX/conversations.json": b"\xff",
        }
    )
    found = read(data)
    assert [conversation.place for conversation in found.conversations] == [
        "conversations-000.json, entry 1",
        "conversations-001.json, entry 1",
    ]


def test_chatgpts_list_of_memories_is_read_as_json_or_text() -> None:
    as_json = {"memory_max_tokens": 2000, "memories": [{"id": "1", "content": "Has two cats.", "updated_at": "2025"}]}
    assert contents(read(as_json)) == ["Has two cats."]
    assert contents(read("Has two cats.\nFasts.", format="chatgpt")) == ["Has two cats.", "Fasts."]


def test_a_single_chatgpt_conversation_with_a_broken_tree_is_read() -> None:
    conversation = gpt_conversation() | {"current_node": "gone"}
    conversation["mapping"]["root"]["parent"] = "a"  # a cycle
    (found,) = read(conversation).conversations
    assert spoken(found) == BREAD


def test_claude_conversations_are_read_without_thinking_and_tools() -> None:
    found = read(CLAUDE_CONVERSATIONS)
    (conversation,) = found.conversations
    assert (conversation.title, list(found.formats)) == ("Tide tables", ["claude"])
    assert spoken(conversation) == [("user", "When is high tide?"), ("assistant", "Let me look.\n\nAt nine.")]


def test_claude_memories_are_read_by_paragraph_with_heading_or_project() -> None:
    found = read(
        make_zip(
            {
                "conversations.json": CLAUDE_CONVERSATIONS,
                "memories.json": CLAUDE_MEMORIES,
                "projects.json": CLAUDE_PROJECTS,
                "users.json": [{"uuid": "acc", "full_name": "Alex"}],
            }
        )
    )
    assert [(entry.fields.content, entry.fields.category) for entry in found.entries] == [
        ("Project Camps: Summer camps for children.", "project"),
        ("Runs a sailing school in Kiel.", "Work context"),
        ("Has a daughter.", "Personal context"),
        ("Plans the summer camps.", "Camps"),
    ]
    assert (len(found.conversations), found.refused) == (1, [])


@pytest.mark.parametrize("data", [MEM0, MEM0["results"]])
def test_mem0_memories_keep_their_categories(data: Any) -> None:
    found = read(data)
    assert list(found.formats) == ["mem0"]
    nuts, cello = [entry.fields for entry in found.entries]
    assert (nuts.content, nuts.category, nuts.keywords) == ("Is allergic to nuts.", "food", ["allergies", "health"])
    assert (cello.content, cello.category) == ("Plays the cello.", "general")


def test_memories_deleted_in_openmemory_are_not_imported() -> None:
    data = {"memories": [{"id": "1", "content": "A.", "state": "active"}, {"content": "B.", "state": "deleted"}]}
    assert (contents(read(data)), list(read(data).formats)) == (["A."], ["mem0"])


def test_open_webui_memories_and_chats() -> None:
    assert contents(read(OPENWEBUI_MEMORIES)) == ["Prefers metric units."]
    found = read(OPENWEBUI_CHATS)
    (chat,) = found.conversations
    assert (chat.title, list(found.formats)) == ("Sourdough", ["openwebui"])
    assert spoken(chat) == [("user", "My starter died."), ("assistant", "Feed it twice a day.")]
    assert chat.messages[1].at == datetime.fromtimestamp(1_726_000_060, UTC)


def test_an_older_open_webui_chat_has_a_list_of_messages() -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": '<details type="reasoning">Hm'}]
    (chat,) = read([{"id": "1", "chat": {"title": "Old", "messages": messages}}]).conversations
    assert spoken(chat) == [("user", "Hi")]


def test_a_letta_agent_file_has_blocks_and_messages() -> None:
    found = read(LETTA)
    assert [(entry.fields.content, entry.fields.target, entry.fields.category) for entry in found.entries] == [
        ("Name: Alex", "user", "general"),
        ("Lives in Oslo.", "user", "general"),
        ("I am friendly.", "memory", "persona"),
    ]
    (conversation,) = found.conversations
    assert spoken(conversation) == [("user", "I moved to Oslo."), ("assistant", "How do you like it?")]


def test_an_older_letta_agent_file_has_one_agent_and_a_list_of_passages() -> None:
    (agent,) = LETTA_AGENTS
    old = {"agent_type": "memgpt_agent", "core_memory": LETTA["blocks"], "messages": agent["messages"], "name": "c"}
    found = read(old)
    assert (len(found.entries), len(found.conversations[0].messages)) == (3, 2)
    (passage,) = read(LETTA_PASSAGES).entries
    assert (passage.fields.content, passage.fields.target) == ("Worked as a nurse.", Target.MEMORY)


def test_markdown_is_read_by_bullet_and_paragraph_with_its_heading_as_category() -> None:
    found = read(MARKDOWN)
    assert [(e.place, e.fields.content, e.fields.category, e.fields.keywords) for e in found.entries] == [
        ("Line 3", "I live in Porto. It rains a lot.", "About me", []),
        ("Line 8", "Likes **olives**", "Food", ["About me"]),
        ("Line 9", "Is vegetarian, since 2019", "Food", ["About me"]),
        ("Line 13", "Cooks on Sundays", "Food", ["About me"]),
    ]


def test_text_is_read_by_line_or_by_paragraph_if_there_are_empty_lines() -> None:
    assert contents(read("Likes tea.\nLives in Graz.\n")) == ["Likes tea.", "Lives in Graz."]
    assert contents(read("Likes tea.\r\nGreen tea.\r\n\r\nLives in Graz.")) == [
        "Likes tea. Green tea.",
        "Lives in Graz.",
    ]
    assert contents(read("1. Likes tea.\n2) Rows.", format="text")) == ["Likes tea.", "Rows."]


def test_a_long_paragraph_is_split_between_sentences() -> None:
    sentence = "Walks to work every day, whatever the weather may be. "
    found = contents(read(sentence * 100, format="markdown"))
    assert len(found) > 1
    assert all(text is not None and len(text) <= configured.MAX_ENTRY for text in found)
    assert " ".join(str(text) for text in found) == (sentence * 100).strip()


def test_a_long_category_is_truncated_and_also_kept_as_a_keyword() -> None:
    (entry,) = read(f"# {'Long heading ' * 5}\n- Rows.").entries
    assert entry.fields.category == "Long heading Long heading Long heading L"
    assert entry.fields.keywords == ["Long heading " * 4 + "Long heading"]


@pytest.mark.parametrize("name", EXPORTS)
def test_a_format_is_detected_or_may_be_given(name: str) -> None:
    for export in EXPORTS[name]:
        detected, given = read(export), read(export, format=name)
        assert list(detected.formats) == list(given.formats) == [name]
        assert (contents(detected), detected.conversations) == (contents(given), given.conversations)


def test_a_files_name_may_determine_its_format() -> None:
    assert list(read("Keeps bees.", name="a.MD").formats) == ["markdown"]
    with pytest.raises(InvalidRequest, match="Line 1 is not valid JSON"):
        read("Keeps bees.", name="a.jsonl")
    assert contents(read('{"content": "Keeps bees."}\n{"type": "session"}')) == ["Keeps bees."]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff\xfe\x00", "not UTF-8"),
        (b'{"results": [', "cut off"),
        (b'[{"memory": "a"}] and so on {', "continues after its end"),
        (b"]", ""),
        (b'[{"unknown": 1}]', "JSON in an unknown format"),
        (b"[]", "JSON in an unknown format"),
        (b" null\n", "JSON in an unknown format"),
        (b"true", "JSON in an unknown format"),
        (b"PK\x03\x04 and nothing else", "damaged or cut off"),
        (make_zip({"notes.txt": b"x"}), "no known file"),
        (make_zip({"conversations.json": b"\xff"}), "conversations.json is not UTF-8"),
        (make_zip({"conversations.json": b"[{"}), "conversations.json is not valid JSON"),
        (make_zip({"conversations.json": [gpt_conversation()]})[:-40], "damaged or cut off"),
    ],
)
def test_an_unreadable_file_is_refused_with_an_explanation(data: bytes, words: str) -> None:
    if not words:
        assert contents(read(data)) == ["]"]
        return
    with pytest.raises(InvalidRequest, match=words):
        read(data)


def test_json_lines_below_a_broken_line_are_not_taken_for_text() -> None:
    with pytest.raises(InvalidRequest, match="Line 1 is not valid JSON"):
        read(b'WARNING: a line of the program that wrote it\n{"content": "User likes tea"}\n{"content": "Two"}\n')


def test_notes_may_quote_a_line_of_json() -> None:
    lines = ["Entries of our log:", '{"text": "an example"}', "They have no date."]
    assert contents(read("\n".join(lines))) == lines


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="format is one of auto, jsonl, chatgpt"):
        read("x", format="excel")


def test_a_broken_entry_is_refused_and_the_others_are_read() -> None:
    text = '{"results": [{"memory": "Rows."}, {"memory": nonsense}, {"memory": "Swims."}]}'
    found = read(text)
    assert contents(found) == ["Rows.", "Swims."]
    (refused,) = found.refused
    assert refused.place == "Results 2"
    assert "not valid JSON" in str(refused.error)


@pytest.mark.parametrize("first", ['""', "{}"])
def test_a_key_may_be_repeated_with_a_list(first: str) -> None:
    said = json.dumps(CLAUDE_CONVERSATIONS[0]["chat_messages"])
    text = f'{{"uuid": "1", "name": "Tides", "chat_messages": {first}, "chat_messages": {said}}}'
    (conversation,) = read(text, format="claude").conversations
    assert spoken(conversation) == spoken(read(CLAUDE_CONVERSATIONS).conversations[0])


def test_only_the_entry_with_deep_nesting_is_refused() -> None:
    found = read('[{"memory": "Rows."}, {"memory": ' + "[" * 5_000 + "]" * 5_000 + "}]", format="mem0")
    assert (contents(found), len(found.refused)) == (["Rows."], 1)


def test_an_archive_is_limited_in_ratio_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = make_zip({"conversations.json": b" " * 3_000_000})
    with pytest.raises(InvalidRequest, match="factor of more than 200"):
        read(bomb)
    monkeypatch.setattr(files, "IMPORT_FILE_BYTES", 1_000)
    for data in (bomb, make_zip({"memories.json": b" " * 2_000}), b" " * 2_000):
        with pytest.raises(TooLarge, match="Split it"):
            read(data)


def test_a_file_longer_than_its_header_says_is_refused() -> None:
    data = make_zip({"conversations.json": b"[" + b" " * 500_000 + b"]"})
    real, claimed = (500_002).to_bytes(4, "little"), (10).to_bytes(4, "little")
    with pytest.raises(InvalidRequest, match=r"conversations\.json cannot be unpacked"):
        read(data.replace(real, claimed))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_file_packed_by_a_method_whose_output_cannot_be_limited_is_not_unpacked(method: int) -> None:
    # One read of such a file unpacks everything that was read, whatever size its header names.
    data = make_zip({"conversations.json": [gpt_conversation()]}, method)
    with pytest.raises(InvalidRequest, match=r"conversations\.json is packed with another method than Deflate"):
        read(data)


def test_an_archive_with_too_many_files_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "IMPORT_DIRECTORY_BYTES", 5_000)
    with pytest.raises(TooLarge, match="too many files"):
        read(make_zip({f"picture-{number}.png": b"" for number in range(100)}))
    monkeypatch.setattr(files, "IMPORT_FILES", 3)
    with pytest.raises(TooLarge, match="more than 3 files"):
        read(make_zip({f"projects/{number}.json": {} for number in range(4)}))


def test_an_encrypted_file_is_refused() -> None:
    data = bytearray(make_zip({"conversations.json": [gpt_conversation()]}))
    for at in (data.find(b"PK\x03\x04") + 6, data.find(b"PK\x01\x02") + 8):
        data[at] |= 1
    with pytest.raises(InvalidRequest, match="damaged or encrypted"):
        read(bytes(data))


def test_too_many_entries_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_members, "MAX_MEMBERS", 3)
    with pytest.raises(InvalidRequest, match="more than 3 entries"):
        read([{"memory": "x"}] * 4)


def test_a_long_entry_is_left_out_and_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    long, short = gpt_conversation("c-1", title="Long" * 1_000), gpt_conversation("c-2")
    monkeypatch.setattr(reading, "IMPORT_ITEM_LENGTH", len(json.dumps(short)) + 1_000)
    found = read([long, short])
    assert [conversation.title for conversation in found.conversations] == ["Bread"]
    (refused,) = found.refused
    assert "Entry 1 has more than" in str(refused.error)


def test_a_conversations_key_is_stable() -> None:
    first, again = (
        read([gpt_conversation()]),
        read(make_zip({"conversations.json": [gpt_conversation(title="Renamed")]})),
    )
    assert first.conversations[0].key == again.conversations[0].key
    assert first.conversations[0].key != read([gpt_conversation("c-2")]).conversations[0].key


def test_every_format_has_a_label() -> None:
    assert all(format.label and name == format.name for name, format in FORMATS.items())
