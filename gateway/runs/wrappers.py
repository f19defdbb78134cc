"""Removes text that clients add to a user message: reminders, editor state, retrieved documents, a model's thinking.
Such text changes between requests, so it neither identifies a conversation nor provides its title. Pure functions that
take linear time."""

import re
from collections.abc import Collection

from memories.evidence.client_texts import (
    MESSAGE_TAGS,
    is_written_by_client,
    question_span,
    without_interruptions,
    without_rules,
)

_REMINDERS = frozenset({"system-reminder", "system_reminder"})
# Tags whose content is never the user's
_CLIENT_TAGS = _REMINDERS | frozenset(
    {
        "current_datetime", "environment_details", "environment_context", "environment_info", "workspace_info",
        "info-msg", "instructions", "system", "user_instructions", "turn_aborted", "subagent_notification", "skill",
        "think", "thinking", "reasoning", "thought", "details", "command-name", "command-message",
        "local-command-caveat", "local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr",
        "task-notification",
    }
)  # fmt: skip
# Tags around the person's own words
_OWN_TAGS = MESSAGE_TAGS | {"command-args", "bash-input"}
# Tags around documents and files beside the user's words
_DOCUMENTS = frozenset(
    {"context", "file_content", "attached_files", "attachments", "additional_data", "editor_context", "documents"}
)
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z_-]{1,30})(\s[^<>]{0,300})?>")
_OTHER_DETAILS = re.compile(r"\btype\s*=\s*[\"']?(?:reasoning|tool_calls)")


def own_words(text: str) -> str:
    """Return a message's text without the client's additions, and without documents if text remains then; "" if the
    client wrote all of it."""
    if is_written_by_client(text):
        return ""
    words = _without_additions(text)
    return _without(words, _DOCUMENTS) or words


def is_wrapping(text: str) -> bool:
    """Return True if a message contains nothing but the client's additions and documents."""
    return is_written_by_client(text) or not _without(_without_additions(text), _DOCUMENTS)


def without_reminders(text: str) -> str:
    """Return a text without the client's reminders."""
    return _without(text, _REMINDERS)


def _without_additions(text: str) -> str:
    begins, ends = question_span(text)
    return _without(without_interruptions(without_rules(text[begins:ends] or text)), _CLIENT_TAGS)


def _without(text: str, names: Collection[str]) -> str:
    """Return the text without these tags and their content. A tag that is never closed counts as text."""
    if "<" not in text:
        return text.strip()
    tags = list(_TAG.finditer(text))
    last_close = {tag[2].lower(): place for place, tag in enumerate(tags) if tag[1]}
    kept: list[str] = []
    after, inside = 0, ""
    for place, tag in enumerate(tags):
        name = tag[2].lower()
        if inside:
            if tag[1] and name == inside:
                after, inside = tag.end(), ""
        elif name in _OWN_TAGS:
            kept.append(text[after : tag.start()])
            after = tag.end()
        elif name in names and not tag[1] and last_close.get(name, -1) > place and _is_wrapper(name, tag[3]):
            kept.append(text[after : tag.start()])
            inside = name
    return "".join([*kept, text[after:]]).strip()


def _is_wrapper(name: str, attributes: str | None) -> bool:
    return name != "details" or bool(attributes and _OTHER_DETAILS.search(attributes))
