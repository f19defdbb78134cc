"""Tasks that chat clients send for themselves: a title for the chat, tags, follow-up questions, search queries. They
are not turns of a conversation; gateway.passthrough answers them without session, memory or counting. Known by the
clients' own prompts, as they were in November 2026; a person who asks for a title in their own words is not meant."""

import re
from collections.abc import Sequence
from typing import Any

from gateway.runs.fingerprint import text_of

# Prompts are long only because they hold the conversation; what tells them stands at their beginning.
_HEAD = 2000
_TASK_KEYS = ("task", "task_name", "request_type")
_TASKS = re.compile(
    r"(?:^|_)(?:titles?|tags?|follow_?ups?|emoji|queries|query|autocomplete|moa|image_prompt)(?:_|$)", re.IGNORECASE
)
_USER_PROMPTS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        # Open WebUI: title, tags, follow-ups, search queries, image prompts, completion while typing.
        r"^\s*### Task:\s.{0,1900}?(?:### (?:Guidelines|Output|Instructions|Chat History)\b|<chat_history>|<type>)",
        # Open WebUI: emoji for a spoken answer, and the merging of several models' answers.
        r"^\s*Your task is to reflect the speaker's likely facial expression through a fitting emoji",
        r"^\s*You have been provided with a set of responses from various models to the latest user query:",
        # LibreChat.
        r"^\s*(?:Provide|Please generate) a concise, 5-word-or-less title for the conversation",
        r"^\s*Analyze this conversation and provide:\s*1\. The detected language",
        # NextChat.
        r"^\s*Please generate a four to five word title summarizing our conversation",
        r"^\s*Summarize the discussion briefly in 200 words or less to use as a prompt for future context",
        # Chatbox.
        r"^\s*Based on the chat history, give this conversation a name\b",
    )
)
# These prompts come as a system message, with the conversation in one user message.
_SYSTEM_PROMPTS = (
    *_USER_PROMPTS,
    re.compile(r"^\s*You are a (?:professional )?(?:conversation summarizer|title generator)\b", re.IGNORECASE),
    re.compile(r"^\s*You (?:will |need to )?generate (?:a )?(?:short|concise|brief)[^.\n]{0,40} title", re.IGNORECASE),
)

# Claude Code's, which come with the whole conversation and its tools, and those before its only message.
_CODE_USER_PROMPTS = (
    re.compile(r"^\s*\[SUGGESTION MODE:"),
    re.compile(r"^\s*<policy_spec>"),
    re.compile(r"^\s*Your task is to create a detailed summary of the conversation so far\b"),
)
_CODE_SYSTEM_PROMPTS = (
    re.compile(r"\bsentence-case title\b"),
    re.compile(r"\bAnalyze if this message indicates a new conversation topic\b"),
)
_CODE_CLASSES = frozenset({"auxiliary", "compaction"})


def is_client_task(messages: Sequence[dict[str, Any]], metadata: dict[str, Any]) -> bool:
    """Return True if the request is a task of the client: `metadata.task` says so, or the client's own prompt is the
    last user message, at the end of the conversation, or before its only message."""
    if any(isinstance(metadata.get(key), str) and _TASKS.search(metadata[key]) for key in _TASK_KEYS):
        return True
    said = [message for message in messages if message.get("role") in {"user", "assistant"}]
    users = [message for message in said if message["role"] == "user"]
    if users and _matches(_USER_PROMPTS, users[-1]):
        return True
    last = messages[-1] if messages else {}
    if last.get("role") == "system" and _matches(_USER_PROMPTS, last):
        return True
    return len(said) == 1 and messages[0].get("role") == "system" and _matches(_SYSTEM_PROMPTS, messages[0])


def is_code_task(messages: Sequence[dict[str, Any]], *, request_class: str, max_tokens: Any, tools: bool) -> bool:
    """Return True if the request is a task of Claude Code: its header says so, its own prompt is the last message or
    stands before the only one, or a lone message without tools may be answered with one token, to see whether it is."""
    if request_class in _CODE_CLASSES:
        return True
    said = [message for message in messages if message.get("role") in {"user", "assistant"}]
    users = [message for message in said if message["role"] == "user"]
    if users and _matches(_CODE_USER_PROMPTS, users[-1]):
        return True
    alone = len(said) == 1 and not tools
    instructed = messages[0].get("role") == "system" and _matches(_CODE_SYSTEM_PROMPTS, messages[0])
    return alone and (max_tokens == 1 or instructed)


def _matches(prompts: Sequence[re.Pattern[str]], message: dict[str, Any]) -> bool:
    head = text_of(message.get("content"))[:_HEAD]
    return any(pattern.search(head) for pattern in prompts)
