"""The content of the screenshots: memories, conversations, and scripted answers of the model server, as steps of
tests/upstream_server.py. All data is invented."""

import json
from typing import Any

AGENTS = """
agents:
  assistant:
    model: main-model
    instructions: You are a helpful assistant.
    tools: [{type: memory}]
    inject_memories: true
    frozen_char_limit: 110
    memory_review_interval: 3
    memory_review_model: review-model
    memory_review_verbose: true
  planner:
    model: main-model
    inject_memories: true
    memory_review_interval: 3
    memory_review_model: review-model
    memory_review_approval: true
    memory_review_verbose: true
memories: {enabled: true, min_rollout_idle_hours: 0}
model_roles: {default: reading-model, smol: writing-model}
prices:
  main-model: {input: 0.4, output: 1.6}
  review-model: {input: 0.1, output: 0.4}
  reading-model: {input: 0.1, output: 0.4}
  writing-model: {input: 0.1, output: 0.4}
"""

MEMORIES: tuple[dict[str, Any], ...] = (
    {"content": "Wants the command first and the explanation after it.", "category": "preference", "pinned": True},
    {"content": "Runs a bakery with two ovens and a small web shop.", "category": "fact"},
    {"content": "Cannot eat hazelnuts.", "category": "health", "keywords": ["allergy", "dinner", "recipe", "nuts"]},
    {"content": "Learns Swedish; the lesson is on Thursday evening.", "category": "routine"},
    {"content": "Is on holiday from 21 to 29 December.", "category": "plan", "expires_at": "2026-12-30T00:00:00Z"},
    {
        "content": "Dumps the bakery database every night at 02:30 with pg_dump.",
        "target": "memory",
        "category": "environment",
        "keywords": ["backup", "postgres", "cron", "restore"],
    },
    {
        "content": "Shell scripts are for bash and begin with set -euo pipefail.",
        "target": "memory",
        "category": "convention",
        "keywords": ["script", "command", "delete", "dump"],
    },
    {
        "content": "Production is a rented server; staging is the old computer in the office.",
        "target": "memory",
        "category": "environment",
        "keywords": ["deploy", "ssh", "host"],
    },
)
NEW_DUMP_TIME = "Dumps the bakery database every night at 03:15 with pg_dump."

EARLIER_SESSIONS = (
    ("Dinner for six, no hazelnuts", "What can I cook for six people on Saturday?", 0),
    ("Rename the staging buckets", "How do I rename an S3 bucket?", 0),
    ("Swedish lesson: past tense", "When does Swedish use the supine?", 1),
    ("Letter to the landlord about the boiler", "Help me write to my landlord.", 1),
    ("Why is CI slow on ARM runners?", "Our CI got slower last week.", 3),
    ("Caddy, websockets and time-outs", "My websocket closes after a minute behind Caddy.", 3),
    ("A birthday present for Jonas", "I need an idea for a present.", 5),
)

TITLE = "Nightly database dumps"
SCRIPT = """\
Keep the newest fourteen days and delete the rest:

```bash
set -euo pipefail
dir=/var/backups/bakery
pg_dump -Fc bakery > "$dir/$(date +%F).part"
mv "$dir/$(date +%F).part" "$dir/$(date +%F).dump"
find "$dir" -name '*.dump' -mtime +14 -delete
```

A half-written dump never looks like a whole one, since it is renamed at the end. Two things to check once:

- the disk has room for fifteen dumps
- `pg_restore --list` reads the newest one
"""
TURNS = (
    ("How do I keep two weeks of dumps and delete the older ones?", [{"text": SCRIPT}]),
    (
        "Works. We moved the dump to 03:15, by the way; the ovens send their figures at 02:30 now.",
        [
            {"calls": [{"name": "update_memory", "arguments": {"id": "6", "content": NEW_DUMP_TIME}}]},
            {"text": "Then nothing competes for the disk. Set `OnCalendar=*-*-* 03:15` and reload the timer."},
        ],
    ),
    (
        "Good. The dumps should lie on the NAS, it is mounted at /mnt/nas.",
        [{"text": "Set `dir=/mnt/nas/bakery`, and let the unit wait for it with `RequiresMountsFor=/mnt/nas`."}],
    ),
)
REVIEW = (
    {
        "calls": [
            {
                "name": "add_memory",
                "arguments": {
                    "content": "Keeps database dumps for 14 days, then deletes them.",
                    "target": "memory",
                    "category": "convention",
                    "keywords": ["retention", "backup", "cleanup"],
                },
            },
            {
                "name": "add_memory",
                "arguments": {
                    "content": "The NAS is mounted at /mnt/nas; dumps lie in /mnt/nas/bakery.",
                    "target": "memory",
                    "category": "environment",
                    "keywords": ["storage", "disk", "backup"],
                },
            },
        ]
    },
    {"text": "Nothing to save."},
)
PLAN = (
    "I bake rye on Tuesdays and Fridays, so put nothing there. And please use 24-hour times.",
    "Noted for this plan.",
)
PROPOSALS = (
    {
        "calls": [
            {
                "name": "add_memory",
                "arguments": {"content": "Bakes rye on Tuesdays and Fridays.", "target": "user", "category": "routine"},
            },
            {
                "name": "add_memory",
                "arguments": {"content": "Prefers 24-hour times.", "target": "user", "category": "preference"},
            },
        ]
    },
    {"text": "Nothing to save."},
)
EXTRACTION = {
    "text": json.dumps(
        {
            "raw_memory": "- Dumps of the bakery database: nightly, pg_dump, kept 14 days on the NAS.",
            "rollout_summary": "Set up dumps of the bakery database that clean up after themselves.",
        }
    )
}
SYNTHESIS = {
    "text": json.dumps(
        {
            "memory_md": "# Bakery\n\n- Nightly dump at 03:15 with `pg_dump`, kept 14 days in `/mnt/nas/bakery`.\n"
            "- Production is a rented server; staging is the old computer in the office.\n\n"
            "## How to answer\n\n- Command first, explanation after it.\n",
            "memory_summary": "Runs a bakery. Wants the command first. Dumps lie on the NAS for 14 days.",
            "skills": [
                {
                    "name": "restore-a-dump",
                    "content": "# Restore a dump\n\n1. Take the newest dump of `/mnt/nas/bakery`.\n"
                    "2. `pg_restore --clean --if-exists -d bakery FILE`\n3. Look at yesterday's orders.\n",
                }
            ],
        }
    )
}
