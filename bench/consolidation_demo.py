"""Show what consolidation makes of a real conversation: import its dialogues as sessions of one owner, run the shipped
consolidation over them, and print the resulting documents.

    python bench/consolidation_demo.py --data FILE                     # the model of OPENAI_BASE_URL, or the demo model
    python bench/consolidation_demo.py --data FILE --conversation 2 --model NAME

FILE is a list of conversations `{id, turns: [{dia_id "D<session>:<turn>", speaker, date_time, text}]}`, as
bench/recall.py reads it. The first speaker becomes the owner, the other one the agent; sessions keep their dates. The
script uses its own database in a temporary home and scores nothing. Its last line of output is one JSON object:
`conversation`, `sessions`, `sessions_done`, `sessions_empty`, `sessions_failed`, `state`, `error`, `model`, `requests`,
`tokens`, `redacted`, `dropped`, `documents` (characters by path), `seconds`."""

import argparse
import asyncio
import json
import sys
import threading
import time
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from own_home import MODEL_SERVERS, own_home

DATE_FORMAT = "%I:%M %p on %d %B, %Y"
# Data sets hold conversations that are years old.
MAX_AGE_DAYS = 3650


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a file of conversations")
    parser.add_argument("--conversation", type=int, default=0, metavar="N", help="which one, from 0 (default 0)")
    parser.add_argument("--model", default="", help="model for both roles; default: DAYBOOK_MODEL")
    options = parser.parse_args()
    conversations = json.loads(options.data.read_text(encoding="utf-8"))
    if not 0 <= options.conversation < len(conversations):
        parser.error(f"--conversation is 0 to {len(conversations) - 1} in this file")
    conversation = conversations[options.conversation]
    if not conversation.get("turns"):
        parser.error("this file has no conversations: each needs `turns`")
    with own_home("consolidation-demo", {"DAYBOOK_DB_THREADS": "1"}, keep=MODEL_SERVERS):
        report = consolidate_conversation(conversation, model=options.model)
    for path, content in report["documents"].items():
        print(f"=== {path}\n{content}\n")
    if report["error"]:
        print(f"It ended with: {report['error']}")
    report["documents"] = {path: len(content) for path, content in report["documents"].items()}
    print(
        f"{report['sessions_done']} of {report['sessions']} sessions read ({report['sessions_empty']} with nothing "
        f"durable, {report['sessions_failed']} failed) by {report['model']}: {report['requests']} requests, "
        f"{report['tokens']:,} tokens, {report['seconds']} s"
    )
    print(json.dumps(report))
    return 0 if report["state"] == "completed" else 1


def consolidate_conversation(conversation: dict[str, Any], *, model: str) -> dict[str, Any]:
    """Consolidate a conversation; return the report, with the documents' contents by path."""
    from django.core.management import call_command

    from gateway.services import configuration_save
    from memories.artifacts.store import live_artifacts
    from reviews.consolidation.requests import Trigger, consolidation_request
    from reviews.models import Extraction

    call_command("migrate", verbosity=0)
    configuration_save("memories", {"enabled": True, "max_rollout_age_days": MAX_AGE_DAYS, "min_rollout_idle_hours": 0})
    if model:
        configuration_save("model_roles", {"default": model, "smol": model})
    book, sessions = import_conversation(conversation)
    began = time.monotonic()
    run = run_to_end(consolidation_request(book, trigger=Trigger.REQUEST))
    models = set(Extraction.objects.filter(run=run).exclude(model="").values_list("model", flat=True))
    return {
        "conversation": conversation["id"],
        "sessions": sessions,
        "sessions_done": run.sessions_done,
        "sessions_empty": run.sessions_empty,
        "sessions_failed": run.sessions_failed,
        "state": run.state,
        "error": (run.error or {}).get("message"),
        "model": ", ".join(sorted(models)),
        "requests": run.requests,
        "tokens": run.tokens,
        "redacted": run.redacted,
        "dropped": run.dropped,
        "documents": {row.path: row.content for row in live_artifacts(book.owner_id, book.pk)},
        "seconds": round(time.monotonic() - began, 1),
    }


def import_conversation(conversation: dict[str, Any]) -> tuple[Any, int]:
    """Store the conversation as sessions of a new owner; return the owner's book and the number of sessions."""
    from gateway.models import Message, Run, Session
    from gateway.services import agent_save, session_create
    from memories.models import Owner
    from memories.services import book_get_or_create

    agent, owner = agent_save("assistant", {"memory_review_interval": 0}), Owner.objects.create()
    owner_speaks = conversation["turns"][0]["speaker"]
    dialogues = [(key, list(turns)) for key, turns in groupby(conversation["turns"], key=_session_of)]
    for key, turns in dialogues:
        at = datetime.strptime(turns[0]["date_time"], DATE_FORMAT).replace(tzinfo=UTC)
        session = session_create(owner, agent, title=f"{conversation['id']} {key}")
        run = Run.objects.create(owner=owner, session=session, turn=1, state=Run.State.COMPLETED, request_id=key)
        Message.objects.bulk_create(
            Message(
                owner=owner,
                session=session,
                run=run,
                seq=seq,
                role=Message.Role.USER if turn["speaker"] == owner_speaks else Message.Role.ASSISTANT,
                text=turn["text"],
                created_at=at,
            )
            for seq, turn in enumerate(turns, start=1)
        )
        Session.objects.filter(pk=session.pk).update(turns=1, message_seq=len(turns), created_at=at, last_active_at=at)
    return book_get_or_create(owner.pk, agent.book), len(dialogues)


def run_to_end(run: Any) -> Any:
    """Execute the run slice by slice, as the queue's worker does, until it has ended; return the run."""
    from django.utils import timezone

    from reviews.consolidation.runner import execute
    from reviews.models import ConsolidationRun

    pause = threading.Event()
    with asyncio.Runner() as runner:
        while run.state in ConsolidationRun.OPEN:
            pause.wait(max(0.0, (run.not_before - timezone.now()).total_seconds()))
            execute(run.pk, runner.run)
            run.refresh_from_db()
            print(f"{run.sessions_done} of {run.sessions_total} sessions, {run.get_state_display()}", file=sys.stderr)
    return run


def _session_of(turn: dict[str, Any]) -> str:
    return str(turn["dia_id"]).partition(":")[0]


if __name__ == "__main__":
    sys.exit(main())
