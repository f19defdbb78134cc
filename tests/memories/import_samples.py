"""Invented exports in each system's format."""

import io
import json
import zipfile
from typing import Any

from memories.models import Memory


def make_zip(files: dict[str, Any], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip archive of the files, given by name; values other than bytes are written as JSON."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            archive.writestr(name, data)
    return out.getvalue()


def edited_line(memory: Memory, content: str, **fields: Any) -> str:
    """Return the line of an export with another text."""
    return json.dumps(
        {"id": str(memory.number), "created_at": memory.created_at.isoformat(), "content": content, **fields}
    )


def gpt_node(id: str, parent: str | None, role: str, words: str, **fields: Any) -> dict[str, Any]:
    """Return a node of ChatGPT's tree. `fields` replace fields of the message."""
    message = {
        "id": id,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": 1_714_600_000.5,
        "content": {"content_type": "text", "parts": [words]},
        "status": "finished_successfully",
        "metadata": {},
        "recipient": "all",
    }
    return {"id": id, "message": {**message, **fields}, "parent": parent, "children": []}


def gpt_conversation(id: str = "c-1", title: str = "Bread", *nodes: dict[str, Any]) -> dict[str, Any]:
    """Return a conversation with a regenerated answer, a tool call, and hidden context messages."""
    bio = {"recipient": "bio", "content": {"content_type": "text", "parts": ["User bakes rye bread on Sundays."]}}
    context = {
        "content_type": "model_editable_context",
        "model_set_context": "1. [2024-05-01]. Has two cats.\n\n2. Fasts.",
    }
    hidden = {"metadata": {"is_visually_hidden_from_conversation": True}}
    tree = [
        {"id": "root", "message": None, "parent": None, "children": ["s"]},
        gpt_node("s", "root", "system", "You are ChatGPT.", **hidden),
        gpt_node("m", "s", "assistant", "", content=context),
        gpt_node("u", "m", "user", "How long does rye bread rise?"),
        gpt_node("old", "u", "assistant", "An hour, I think."),
        gpt_node("b", "u", "assistant", "", **bio),
        gpt_node("t", "b", "tool", "Model set context updated."),
        gpt_node("r", "t", "assistant", "", content={"content_type": "thoughts", "thoughts": [{"content": "Hm."}]}),
        gpt_node("a", "r", "assistant", "About four hours."),
        *nodes,
    ]
    return {
        "title": title,
        "create_time": 1_714_600_000.25,
        "update_time": 1_714_600_100.0,
        "mapping": {node["id"]: node for node in tree},
        "moderation_results": [],
        "current_node": tree[-1]["id"],
        "conversation_id": id,
        "id": id,
    }


CLAUDE_CONVERSATIONS = [
    {
        "uuid": "0b1c",
        "name": "Tide tables",
        "summary": "",
        "created_at": "2025-03-01T08:00:00.000000Z",
        "updated_at": "2025-03-01T08:05:00.000000Z",
        "account": {"uuid": "acc"},
        "chat_messages": [
            {
                "uuid": "m1",
                "text": "When is high tide?",
                "content": [{"type": "text", "text": "When is high tide?"}],
                "sender": "human",
                "created_at": "2025-03-01T08:00:00.000000Z",
                "attachments": [],
                "files": [],
            },
            {
                "uuid": "m2",
                "text": "Let me look.\n\nAt nine.",
                "content": [
                    {"type": "thinking", "thinking": "A table would help."},
                    {"type": "text", "text": "Let me look."},
                    {"type": "tool_use", "name": "web_search", "input": {"query": "tide"}},
                    {"type": "tool_result", "content": [{"type": "text", "text": "09:02"}]},
                    {"type": "text", "text": "At nine."},
                ],
                "sender": "assistant",
                "created_at": "2025-03-01T08:05:00.000000Z",
            },
        ],
    },
    {"uuid": "0b1d", "name": "", "created_at": "2025-03-02T08:00:00Z", "chat_messages": []},
]
CLAUDE_MEMORIES = [
    {
        "conversations_memory": "**Work context**\n\nRuns a sailing school in Kiel.\n\n"
        "**Personal context**\n\nHas a daughter.",
        "project_memories": {"p-1": "Plans the summer camps."},
        "account_uuid": "acc",
    }
]
CLAUDE_PROJECTS = [
    {
        "uuid": "p-1",
        "name": "Camps",
        "description": "Summer camps for children.",
        "is_starter_project": False,
        "prompt_template": "Always answer in rhymes.",
        "docs": [{"uuid": "d", "filename": "plan.md", "content": "Week 1"}],
    },
    {"uuid": "p-2", "name": "How to use it", "description": "An example.", "is_starter_project": True,
     "prompt_template": "", "docs": []},
]  # fmt: skip
MEM0 = {
    "results": [
        {
            "id": "892db2ae",
            "memory": "Is allergic to nuts.",
            "hash": "1f",
            "metadata": {"category": "health"},
            "categories": ["food", "allergies"],
            "created_at": "2024-07-20T01:30:36.275141-07:00",
            "updated_at": None,
            "user_id": "alex",
        },
        {"id": "892db2af", "memory": "Plays the cello.", "hash": "2f", "metadata": None, "user_id": "alex"},
    ]
}
OPENWEBUI_MEMORIES = [
    {"id": "m-1", "user_id": "u", "content": "Prefers metric units.",
     "updated_at": 1_726_000_000, "created_at": 1_726_000_000}
]  # fmt: skip
OPENWEBUI_CHATS = [
    {
        "id": "chat-1",
        "user_id": "u",
        "title": "Sourdough",
        "chat": {
            "id": "",
            "title": "Sourdough",
            "models": ["llama3"],
            "history": {
                "messages": {
                    "u1": {"id": "u1", "parentId": None, "childrenIds": ["a1", "a2"], "role": "user",
                           "content": "My starter died.", "timestamp": 1_726_000_000},
                    "a1": {"id": "a1", "parentId": "u1", "childrenIds": [], "role": "assistant", "content": "Sorry."},
                    "a2": {
                        "id": "a2", "parentId": "u1", "childrenIds": [], "role": "assistant",
                        "content": '<details type="reasoning" done="true" duration="2">\n<summary>Thought</summary>\n'
                        "> Hm.\n</details>\nFeed it twice a day.",
                        "timestamp": 1_726_000_060,
                    },
                },
                "currentId": "a2",
            },
            "messages": [],
            "timestamp": 1_726_000_000_000,
        },
        "updated_at": 1_726_000_060,
        "created_at": 1_726_000_000,
        "share_id": None,
        "archived": False,
    }
]  # fmt: skip
LETTA_AGENTS: list[dict[str, Any]] = [
    {
        "id": "agent-0",
        "name": "companion",
        "system": "You are Letta.",
        "block_ids": ["block-0", "block-1"],
        "messages": [
            {"id": "message-0", "role": "system", "content": [{"type": "text", "text": "You are Letta."}]},
            {
                "id": "message-1",
                "role": "user",
                "content": [{"type": "text", "text": '{"type": "login", "last_login": "never"}'}],
                "created_at": "2025-06-01T10:00:00+00:00",
            },
            {
                "id": "message-2",
                "role": "user",
                "content": [
                    {
                        "type": "text",
                        "text": '{"type": "user_message", "message": "I moved to Oslo.", "time": "now"}',
                    }
                ],
                "created_at": "2025-06-01T10:01:00+00:00",
            },
            {
                "id": "message-3",
                "role": "assistant",
                "content": [{"type": "text", "text": "They moved. I should be glad for them."}],
                "tool_calls": [
                    {
                        "id": "call",
                        "type": "function",
                        "function": {"name": "send_message", "arguments": '{"message": "How do you like it?"}'},
                    }
                ],
                "created_at": "2025-06-01T10:01:05+00:00",
            },
            {"id": "message-4", "role": "tool", "content": [{"type": "text", "text": '{"status": "OK"}'}]},
        ],
    }
]
LETTA = {
    "agents": LETTA_AGENTS,
    "groups": [],
    "blocks": [
        {"id": "block-0", "label": "human", "value": "Name: Alex\n\nLives in Oslo.", "limit": 5000},
        {"id": "block-1", "label": "persona", "value": "I am friendly.", "limit": 5000},
    ],
    "files": [],
    "sources": [],
    "tools": [],
    "mcp_servers": [],
    "metadata": {"revision_id": "abc"},
}
LETTA_PASSAGES = [{"id": "passage-1", "text": "Worked as a nurse.", "embedding": [0.1, 0.2], "archive_id": "archive-1"}]
MARKDOWN = """\
# About me

I live in Porto.
It rains a lot.

## Food

- Likes **olives**
- [x] Is vegetarian,
  since 2019

---
1. Cooks on Sundays
"""
EXPORTS: dict[str, list[Any]] = {
    "chatgpt": [[gpt_conversation()]],
    "claude": [CLAUDE_CONVERSATIONS, CLAUDE_MEMORIES, CLAUDE_PROJECTS],
    "mem0": [MEM0],
    "openwebui": [OPENWEBUI_MEMORIES, OPENWEBUI_CHATS],
    "letta": [LETTA, LETTA_PASSAGES],
}
"""Exports by format."""
