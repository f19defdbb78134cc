"""A second process with filled caches: `python -m tests.e2e.caching_process` fills every cache through the product's
own functions, and counts the live objects that contain a word.

It reads one JSON list per line and answers with a JSON value: `["warm", owner, session]` and `["ask", owner, word]`
return a number, `["scan", text]` the rule that blocks the text, `["invalidated"]` the id of the newest invalidation it
has seen, and `["count", word, …]` one number per word. Words are sent reversed, so that the command itself is not
counted."""

import gc
import json
import sys
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import django

PREFIX_CHARS = 9
"""Only this many characters of a word are searched for."""


def main() -> None:
    django.setup()
    gc.unfreeze()  # frozen objects are not in `gc.get_objects`
    import scanning  # noqa: PLC0415 - models can be imported only now
    from memories.books import book_state  # noqa: PLC0415
    from memories.messaging.invalidation import watcher  # noqa: PLC0415
    from memories.recall.snapshot import snapshots  # noqa: PLC0415
    from memories.recall.threads import outside_window, thread_cache  # noqa: PLC0415
    from memories.verdicts import verdict_of  # noqa: PLC0415

    def warm(owner: str, session: str) -> int:
        state = book_state(UUID(owner), "main")
        built = snapshots.build(UUID(session), state, (1, 0), max_memories=20, char_limit=40, guidance_tokens=500)
        for entry in built.view.entries:
            built.view.index.search(entry.content, limit=3, keywords=entry.content.split())
            scanning.scan(entry.content)
        turns = thread_cache.read(UUID(owner), UUID(session), uuid4())
        return len(built.view.entries) + len(outside_window(turns, set()).search("Who?", limit=9))

    def ask(owner: str, reversed_word: str) -> int:
        view = snapshots.view(book_state(UUID(owner), "main"))
        return len(view.index.search(f"Where is {reversed_word[::-1]}?", limit=3))

    def scan(reversed_text: str) -> str:
        return verdict_of(reversed_text[::-1], ()).rule

    def invalidated() -> int:
        return max(watcher._seen, default=watcher._floor or 0)

    commands = {"warm": warm, "ask": ask, "scan": scan, "invalidated": invalidated, "count": count}
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        sys.stdout.write(f"{json.dumps(commands[name](*arguments))}\n")
        sys.stdout.flush()


def count(*reversed_words: str) -> list[int]:
    """Return for each word how many strings and byte strings in this process contain its prefix (a stem may lack the
    end)."""
    prefixes = [word[::-1][:PREFIX_CHARS] for word in reversed_words]
    forms = [(prefix, prefix.lower(), prefix.encode(), prefix.lower().encode()) for prefix in prefixes]
    ours = {id(form) for each in forms for form in each}
    counts = [0] * len(forms)
    for text in _texts():
        if len(text) >= PREFIX_CHARS and id(text) not in ours:
            for at, (name, lower, name_bytes, lower_bytes) in enumerate(forms):
                if isinstance(text, str):
                    counts[at] += name in text or lower in text
                else:
                    counts[at] += name_bytes in text or lower_bytes in text
    return counts


def _texts() -> Iterator[str | bytes]:
    """Yield every string in a container. Containers of only plain values are not in `gc.get_objects`, so follow the
    references to them as well."""
    seen: set[int] = set()
    tracked: list[Any] = gc.get_objects()
    seen.update(map(id, tracked))
    for start in tracked:
        if start is tracked or start is seen:
            continue
        waiting = [start]
        while waiting:
            for found in gc.get_referents(waiting.pop()):
                if id(found) in seen or found is seen or found is waiting:
                    continue
                if isinstance(found, str | bytes):
                    seen.add(id(found))
                    yield found
                elif not gc.is_tracked(found) and isinstance(found, tuple | dict | list | set | frozenset):
                    seen.add(id(found))
                    waiting.append(found)


if __name__ == "__main__":
    main()
