"""The requests of fairness.py: for every operation, page and MCP tool the costliest one that is valid, or that must be
refused at once. tests/config/test_fairness_rows.py compares the names with the real routes."""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

MAX_ENTRY_CHARS = 4_000
MAX_MESSAGE_CHARS = 200_000
# The other lengths below are the limits of docs/limits.md, or just above them.
# Texts that are slow for some parser: nested marks, quotes, brackets, letters with many accents, long runs.
SLOW_TEXTS = {
    "quotes": "```python\n" + '\\"' * 19_000 + "\n```",
    "brackets": "[" * 20_000 + "](" * 10_000,
    "emphasis": "*a_" * 20_000,
    "block quotes": ">" * 20_000 + "a",
    "accents": "a" + "\u0301" * 20_000,
    "marks out of order": "a" + "\u0301\u0316" * 20_000,
    "zeros": "passw0rd: " + "0" * 20_000,
    "base64": "QUFB" * 20_000,
    "words": " ".join(f"w{number}" for number in range(12_000)),
    "one word": "x" * 100_000,
}


@dataclass(frozen=True, slots=True)
class World:
    """The ids, key and login that the attacker's requests use."""

    key: str
    session: str
    turn: str
    memory: str
    review: str
    change_set: str
    cookies: str = ""
    csrf: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """One request; `headers` are those besides the login or key."""

    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


Row = Callable[[World, int], Call]


def _json(method: str, path: str, body: object) -> Call:
    return Call(method, path, json.dumps(body).encode(), {"Content-Type": "application/json"})


def _text(number: int, length: int = MAX_ENTRY_CHARS) -> str:
    """Return a text that is new each time, built from the slow texts in turn."""
    texts = list(SLOW_TEXTS.values())
    return (f"{secrets.token_hex(8)} " + texts[number % len(texts)])[:length]


def _get(path: str) -> Row:
    return lambda world, number: Call("GET", path.format(world=world))


def _post(path: str, body: Callable[[int], object], method: str = "POST") -> Row:
    return lambda world, number: _json(method, path.format(world=world), body(number))


def _form(path: str, form: str) -> Row:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return lambda world, number: Call("POST", path, form.encode(), headers)


def _redirects(number: int) -> list[str]:
    return [f"https://example.org/{number}/{index}/{'x' * 450}" for index in range(10)]


def _turn(content: Callable[[int], str]) -> Row:
    return lambda world, number: _json(
        "POST", f"/api/sessions/{world.session}/turns", {"content": content(number), "stream": False}
    )


def _chat(messages: Callable[[int], list[dict[str, object]]], **more: object) -> Row:
    return lambda world, number: _json(
        "POST", "/v1/chat/completions", {"model": "plain", "messages": messages(number), **more}
    )


def _message(number: int) -> dict[str, object]:
    messages = [{"role": "user", "content": _text(number, MAX_MESSAGE_CHARS)}]
    return {"model": "plain", "max_tokens": 100, "messages": messages}


def _blocks(number: int, count: int) -> dict[str, object]:
    blocks = [{"type": "text", "text": f"{number} {index}"} for index in range(count)]
    return {"model": "plain", "max_tokens": 100, "messages": [{"role": "user", "content": blocks}]}


def _response(given: Callable[[int], object], **more: object) -> Row:
    return lambda world, number: _json("POST", "/v1/responses", {"model": "plain", "input": given(number), **more})


def _tool(name: str, arguments: Callable[[int], object]) -> Row:
    def call(world: World, number: int) -> Call:
        params = {"name": name, "arguments": arguments(number)}
        return _json("POST", "/mcp", {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})

    return call


def _lines(number: int, lines: int, *, books: bool = False) -> bytes:
    entries = (
        {
            "object": "memory",
            "content": f"{secrets.token_hex(6)} likes number {index}",
            "target": "memory",
            **({"book": f"book-{number}-{index}"} if books else {}),
        }
        for index in range(lines)
    )
    return "\n".join(map(json.dumps, entries)).encode()


