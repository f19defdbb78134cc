"""Measure how fast an import stores memories and conversations, and how long it holds the database lock.

    python bench/imports.py
    python bench/imports.py --memories 20000 --conversations 1000

Runs the shipped code on SQLite in a temporary home. Memories are different sentences of about 12 words; a conversation
has 20 messages of about 50 words, in the format of ChatGPT's export. Memories are imported twice with different words:
at once, so that the import scans every memory, and after a preview, as on the memories page, whose verdicts are reused.
The scan's rules are loaded beforehand.

Prints a table and, as its last line, one JSON object: `memories_per_s` (at once), `memories_per_s_previewed`,
`preview_per_s`, `messages_per_s`, and `longest_lock_ms`, the longest time from BEGIN to the end of the commit."""

import argparse
import json
import random
import secrets
import time
from typing import Any

from own_home import own_home
from transactions import transactions_timed

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
        print(json.dumps(measure_imports(options.memories, options.conversations)))


def measure_imports(memories: int, conversations: int) -> dict[str, Any]:
    """Run all imports, print a line for each, and return the figures."""
    from django.core.management import call_command

    from gateway.services import agent_save
    from memories.services import owner_for_end_user

    call_command("migrate", verbosity=0)
    agent_save("assistant", {"user_char_limit": 0, "memory_char_limit": 0})
    from django.contrib.auth import get_user_model

    from memories.services import owner_for_user

    owner = owner_for_user(get_user_model().objects.create_user("bench"))
    child = owner_for_end_user(parent=owner, namespace="bench", external_id="conversations")
    run_import(owner, memory_lines(1))  # loads the rules
    print(f"{'import':<34}{'rows':>8}{'per s':>8}")
    result: dict[str, Any] = {}
    with transactions_timed() as held:
        result["memories_per_s"] = timed_import("memories, at once", memories, owner, memory_lines(memories))
        later = memory_lines(memories)
        result["preview_per_s"] = timed_import("memories, preview", memories, owner, later, preview=True)
        result["memories_per_s_previewed"] = timed_import("memories, after the preview", memories, owner, later)
        chats = chatgpt_export(conversations)
        result["messages_per_s"] = timed_import("messages of conversations", conversations * 20, child, chats)
    result["longest_lock_ms"] = round(max(held).seconds * 1000, 1)
    print(f"longest transaction {result['longest_lock_ms']} ms, of {len(held)}")
    return result


def run_import(owner: Any, data: bytes, *, preview: bool = False) -> None:
    """Import as the command does; fail if anything is refused."""
    from memories.database.batches import finish
    from memories.imports.conversations import conversation_store
    from memories.imports.files import Upload
    from memories.imports.running import ImportRequest, import_slices

    wanted = ImportRequest(upload=Upload.of(data), preview=preview)
    report = finish(import_slices(owner.pk, wanted, actor="system"))
    if not preview:
        finish(conversation_store().index(owner.pk))
    assert not report.problems, report.problems[:3]
    assert report.new or report.conversations_new


def timed_import(name: str, rows: int, owner: Any, data: bytes, *, preview: bool = False) -> int:
    """Run an import, print its line, and return its rows per second."""
    began = time.perf_counter()
    run_import(owner, data, preview=preview)
    rate = round(rows / (time.perf_counter() - began))
    print(f"{name:<34}{rows:>8}{rate:>8}", flush=True)
    return rate


def sentence(count: int) -> str:
    """Return a sentence that occurs nowhere else."""
    return " ".join((*random.choices(WORDS.split(), k=count - 1), secrets.token_hex(4))).capitalize() + "."


def memory_lines(count: int) -> bytes:
    """Return memories as JSON Lines."""
    return "\n".join(json.dumps({"content": sentence(12), "keywords": ["place"]}) for _ in range(count)).encode()


def chatgpt_export(count: int) -> bytes:
    """Return conversations in the format of ChatGPT's export."""
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
