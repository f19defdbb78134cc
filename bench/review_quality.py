"""Measure how good reviews are with the configured model: run the shipped review over conversations with known facts.

    python bench/review_quality.py --data FILE              # the model of OPENAI_BASE_URL, or the demo model
    python bench/review_quality.py --data FILE --model NAME
    python bench/review_quality.py --data FILE --scripted   # answers built from the cases' keywords: tests the harness

Uses its own database in a temporary home. Prints a table by kind and, as its last line, one JSON object: `fact_recall`,
`precision`, `target_accuracy`, `update_rate`, `nothing_accuracy`, `never_violations`, `by_kind`, `tokens_per_review`
(see review_scoring.py), `held` (writes that wait for a person) and `evidence` (writes by kind of evidence)."""

import argparse
import asyncio
import json
import re
import statistics
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from own_home import MODEL_SERVERS, own_home
from review_scoring import RATES, Score, score_case, totals

# Slow local models need longer than the default timeout.
TIMEOUT_SECONDS = 300


class KeywordModel:
    """Answers each review with tool calls built from the keywords of its case."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def expect(self, case: dict[str, Any], numbers: dict[str, int]) -> None:
        """Set the next case."""
        wanted = case["expected"]
        said = [message["content"] for message in case["messages"] if message["role"] == "user"]
        self.calls = [
            (
                "add_memory",
                {
                    "content": _words(fact["any_of"]),
                    "target": _target(fact["target"]),
                    "evidence": _quote(fact["any_of"], said),
                },
            )
            for fact in wanted["save"]
        ]
        self.calls += [
            (
                "update_memory",
                {
                    "id": numbers[u["id"]],
                    "content": _words(u["must_contain_any"]),
                    "evidence": _quote(u["must_contain_any"], said),
                },
            )
            for u in wanted["update"]
        ]
        self.calls += [("delete_memory", {"id": numbers[key]}) for key in wanted["delete"]]

    async def stream(self, request: Any) -> AsyncGenerator[dict[str, Any]]:
        calls, self.calls = self.calls, []
        for number, (name, arguments) in enumerate(calls):
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"index": number, "id": f"call_{number}", "function": function}
            yield {"model": "scripted", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}
        text = {} if calls else {"content": "Nothing to save."}
        finish = "tool_calls" if calls else "stop"
        yield {"model": "scripted", "choices": [{"index": 0, "delta": text, "finish_reason": finish}]}
        tokens = len(json.dumps(request.messages, ensure_ascii=False)) // 4
        usage = {"prompt_tokens": tokens, "completion_tokens": 0, "total_tokens": tokens}
        yield {"model": "scripted", "choices": [], "usage": usage}


def _words(groups: list[list[str]]) -> str:
    return " ".join(groups[0])


def _quote(groups: list[list[str]], said: list[str]) -> str:
    """Return the person's sentence that contains the keywords, or "" if they used other words."""
    sentences = [sentence for text in said for sentence in re.split(r"(?<=[.!?\n])\s+", text)]
    found = (s for group in groups for s in sentences if all(word.casefold() in s.casefold() for word in group))
    return next(found, "")


def _target(target: str) -> str:
    return "memory" if target == "any" else target


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a file of cases")
    parser.add_argument("--model", default="", help="model to review with; default: DAYBOOK_MODEL")
    parser.add_argument("--scripted", action="store_true", help="answers built from the cases' keywords")
    parser.add_argument("--misses", action="store_true", help="list what was missed or wrong, case by case")
    parser.add_argument("--out", type=Path, help="also save the reviews' writes to this file")
    options = parser.parse_args()
    cases = json.loads(options.data.read_text(encoding="utf-8"))
    with own_home("review-quality", {"DAYBOOK_DB_THREADS": "1"}, keep=MODEL_SERVERS):
        runs = review_cases(cases, model=options.model, scripted=options.scripted)
    scored = [score_case(case, run["writes"]) for case, run in zip(cases, runs, strict=True)]
    if options.out:
        results = [{"id": case["id"], "writes": run["writes"]} for case, run in zip(cases, runs, strict=True)]
        options.out.write_text(json.dumps(results, ensure_ascii=False, indent=1))
    if options.misses:
        print(
            "\n".join(f"{c['id']} {c['title']}: {note}" for c, s in zip(cases, scored, strict=True) for note in s.notes)
        )
    report(cases, scored, runs)
    return 1 if any(run["state"] in {"failed", "timed_out"} for run in runs) else 0


