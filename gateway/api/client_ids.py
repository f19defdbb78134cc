"""Ids of conversations that well-known clients send in headers of their own. An id names a session; of a client that
asks several agents in one conversation, each agent has a session of its own under it."""

from django.http.request import HttpHeaders

from gateway.runs.by_id import MAX_EXTERNAL_ID

# In this order, as clients sent them in November 2026.
_HEADERS = (
    "x-openwebui-chat-id",
    "x-session-affinity",  # opencode
    "x-session-id",  # opencode, Crush
    "x-goose-session-id",
    "thread-id",  # Codex; its helpers have threads of their own in one session
    "session-id",
)
# Open WebUI's name for a chat that is not stored, which is that of its browser tab: several chats have it.
_NOBODYS = ("local:", "temporary:")


def conversation_id(headers: HttpHeaders) -> str:
    """Return the id by which a client names its conversation, "" for none."""
    given = (headers.get(name, "").strip() for name in _HEADERS)
    return next((ref for ref in given if ref and len(ref) <= MAX_EXTERNAL_ID and not ref.startswith(_NOBODYS)), "")