def _conversations(number: int, count: int) -> bytes:
    """Return conversations of 20 messages each in the format of Claude's export."""
    said = [{"sender": ("human", "assistant")[place % 2], "text": f"Word {place}. " * 40} for place in range(20)]
    talks = ({"uuid": secrets.token_hex(8), "name": f"Talk {number}", "chat_messages": said} for _ in range(count))
    return json.dumps(list(talks)).encode()


def _import(lines: int, query: str = "", *, books: bool = False) -> Row:
    return lambda world, number: Call(
        "POST",
        f"/api/import{query}",
        _lines(number, lines, books=books),
        {"Content-Type": "application/x-ndjson"},
    )


def _deep(number: int) -> bytes:
    return b'{"content": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


# Requests by operation of the OpenAPI document. Variants of an operation are named "operation: variant".
OPERATIONS: dict[str, Row] = {
    "session_create": _post("/api/sessions", lambda n: {"agent": "plain", "title": _text(n, MAX_MESSAGE_CHARS)}),
    "session_list": _get("/api/sessions?limit=100"),
    "session_get": _get("/api/sessions/{world.session}"),
    "session_patch": _post("/api/sessions/{world.session}", lambda n: {"title": _text(n)}, "PATCH"),
    "session_delete": lambda world, number: Call("DELETE", "/api/sessions/" + "0" * 4_000),
    "session_list: search": _get("/api/sessions?search=" + "a%20" * 99),
    "session_restored": _post("/api/sessions/00000000-0000-7000-8000-000000000000/restore", lambda n: {}),
    "session_export": _get("/api/sessions/{world.session}/export?format=json"),
    "session_end": _post("/api/sessions/00000000-0000-7000-8000-000000000000/end", lambda n: {}),
    "session_forgotten": _post("/api/sessions/00000000-0000-7000-8000-000000000000/forget", lambda n: {}),
    "message_list": _get("/api/sessions/{world.session}/messages?limit=100"),
    "turn_create": _turn(lambda n: _text(n, MAX_MESSAGE_CHARS)),
    "turn_create: long": _turn(lambda n: "x " * (MAX_MESSAGE_CHARS // 2)),
    "turn_create: an image": lambda world, number: _json(
        "POST",
        f"/api/sessions/{world.session}/turns",
        {"content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + "QUFB" * 2_000_000}}]},
    ),
    "turn_results": _post(
        "/api/sessions/{world.session}/turns/{world.turn}/results",
        lambda n: {"results": [{"tool_call_id": f"call_{i}", "content": "x" * 3_000} for i in range(1_000)]},
    ),
    "turn_get": _get("/api/sessions/{world.session}/turns/{world.turn}"),
    "turn_events": _get("/api/sessions/{world.session}/turns/{world.turn}/events?after=0"),
    "turn_choose": _post("/api/sessions/{world.session}/turns/{world.turn}/choose", lambda n: {}),
    "turn_stop": _post("/api/sessions/{world.session}/turns/{world.turn}/stop", lambda n: {}),
    "key_create": _post("/api/keys", lambda n: {"name": f"key {n}", "agents": ["plain"] * 200}),
    "key_list": _get("/api/keys?limit=200"),
    "key_get": _get("/api/keys/00000000-0000-7000-8000-000000000000"),
    "key_patch": _post("/api/keys/00000000-0000-7000-8000-000000000000", lambda n: {"name": "x" * 80}, "PATCH"),
    "key_delete": lambda world, number: Call("DELETE", "/api/keys/" + "0" * 4_000),
    "webhook_list": _get("/api/webhooks"),
    "webhook_make": _post("/api/webhooks", lambda n: {"url": "https://example.org/" + "x" * 1_900}),
    "webhook_forget": lambda world, number: Call("DELETE", "/api/webhooks/" + "0" * 4_000),
    "usage": _get("/api/usage?from=2026-01-01&to=2026-12-31&by=model"),
    "key_rotate": _post("/api/keys/00000000-0000-7000-8000-000000000000/rotate", lambda n: {}),
    "memory_add": _post("/api/memories", lambda n: {"content": _text(n)}),
    "memory_add: keywords": _post(
        "/api/memories", lambda n: {"content": _text(n), "keywords": [f"k{i}" for i in range(22_000)]}
    ),
    "memory_add: most keywords": _post(
        "/api/memories", lambda n: {"content": _text(n), "keywords": ["é" * 199 + str(i % 10) for i in range(100)]}
    ),
    "memory_add: deep": lambda world, number: Call(
        "POST", "/api/memories", _deep(number), {"Content-Type": "application/json"}
    ),
    "memory_ingest": _post(
        "/api/memories/ingest",
        lambda n: {"messages": [{"role": "user", "content": _text(n, MAX_MESSAGE_CHARS)} for _ in range(9)]},
    ),
    "memory_ingest: most messages": _post(
        "/api/memories/ingest", lambda n: {"messages": [{"role": "user", "content": f"{n} {i}"} for i in range(500)]}
    ),
    "memory_ingest: in a session": _post(
        "/api/memories/ingest",
        lambda n: {"messages": [{"role": "user", "content": _text(n)}], "session_id": f"fair-{n % 10}"},
    ),
    "memory_list": _get("/api/memories?limit=100&q=" + "needle%20" * 400),
    "memory_list: metadata": _get("/api/memories?book=*&" + "&".join(f"metadata.k{i}=x" for i in range(16))),
    "memory_read": _get("/api/memories/{world.memory}"),
    "memory_patch": _post("/api/memories/{world.memory}", lambda n: {"content": _text(n)}, "PATCH"),
    "memory_delete": lambda world, number: Call("DELETE", "/api/memories/" + "9" * 5_000),
    "revision_list": _get("/api/memories/{world.memory}/revisions?limit=100"),
    "memory_put_back": _post("/api/memories/{world.memory}/restore", lambda n: {"revision": "9" * 5_000}),
    "memory_search": _post("/api/memories/search", lambda n: {"query": _text(n, 10_000), "limit": 50}),
    "memory_search: 10,001 characters": _post("/api/memories/search", lambda n: {"query": "x" * 10_001}),
    "memory_search: 8 MB": _post("/api/memories/search", lambda n: {"query": "tea " * 2_000_000}),
    "memory_search: all books": _post(
        "/api/memories/search",
        lambda n: {"query": _text(n, 1_000), "book": "*", "metadata": {f"k{i}": "x" for i in range(16)}},
    ),
    "memory_search: all books, no filter": _post(
        "/api/memories/search", lambda n: {"query": _text(n, 1_000), "book": "*", "limit": 100}
    ),
    "memory_bulk": _post(
        "/api/memories/bulk",
        lambda n: {"ids": [str(number) for number in range(1, 1_001)], "action": ("pin", "unpin")[n % 2]},
    ),
    "memory_bulk: restore": _post(
        "/api/memories/bulk", lambda n: {"ids": [str(number) for number in range(1, 1_001)], "action": "restore"}
    ),
    "memory_health": _get("/api/memories/health"),
    "change_undo": _post("/api/changes/{world.change_set}/undo", lambda n: {}),
    "notification_list": _get("/api/notifications?after=0&limit=100"),
    "export": _get("/api/export"),
    "import_": _import(1_000),
    "import_: preview": _import(3_000, "?preview=true"),
    "import_: books": _import(1_500, books=True),
    "import_: conversations": lambda world, number: Call(
        "POST", "/api/import", _conversations(number, 100), {"Content-Type": "application/json"}
    ),
    "import_: conversations, preview": lambda world, number: Call(
        "POST", "/api/import?preview=true", _conversations(number, 2_000), {"Content-Type": "application/json"}
    ),
    "forget": lambda world, number: Call("DELETE", "/api/account/memories"),
    "artifact_list": _get("/api/books/main/artifacts"),
    "artifact_read": _get("/api/books/main/artifacts/MEMORY.md"),
    "artifact_write": _post("/api/books/main/artifacts/MEMORY.md", lambda n: {"content": _text(n, 100_000)}, "PUT"),
    "artifact_write: too long": _post(
        "/api/books/main/artifacts/MEMORY.md", lambda n: {"content": "x" * 100_001}, "PUT"
    ),
    "session_review": _post("/api/sessions/{world.session}/review", lambda n: {}),
    "proposal_list": _get("/api/proposals?limit=100"),
    "proposal_read": _get("/api/proposals/{world.review}-0"),
    "proposal_approve": _post("/api/proposals/{world.review}-0/approve", lambda n: {"content": _text(n)}),
    "proposal_reject": _post("/api/proposals/{world.review}-0/reject", lambda n: {}),
    "review_list": _get("/api/reviews?limit=100"),
    "review_read": _get("/api/reviews/{world.review}"),
    "review_undo": _post("/api/reviews/{world.review}/undo", lambda n: {"writes": list(range(1_000))}),
    "review_undo: too many": _post("/api/reviews/{world.review}/undo", lambda n: {"writes": list(range(10_000))}),
    "review_approve": _post(
        "/api/reviews/{world.review}/approve", lambda n: {"edits": {str(i): _text(i) for i in range(200)}}
    ),
    "review_reject": _post("/api/reviews/{world.review}/reject", lambda n: {}),
    "consolidation_start": _post("/api/consolidations", lambda n: {"book": "main", "dry_run": True}),
    "consolidation_list": _get("/api/consolidations?limit=100"),
    "consolidation_read": _get("/api/consolidations/00000000-0000-7000-8000-000000000000"),
    "consolidation_stop": _post("/api/consolidations/00000000-0000-7000-8000-000000000000/stop", lambda n: {}),
    "api/audit": _get("/api/audit?limit=200"),
    "models": _get("/v1/models"),
    "model": _get("/v1/models/plain"),
    "chat_completions": _chat(lambda n: [{"role": "user", "content": _text(n, MAX_MESSAGE_CHARS)}]),
    "chat_completions: 10,000 messages": _chat(
        lambda n: [{"role": ("user", "assistant")[i % 2], "content": f"{n} {i}"} for i in range(9_999)]
    ),
    "chat_completions: 9,000 system messages": _chat(
        lambda n: [
            *({"role": "system", "content": f"{n} tea " * 230} for _ in range(9_000)),
            {"role": "user", "content": "x"},
        ]
    ),
    "chat_completions: 19 MB of an answer": _chat(
        lambda n: [
            {"role": "user", "content": f"{n}"},
            {"role": "assistant", "content": "ab " * 6_400_000},
            {"role": "user", "content": "x"},
        ]
    ),
    "completions": _post(
        "/v1/completions", lambda n: {"model": "plain", "prompt": _text(n, MAX_MESSAGE_CHARS), "suffix": _text(n + 1)}
    ),
    "completions: 8 MB": _post("/v1/completions", lambda n: {"model": "plain", "prompt": "tea " * 2_000_000}),
    "embeddings": _post("/v1/embeddings", lambda n: {"model": "default/scripted", "input": [_text(n)] * 2_048}),
    "embeddings: 190,000 tokens": _post(
        "/v1/embeddings", lambda n: {"model": "default/scripted", "input": [[n] * 92] * 2_048}
    ),
    "embeddings: too many": _post("/v1/embeddings", lambda n: {"model": "plain", "input": [str(n)] * 100_000}),
    "chat_completions: 100,000 messages": _chat(
        lambda n: [{"role": "user", "content": str(i)} for i in range(100_000)]
    ),
    "chat_completions: deep": lambda world, number: Call(
        "POST", "/v1/chat/completions", _deep(number), {"Content-Type": "application/json"}
    ),
    "messages": _post("/v1/messages", _message),
    "messages: 10,000 blocks": _post("/v1/messages", lambda n: _blocks(n, 10_000)),
    "count_tokens": _post("/v1/messages/count_tokens", _message),
    "count_tokens: 10,000 blocks": _post("/v1/messages/count_tokens", lambda n: _blocks(n, 10_000)),
    "response_create": _response(lambda n: _text(n, MAX_MESSAGE_CHARS)),
    "response_create: 10,000 items": _response(
        lambda n: [{"role": ("user", "assistant")[i % 2], "content": f"{n} {i}"} for i in range(9_999)]
    ),
    "response_create: calls without an output": _response(
        lambda n: [
            *({"type": "function_call", "call_id": f"c{i}", "name": "look", "arguments": "{}"} for i in range(9_000)),
            {"role": "user", "content": f"{n}"},
        ]
    ),
    "response_create: references": _response(
        lambda n: [{"type": "item_reference", "id": f"msg_{i:032x}_0_0"} for i in range(10_000)]
    ),
    "response_create: cut": _response(
        lambda n: [{"role": ("user", "assistant")[i % 2], "content": f"{n} tea " * 300} for i in range(4_999)],
        truncation="auto",
    ),
    "response_create: deep": lambda world, number: Call(
        "POST", "/v1/responses", _deep(number), {"Content-Type": "application/json"}
    ),
    "response_get": _get("/v1/responses/resp_{world.turn}"),
    "response_input_tokens": _post(
        "/v1/responses/input_tokens", lambda n: {"model": "plain", "input": _text(n, MAX_MESSAGE_CHARS)}
    ),
    "response_compact": _post(
        "/v1/responses/compact", lambda n: {"model": "plain", "input": _text(n, MAX_MESSAGE_CHARS)}
    ),
    "response_input": _get("/v1/responses/resp_{world.turn}/input_items?limit=100&after=" + "x" * 4_000),
    "response_forget": lambda world, number: Call("DELETE", "/v1/responses/" + "0" * 4_000),
    "response_cancel": _post("/v1/responses/resp_{world.turn}/cancel", lambda n: {}),
    "mcp_post": _post("/mcp", lambda n: {"jsonrpc": "2.0", "id": n, "method": "tools/list"}),
    "mcp_post: resources": _post("/mcp", lambda n: {"jsonrpc": "2.0", "id": n, "method": "resources/list"}),
    "mcp_post: prompt": _post(
        "/mcp",
        lambda n: {"jsonrpc": "2.0", "id": n, "method": "prompts/get", "params": {"name": "review_my_memory"}},
    ),
    "mcp_post: deep": lambda world, number: Call("POST", "/mcp", _deep(number), {"Content-Type": "application/json"}),
}

# Requests by page, sent with the attacker's login.
PAGES: dict[str, Row] = {
    "chat": _get("/"),
    "chat-new": _get("/new/"),
    "chat-session": _get("/c/{world.session}/"),
    "chat-attachment": _get("/c/{world.session}/attached/1/0/"),
    "sessions-fragment": _get("/fragments/sessions/?q=" + "needle%20" * 200),
    "turn-fragment": _get("/fragments/turn/{world.session}/{world.turn}/"),
    "turns-fragment": _get("/fragments/turns/{world.session}/?before=999999"),
    "review-fragment": _get("/fragments/review/{world.review}/"),
    "memories": _get("/memories/"),
    "fragments/memories/": _get("/fragments/memories/?q=" + "needle%20" * 400),
    "fragments/memories/: many words": _get("/fragments/memories/?q=" + "%20".join(f"w{word}" for word in range(100))),
    "fragments/memories/summary/": _get("/fragments/memories/summary/"),
    "fragments/memories/<int:number>/": _get("/fragments/memories/{world.memory}/"),
    "fragments/memories/<int:number>/edit/": _get("/fragments/memories/{world.memory}/edit/"),
    "fragments/memories/<int:number>/history/": _get("/fragments/memories/{world.memory}/history/"),
    "reviews": _get("/reviews/"),
    "reviews/<uuid:review_id>/cancel/": _post("/reviews/{world.review}/cancel/", lambda n: {}),
    "fragments/reviews/": _get("/fragments/reviews/"),
    "fragments/consolidation/": _get("/fragments/consolidation/"),
    "fragments/document/": _get("/fragments/document/?book=main&path=MEMORY.md"),
    "account": _get("/account/"),
    "account/password/": _post("/account/password/", lambda n: {"old_password": _text(n)}),
    "account/time-zone/": _post("/account/time-zone/", lambda n: {"time_zone": _text(n)}),
    "account/keys/": _post("/account/keys/", lambda n: {"name": _text(n, MAX_MESSAGE_CHARS)}),
    "account/keys/<uuid:key_id>/revoke/": _post(
        "/account/keys/00000000-0000-7000-8000-000000000000/revoke/", lambda n: {}
    ),
    "account/apps/<uuid:key_id>/disconnect/": _post(
        "/account/apps/00000000-0000-7000-8000-000000000000/disconnect/", lambda n: {}
    ),
    "oauth/authorize": _get("/oauth/authorize?response_type=code&client_id=x&state=" + "s" * 3_900),
    "account/delete/": _post("/account/delete/", lambda n: {"password": _text(n)}),
    "account/deleting/<uuid:erasure_id>/": _get("/account/deleting/00000000-0000-4000-8000-000000000000/"),
    "login": lambda world, number: Call(
        "POST",
        "/login/",
        b"username=admin&password=" + secrets.token_hex(50_000).encode(),
        {"Content-Type": "application/x-www-form-urlencoded"},
    ),
    "admin/login/": lambda world, number: Call(
        "POST",
        "/admin/login/",
        b"username=admin&password=" + secrets.token_hex(50_000).encode(),
        {"Content-Type": "application/x-www-form-urlencoded"},
    ),
    "account/logins/end/": _post("/account/logins/end/", lambda n: {}),
    "account/logins/<uuid:login_id>/end/": _post(
        "/account/logins/00000000-0000-7000-8000-000000000000/end/", lambda n: {}
    ),
    "openid-begin": _get("/login/sso/?next=/" + "n" * 3_900),
    "openid-callback": _get("/login/sso/callback/?state=" + "s" * 1_900 + "&code=" + "c" * 1_900),
    "password-forgotten": lambda world, number: Call(
        "POST",
        "/password/forgotten/",
        b"email=" + secrets.token_hex(50_000).encode() + b"@example.org",
        {"Content-Type": "application/x-www-form-urlencoded"},
    ),
    "password_reset_confirm": _get("/password/forgotten/MQ/" + "t" * 3_900 + "/"),
    "invitation": _get("/invitation/" + "i" * 3_900 + "/"),
    "admin/password_change/": _get("/admin/password_change/"),
    "logout": _post("/logout/", lambda n: {}),
}

TOOLS: dict[str, Row] = {
    "add_memory": _tool("add_memory", lambda n: {"content": _text(n)}),
    "add_memory: keywords": _tool(
        "add_memory", lambda n: {"content": _text(n), "keywords": [f"k{i}" for i in range(22_000)]}
    ),
    "update_memory": _tool("update_memory", lambda n: {"id": "1", "content": _text(n)}),
    "delete_memory": _tool("delete_memory", lambda n: {"id": "9" * 5_000}),
    "search_memories": _tool("search_memories", lambda n: {"query": _text(n, 10_000)}),
    "search_memories: 8 MB": _tool("search_memories", lambda n: {"query": "tea " * 2_000_000}),
    "get_memories": _tool("get_memories", lambda n: {}),
    "read": _tool("read", lambda n: {"path": "memory://root/" + "../" * 3_000}),
}

OTHER_PATHS: dict[str, Row] = {
    "healthz": _get("/healthz"),
    "manifest": _get("/manifest.webmanifest"),
    "readyz": _get("/readyz"),
    "metrics": _get("/metrics"),
    ".well-known/oauth-protected-resource": _get("/.well-known/oauth-protected-resource"),
    ".well-known/oauth-protected-resource/mcp": _get("/.well-known/oauth-protected-resource/mcp"),
    ".well-known/oauth-authorization-server": _get("/.well-known/oauth-authorization-server"),
    "oauth/register": _post("/oauth/register", lambda n: {"client_name": "x", "redirect_uris": _redirects(n)}),
    "oauth/register: deep": lambda world, number: Call(
        "POST", "/oauth/register", _deep(number)[:16_000], {"Content-Type": "application/json"}
    ),
    "oauth/token": _form("/oauth/token", "grant_type=refresh_token&client_id=x&refresh_token=" + "t" * 15_000),
    "oauth/revoke": _form("/oauth/revoke", "client_id=x&token=" + "t" * 15_000),
}

WEBSOCKET = "websocket"


def rows() -> dict[str, Row]:
    """Return every request by its full name."""
    groups = {"": OPERATIONS, "page ": PAGES, "tool ": TOOLS, "operations ": OTHER_PATHS}
    return {prefix + name: row for prefix, group in groups.items() for name, row in group.items()}