def review_cases(cases: list[dict[str, Any]], *, model: str, scripted: bool) -> list[dict[str, Any]]:
    """Run the shipped review on each case; return `{state, model, tokens, writes, held, evidence}` for each."""
    from django.core.management import call_command

    from gateway import upstream
    from reviews.runner import execute

    call_command("migrate", verbosity=0)
    keyword_model = KeywordModel()
    if scripted:
        upstream.install(keyword_model)
    found = []
    with asyncio.Runner() as runner:
        for case in cases:
            review, numbers = create_review(case, model)
            keyword_model.expect(case, numbers)
            execute(review.pk, runner.run)
            review.refresh_from_db()
            found.append(
                {
                    "state": review.state,
                    "model": review.model,
                    "tokens": int(review.usage.get("total_tokens") or 0),
                    "writes": final_writes(review.writes, {str(n): key for key, n in numbers.items()}),
                    "held": sum(write.waiting for write in review.writes),
                    "evidence": [str(write.evidence.kind) for write in review.writes if write.action != "delete"],
                }
            )
    return found


def create_review(case: dict[str, Any], model: str) -> tuple[Any, dict[str, int]]:
    """Store a case's memories and conversation and schedule its review. Return the review and the memories' numbers by
    id."""
    from gateway.models import Message, Run
    from gateway.services import agent_save, session_create
    from memories.models import Owner, WriteOrigin
    from memories.services import MemoryFields, Source, book_get_or_create, book_writing
    from reviews.schedule import review_session

    settings = {"memory_review_timeout": TIMEOUT_SECONDS, "user_char_limit": 8000, "memory_char_limit": 20000}
    agent = agent_save("assistant", settings | {"memory_review_model": model})
    owner = Owner.objects.create()
    book = book_get_or_create(owner.pk, "main")
    numbers = {}
    with book_writing(book, Source(actor="system", origin=WriteOrigin.USER)) as writer:
        for memory in case["existing"]:
            written = writer.add(MemoryFields(content=memory["content"], target=memory["target"]))
            numbers[memory["id"]] = written.memory.number
    session = session_create(owner, agent, title=case["title"])
    run = Run.objects.create(owner=owner, session=session, turn=1, state=Run.State.COMPLETED, request_id=case["id"])
    rows = [
        Message(owner=owner, session=session, run=run, seq=seq, role=message["role"], text=message["content"])
        for seq, message in enumerate(case["messages"], start=1)
    ]
    Message.objects.bulk_create(rows)
    return review_session(owner.pk, session.pk), numbers


def final_writes(writes: list[Any], ids: dict[str, str]) -> list[dict[str, Any]]:
    """Return the applied writes for the scorer. A memory that the review added and then changed counts as added."""
    added: dict[str, dict[str, Any]] = {}
    found: list[dict[str, Any]] = []
    for write in writes:
        if write.state != "applied":
            continue
        if write.action == "add":
            added[write.key] = {"op": "add", "target": write.target, "content": write.after}
            found.append(added[write.key])
        elif write.key in added:
            if write.action == "update":
                added[write.key]["content"] = write.after
            else:
                found.remove(added.pop(write.key))
        else:
            found.append({"op": write.action, "id": ids[write.key], "content": write.after})
    return found


def report(cases: list[dict[str, Any]], scored: list[Score], runs: list[dict[str, Any]]) -> None:
    """Print the table and the JSON line."""
    kinds = sorted({kind for case in cases for kind in case["kinds"]})
    by_kind = {
        kind: totals(s for case, s in zip(cases, scored, strict=True) if kind in case["kinds"]) for kind in kinds
    }
    total = totals(scored)
    columns = [*RATES, "never_violations", "cases"]
    print(f"{'kind':22}", *(f"{name:>16}" for name in columns))
    for name, row in [*by_kind.items(), ("total", total)]:
        print(f"{name:22}", *(f"{_format_value(row[column]):>16}" for column in columns))
    states = {state: sum(run["state"] == state for run in runs) for state in sorted({run["state"] for run in runs})}
    model = ", ".join(sorted({run["model"] for run in runs}))
    tokens = round(statistics.mean(run["tokens"] for run in runs)) if runs else 0
    held, evidence = sum(run["held"] for run in runs), Counter(kind for run in runs for kind in run["evidence"])
    print(f"model {model}; {tokens} tokens a review; reviews that ended {states}; {held} writes held; {dict(evidence)}")
    figures = {"tokens_per_review": tokens, "model": model, "states": states, "held": held, "evidence": evidence}
    print(json.dumps(total | {"by_kind": by_kind, **figures}))


def _format_value(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
