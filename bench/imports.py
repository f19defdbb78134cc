"""How fast an import stores memories and conversations, and how long it holds the database's lock.

    python bench/imports.py
    python bench/imports.py --memories 20000 --conversations 1000

Works through the shipped code on SQLite in a temporary home. Memories are sentences of about 12 words, all different;
a conversation has 20 messages of about 50 words, in the form of ChatGPT's export. Each import is done twice with
different words: at once, so that every memory is scanned by it, and after a preview, as on the memories page, whose
verdicts still hold. The scan's rules are loaded before.

Prints a table and, as its last line, one JSON object: `memories_per_s` (at once), `memories_per_s_previewed`,
`preview_per_s`, `messages_per_s`, and `longest_lock_ms`, the longest time between the beginning and the end of a
transaction."""

import argparse
import json
import random
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from own_home import own_home

WORDS = (
    "amber bread candle desk evening ferry garden harbour island jacket kettle lamp morning north orchard paper quiet "
    "river summer table umbrella violin window yellow Zurich always likes reads cooks walks sings writes travels works "
    "with without after before during near under over about because"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--conversations", type=int, default=500)
    options = parser.parse_args()
    with own_home("imports"):
        print(json.dumps(measured(options.memories, options.conversations)))


def measured(memories: int, conversations: int) -> dict[str, Any]:
    """Import everything once and print a line for each."""
    from django.core.management import call_command

    from gateway.services import agent_save
    from memories.services import owner_for_end_user

    call_command("migrate", verbosity=0)
    agent_save("assistant", {"user_char_limit": 0, "memory_char_limit": 0})
    from django.contrib.auth import get_user_model

    from memories.services import owner_for_user

    owner = owner_for_user(get_user_model().objects.create_user("bench"))
    child = owner_for_end_user(parent=owner, namespace="bench", external_id="conversations")
    run(owner, lines(1))  # loads the rules
    locks: list[float] = []
    print(f"{'import':<34}{'rows':>8}{'per s':>8}")
    result: dict[str, Any] = {}
    with transactions_timed(locks):
        result["memories_per_s"] = timed("memories, at once", memories, owner, lines(memories))
        later = lines(memories)
        result["preview_per_s"] = timed("memories, preview", memories, owner, later, preview=True)
        result["memories_per_s_previewed"] = timed("memories, after the preview", memories, owner, later)
        chats = chatgpt(conversations)
        result["messages_per_s"] = timed("messages of conversations", conversations * 20, child, chats)
    result["longest_lock_ms"] = round(max(locks) * 1000, 1)
    print(f"longest transaction {result['longest_lock_ms']} ms, of {len(locks)}")
    return result


def run(owner: Any, data: bytes, *, preview: bool = False) -> None:
    """Import as the command does; everything has to be taken."""
    from memories.database.batches import finish
    from memories.imports.files import Upload
    from memories.imports.running import ImportRequest, import_slices

    wanted = ImportRequest(upload=Upload.of(data), preview=preview)
    report = finish(import_slices(owner.pk, wanted, actor="system"))
    assert not report.problems, report.problems[:3]
    assert report.new or report.conversations_new


def timed(name: str, rows: int, owner: Any, data: bytes, *, preview: bool = False) -> int:
    """Return how many rows a second an import takes."""
    began = time.perf_counter()
    run(owner, data, preview=preview)
    rate = round(rows / (time.perf_counter() - began))
    print(f"{name:<34}{rows:>8}{rate:>8}", flush=True)
    return rate


@contextmanager
def transactions_timed(locks: list[float]) -> Iterator[None]:
    """Note how long each transaction takes, from its BEGIN to the end of its commit."""
    from django.db import connection

    began = [0.0]
    commit = connection.commit

    def execute(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("BEGIN"):
            began[0] = time.perf_counter()
        return execute(sql, params, many, context)

    def timed_commit() -> None:
        commit()
        if began[0]:
            locks.append(time.perf_counter() - began[0])
        began[0] = 0.0

    connection.commit = timed_commit  # type: ignore[method-assign]
    try:
        with connection.execute_wrapper(execute):
            yield
    finally:
        connection.commit = commit  # type: ignore[method-assign]


def sentence(count: int) -> str:
    """Return some words that nobody else says."""
    return " ".join((*random.choices(WORDS.split(), k=count - 1), secrets.token_hex(4))).capitalize() + "."


def lines(count: int) -> bytes:
    """Return memories as JSON Lines."""
    return "\n".join(json.dumps({"content": sentence(12), "keywords": ["place"]}) for _ in range(count)).encode()


def chatgpt(count: int) -> bytes:
    """Return conversations in the form of ChatGPT's export."""
    found = []
    for number in range(count):
        nodes = {
            f"n{place}": {
                "parent": f"n{place - 1}" if place else None,
                "message": {
                    "author": {"role": ("user", "assistant")[place % 2]},
                    "create_time": 1_700_000_000 + number * 100 + place,
                    "content": {"content_type": "text", "parts": [sentence(50)]},
                    "recipient": "all",
                    "metadata": {},
                },
            }
            for place in range(20)
        }
        found.append({"id": f"c{number}", "title": sentence(4), "mapping": nodes, "current_node": "n19"})
    return json.dumps(found).encode()


if __name__ == "__main__":
    main()
